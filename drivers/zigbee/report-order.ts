/**
 * Reports of bolt and door that a lock sent before one that was heard already: one can be held up for seconds on its way. Its
 * transaction sequence number lies behind then. That proves nothing: stacks count to 127 or to 255, some devices not at all,
 * and each begins again with a restart. So what such a report says is not taken in, and the lock is asked.
 */
import type { Clock } from '../contract/driver.ts';
import { DOOR_LOCK, type RadioEvent } from './radio.ts';

/** More reports than a lock sends while one is held up. */
const BEHIND_MAX = 32;
/** After the one that was sent later. */
const WINDOW_MS = 120_000;
/** EmberZNet counts to 127 (EMBER_AF_ZCL_SEQUENCE_MASK). */
const COUNTED = 0x7f;
/** What else a report carries is no state that the lock can be asked for, but an event. */
const STATES: ReadonlySet<string> = new Set(['lockState', 'doorState']);

type Heard = Extract<RadioEvent, { kind: 'heard' }>;

export interface ReportOrder {
  /** It seems older than one that was heard before, and the lock is asked. */
  isBehind(event: Heard): boolean;
  forget(ieee: string): void;
}

export function openReportOrder(
  { monotonic }: Pick<Clock, 'monotonic'>,
  ask: (ieee: string) => void,
): ReportOrder {
  /** Of each lock the newest report. */
  const locks = new Map<string, { tsn: number; at: number }>();
  return {
    isBehind(event) {
      const { ieee, tsn } = event;
      if (tsn === undefined || !isOfStates(event)) return false;
      const newest = locks.get(ieee);
      const behind = newest && monotonic() - newest.at <= WINDOW_MS ? (newest.tsn - tsn) & COUNTED : 0;
      if (behind > 0 && behind <= BEHIND_MAX) {
        ask(ieee);
        return true;
      }
      locks.set(ieee, { tsn, at: monotonic() });
      return false;
    },
    forget: (ieee) => void locks.delete(ieee),
  };
}

function isOfStates({ type, cluster, data }: Heard): boolean {
  if (type !== 'attributeReport' || cluster !== DOOR_LOCK) return false;
  return Object.keys(Object(data)).every((name) => STATES.has(name));
}
