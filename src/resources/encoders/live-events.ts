/** Live events of encoders besides the progress of their writes. */
import type { LiveEvent } from '../../services/events/cloud-event.ts';

/** `at` in epoch milliseconds, as the resource shows it in connectionState.changedOn. */
export function connectionChanged(encoderId: string, connected: boolean, at: number): LiveEvent {
  return ofEncoder(encoderId, 'connection', { connected, changedOn: new Date(at).toISOString() });
}

/** The same of alarmState. */
export function alarmChanged(encoderId: string, raised: boolean, at: number): LiveEvent {
  return ofEncoder(encoderId, 'alarm', { raised, changedOn: new Date(at).toISOString() });
}

function ofEncoder(encoderId: string, what: string, data: Record<string, unknown>): LiveEvent {
  return {
    type: `gatehouse.encoder.${what}.v1`,
    source: `encoders/${encoderId}`,
    subject: encoderId,
    data: { encoderId, ...data },
  };
}
