/** Below a list that begins short: each line of it takes its time on a phone. */
import type { Signal } from '@preact/signals';
import { t } from './words.ts';

interface ShowMoreProps {
  /** How many are shown; grows by `step`. */
  shown: Signal<number>;
  step: number;
  all: number;
}

export function ShowMore({ shown, step, all }: ShowMoreProps) {
  const more = Math.min(step, all - shown.value);
  if (more <= 0) return null;
  return (
    <button
      type="button"
      onClick={() => {
        shown.value += step;
      }}
    >
      {t('siteMore', { count: more })}
    </button>
  );
}
