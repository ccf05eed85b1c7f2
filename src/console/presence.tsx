import type { DoorSummary } from '../resources/doors/list-schema.ts';
import { t } from './words.ts';

const SEVERITIES = { connected: 'good', disconnected: 'bad', unknown: 'bad' } as const;

/** Whether a door is reached, in a word and a colour. */
export function Presence({ presence }: Pick<DoorSummary, 'presence'>) {
  if (presence === null) return <span class="mark">{t('noLock')}</span>;
  return <span class={`mark ${SEVERITIES[presence]}`}>{t(presence)}</span>;
}
