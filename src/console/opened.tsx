/** What is drawn only once it is opened: a page may have a hundred of them. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';

export function Opened({ summary, children }: { summary: ComponentChildren; children: ComponentChildren }) {
  const isOpen = useSignal(false);
  return (
    <details
      class="card"
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open;
      }}
    >
      <summary>{summary}</summary>
      {isOpen.value && children}
    </details>
  );
}
