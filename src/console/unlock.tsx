/** Opens a door after a question, once for each answer, and says what is known of its outcome. */
import type { UnlockResult } from '../resources/doors/lock-schema.ts';
import { Actuate, type Outcome } from './actuate.tsx';
import { DOORS } from './api.ts';
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
  return (
    <Actuate
      label={t('unlock')}
      busyLabel={t('unlocking')}
      question={t('unlockAsk', { door: name })}
      yes={t('unlockYes')}
      path={`${DOORS}/${id}/unlock`}
      noAnswer={t('noAnswerUnlock')}
      outcomeOf={outcomeOf}
      ended={ended}
    />
  );
}

function outcomeOf({ outcome, reason }: UnlockResult): Outcome {
  const [severity, word] = OUTCOMES[outcome];
  return { severity, text: [t(word), reason].filter(Boolean).join(' ') };
}
