/** What a page says of itself, so that a screen reader says it too. */
import type { Reading } from './use-read.ts';
import { t } from './words.ts';

/** What has failed; "" is nothing. */
export const Alert = ({ text }: { text: string }) => text && <p role="alert">{text}</p>;

/** What became of what was ordered. */
export const Said = ({ text, tone }: { text: string; tone?: string }) => (
  <div role="status">{text && <p class={tone}>{text}</p>}</div>
);

/** What is read is not there, or not there yet. */
export function Reads({ value, fault }: Pick<Reading<unknown>, 'value' | 'fault'>) {
  return fault ? <Alert text={fault} /> : !value && <p role="status">{t('loading')}</p>;
}

/** The way back from one thing to the list of all. */
export function Back({ to, label }: { to: string; label: string }) {
  return (
    <p>
      <a class="back" href={to}>
        ← {label}
      </a>
    </p>
  );
}
