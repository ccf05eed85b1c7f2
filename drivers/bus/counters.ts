/** What became of exchanges, counted as reports and probes tell it. */
import type { WireCounters } from '../contract/rs485.ts';
import type { Attempt } from './exchange.ts';

export const COUNTER_OF = {
  reply: 'replies',
  refused: 'refusals',
  busy: 'refusals',
  failed: 'refusals',
  unreached: 'timeouts',
  unanswered: 'timeouts',
  timeout: 'timeouts',
  crc: 'crc',
  framing: 'framing',
  foreign: 'collisions',
  collision: 'collisions',
} as const satisfies Record<Attempt['outcome'], keyof WireCounters>;

export function newCounters(): WireCounters {
  return { replies: 0, timeouts: 0, crc: 0, framing: 0, refusals: 0, collisions: 0, late: 0 };
}
