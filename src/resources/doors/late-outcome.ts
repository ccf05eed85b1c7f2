/**
 * An unlock that ended without a certain outcome, and which the lock reports later by an operation event that names the
 * radio. Heard by the deadline it shows that the door opened in time. Heard after it, a parent may have delivered the command late, or
 * the event itself was held up: which of the two, no one can know. A report of the bolt is no proof: a hand may have moved it.
 */
import type { LockEvent } from '../../../drivers/contract/zgate.ts';
import type { Delay, LastActuation } from '../../services/actuations/actuations.ts';
import type { DoorContext } from './context.ts';
import { lateOutcomeEvent } from './live-events.ts';
import { DEADLINE_MS, HELD_AT_MOST_MS } from './lock-links.ts';
import { lastUnlockDetail } from './schema.ts';
import { STAND_OPEN } from './standing.ts';
import type { LockSwaps } from './swap-lock.ts';
import type { DoorRow } from './table.ts';
import { UNLOCK } from './unlock.ts';

/** After it was asked for. A lock repeats an event that was not acknowledged; later another command may be its cause. */
const EVENT_WITHIN_MS = 300_000;
/** So long after the begin of a command its frame may still arrive: the last frame of standing open leaves within 60 s. */
const MAY_ARRIVE_MS = 60_000 + HELD_AT_MOST_MS;

export interface LateOutcomeOptions extends DoorContext {
  /** Of this run, monotonic milliseconds. */
  startedAt: number;
  swaps: Pick<LockSwaps, 'swappedAt'>;
}

/** Inside a commit job; returns what is to be done after it. */
export function takeLateOutcome(
  { id: doorId }: Pick<DoorRow, 'id'>,
  event: LockEvent,
  options: LateOutcomeOptions,
): (() => void) | undefined {
  const { actuations, events, log, startedAt } = options;
  if (event.kind !== 'operation' || event.what !== 'unlocked' || event.source !== 'rf') return undefined;
  const id = askedAt(doorId, event.hwId, options);
  const object = `door/${id}`;
  const last = actuations.lastSent(UNLOCK, object);
  if (!last || !isOpen(last, event.hwId)) return undefined;
  if (!isInTime(event.heardAt, last.begunAt ?? startedAt)) return undefined;
  if (mayHaveAnotherCause(last, actuations.lastSent(STAND_OPEN, object))) return undefined;
  // What the door before it has sent may still arrive.
  const swappedAt = options.swaps.swappedAt(event.hwId) ?? Number.POSITIVE_INFINITY;
  if (last.begunAt !== undefined && last.begunAt >= swappedAt && last.begunAt - swappedAt <= MAY_ARRIVE_MS)
    return undefined;
  const delayMs = delayOf(event, last);
  const isLate = delayMs !== null && delayMs <= DEADLINE_MS ? false : null;
  const late = { outcome: 'confirmed', at: event.at };
  const own = { action: UNLOCK, object, way: 'zigbee' } as const;
  const stored = actuations.late(own, late, { delayMs, isLate });
  events.publish(lateOutcomeEvent(id, { delayMs, isLate, at: event.at }, last));
  if (isLate === null && delayMs !== null)
    log.warn(
      { door: id, delayMs },
      'a lock reported an unlock after the deadline of its command: its parent held the command too long, or the report; let it join at another router, or set unlockBehindRouters of its gateway',
    );
  return stored;
}

/** The door of which the lock was unlocked last: it may be at another one since (swap-lock.ts). */
function askedAt(doorId: string, mac: string, { actuations, swaps }: LateOutcomeOptions): string {
  const own = lastUnlockDetail.safeParse(actuations.lastSent(UNLOCK, `door/${doorId}`)?.detail ?? {}).data;
  if (swaps.swappedAt(mac) === undefined || own?.mac === mac) return doorId;
  return actuations.objectOfLock(UNLOCK, mac)?.replace(/^door\//, '') ?? doorId;
}

function isInTime(heardAt: number | null, from: number): boolean {
  return heardAt !== null && heardAt >= from && heardAt - from <= EVENT_WITHIN_MS;
}

/** The wall clock may have been set between the two: null where the monotonic clock did not see both. */
function delayOf({ heardAt }: LockEvent, { begunAt }: LastActuation): Delay {
  return heardAt === null || begunAt === undefined ? null : Math.round(heardAt - begunAt);
}

/** Another command was sent that opens the same lock: after it, or before it and its frame may have arrived since. */
function mayHaveAnotherCause(
  { ordinal, begunAt, uncertainAt }: LastActuation,
  standOpen: LastActuation | undefined,
): boolean {
  if (begunAt === undefined)
    return standOpen !== undefined && (standOpen.begunAt !== undefined || standOpen.ordinal > ordinal);
  const isRecent = (time: number | undefined) => time !== undefined && begunAt - time <= MAY_ARRIVE_MS;
  if (isRecent(uncertainAt)) return true;
  if (standOpen?.begunAt === undefined) return false;
  const isUncertain = standOpen.outcome === null || standOpen.outcome === 'unknown';
  return standOpen.begunAt >= begunAt || (isUncertain && isRecent(standOpen.begunAt));
}

/** It was sent to this lock (the door may have got another since), and its outcome is not certain. */
function isOpen({ outcome, detail }: LastActuation, mac: string): boolean {
  if (outcome === null) return false;
  const known = lastUnlockDetail.safeParse(detail).data;
  if (known?.via !== 'zigbee' || known.lateOutcome || (known.mac ?? mac) !== mac) return false;
  return known.outcome === 'unknown' || known.outcome === 'accepted';
}
