/** Opens a door after a question, once for each answer, and says what is known of its outcome. */
import { useSignal } from '@preact/signals';
import type { UnlockResult } from '../resources/doors/lock-schema.ts';
import { call, DOORS, Refused } from './api.ts';
import { Ask } from './ask.tsx';
import { t } from './words.ts';

const OUTCOMES = {
  confirmed: ['good', 'confirmed'],
  accepted: ['warn', 'accepted'],
  jammed: ['bad', 'jammed'],
  refused: ['bad', 'refused'],
  unknown: ['bad', 'outcomeUnknown'],
} as const;

/** `ended` is called after each answer, for what it changes to be read. */
export function Unlock({ id, name, ended }: { id: string; name: string; ended: () => void }) {
  const busy = useSignal(false);
  const result = useSignal<{ severity: string; text: string } | undefined>(undefined);
  const unlock = async () => {
    if (busy.value) return;
    busy.value = true;
    result.value = undefined;
    try {
      const { outcome, reason } = await call<UnlockResult>('POST', `${DOORS}/${id}/unlock`, {
        key: crypto.randomUUID(),
      });
      const [severity, word] = OUTCOMES[outcome];
      result.value = { severity, text: [t(word), reason].filter(Boolean).join(' ') };
    } catch (error) {
      const isUnknown = !(error instanceof Refused) || error.status === 0;
      result.value = { severity: 'bad', text: isUnknown ? t('noAnswerUnlock') : error.message };
    }
    busy.value = false;
    ended();
  };
  return (
    <section>
      <Ask
        label={t(busy.value ? 'unlocking' : 'unlock')}
        question={t('unlockAsk', { door: name })}
        yes={t('unlockYes')}
        primary
        disabled={busy.value}
        onYes={unlock}
      />
      <div role="status">
        {result.value && <p class={`card ${result.value.severity}`}>{result.value.text}</p>}
      </div>
    </section>
  );
}
