/** Opens a door after a question, once for each answer, and says what is known of its outcome. */
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { UnlockResult } from '../resources/doors/lock-schema.ts';
import { call, DOORS, Refused } from './api.ts';
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
  const dialog = useRef<HTMLDialogElement>(null);
  const busy = useSignal(false);
  const result = useSignal<{ severity: string; text: string } | undefined>(undefined);
  const unlock = async () => {
    dialog.current?.close();
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
      <button type="button" class="primary" disabled={busy.value} onClick={() => dialog.current?.showModal()}>
        {busy.value ? t('unlocking') : t('unlock')}
      </button>
      <div role="status">
        {result.value && <p class={`card ${result.value.severity}`}>{result.value.text}</p>}
      </div>
      <dialog ref={dialog} aria-labelledby="unlock-question">
        <h2 id="unlock-question" dir="auto">
          {t('unlockAsk', { door: name })}
        </h2>
        <div class="choices">
          <button type="button" class="primary" onClick={unlock}>
            {t('unlockYes')}
          </button>
          <button type="button" onClick={() => dialog.current?.close()}>
            {t('cancel')}
          </button>
        </div>
      </dialog>
    </section>
  );
}
