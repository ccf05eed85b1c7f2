/** A button whose deed is done after a question only. */
import { useId, useRef } from 'preact/hooks';
import type { Words } from './words.en.ts';
import { t } from './words.ts';

type Asking = {
  [Key in keyof Words]: `${Key}Ask` | `${Key}Yes` extends keyof Words ? Key : never;
}[keyof Words];

/** What such a button says, by the words NAME, NAMEAsk and NAMEYes. */
export const asking = (name: Asking, values?: Parameters<typeof t>[1]) => ({
  label: t(name, values),
  question: t(`${name}Ask`, values),
  yes: t(`${name}Yes`),
});

export interface AskProps {
  label: string;
  question: string;
  yes: string;
  primary?: boolean;
  disabled?: boolean;
  onYes(): void;
}

export function Ask({ label, question, yes, primary = false, disabled = false, onYes }: AskProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const answer = () => {
    dialog.current?.close();
    onYes();
  };
  return (
    <>
      <button
        type="button"
        class={primary ? 'primary' : ''}
        disabled={disabled}
        onClick={() => dialog.current?.showModal()}
      >
        {label}
      </button>
      <dialog ref={dialog} aria-labelledby={id}>
        <h2 id={id} dir="auto">
          {question}
        </h2>
        <div class="choices">
          <button type="button" class="primary" onClick={answer}>
            {yes}
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            {t('cancel')}
          </button>
        </div>
      </dialog>
    </>
  );
}
