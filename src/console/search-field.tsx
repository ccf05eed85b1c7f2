import { typed } from './edit-form.tsx';

/** Searches as each key is typed. */
export function SearchField({ label, text }: { label: string; text: { value: string } }) {
  return <input type="search" aria-label={label} placeholder={label} {...typed(text)} />;
}
