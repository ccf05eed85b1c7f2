/** Searches as each key is typed. */
export function SearchField({ label, text }: { label: string; text: { value: string } }) {
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={label}
      value={text.value}
      onInput={({ currentTarget }) => {
        text.value = currentTarget.value;
      }}
    />
  );
}
