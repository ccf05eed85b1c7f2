/**
 * The messages in flight of one connection, oldest first. Acknowledgements may come in any order; only the acknowledged
 * beginning counts, for after a loss everything behind it is sent again (go-back-N). Pure: time comes in as numbers.
 */
import type { EventRow } from './table.ts';

export interface Sent {
  readonly row: EventRow;
  /** It has overtaken the backlog (queue.ts). */
  readonly isAhead: boolean;
  /** Monotonic milliseconds of the last send. */
  sentAt: number;
  /** Settled are the acknowledged and the buried, which are dead letters. */
  state: 'in flight' | 'acknowledged' | 'refused' | 'buried';
  /** How often it was refused, or a connection broke while it was the oldest in flight. */
  failures: number;
  /** Of the last answer. */
  reason: string;
}

/** Nothing was acknowledged for this long: the connection is dead or the service stands still. */
export const ACKNOWLEDGEMENT_DEADLINE_MS = 10_000;

export interface Window {
  readonly sent: readonly Sent[];
  add(sent: Sent): void;
  /** Removes the settled beginning. */
  takeSettled(): Sent[];
  /** How many have no answer yet. */
  inFlight(): number;
  /** Whether the oldest is overtaken: a message sent after it is acknowledged and it is not. */
  overtaken(): boolean;
  /**
   * Whether the oldest waits too long. On a slow line the queue before a message may take minutes, so what counts is
   * the time since anything was acknowledged (`heardAt`) unless the service has overtaken the message.
   */
  overdue(now: number, heardAt: number): boolean;
}

export function openWindow(): Window {
  const sent: Sent[] = [];
  const settled = ({ state }: Sent) => state === 'acknowledged' || state === 'buried';
  const overtaken = () => sent.some(({ state }, index) => index > 0 && state === 'acknowledged');
  return {
    sent,
    add: (message) => {
      sent.push(message);
    },
    takeSettled() {
      const end = sent.findIndex((message) => !settled(message));
      return sent.splice(0, end === -1 ? sent.length : end);
    },
    inFlight: () => sent.reduce((count, { state }) => count + (state === 'in flight' ? 1 : 0), 0),
    overtaken,
    overdue(now, heardAt) {
      const oldest = sent[0];
      if (oldest?.state !== 'in flight') return false;
      const since = overtaken() ? oldest.sentAt : Math.max(oldest.sentAt, heardAt);
      return now - since >= ACKNOWLEDGEMENT_DEADLINE_MS;
    },
  };
}
