/**
 * An unlock that ended without a certain outcome, and of which the lock tells later: by an operation event that names the
 * radio, or by a report of its bolt. It may also show that a parent delivered the command after its deadline.
 */
import type { LockEvent } from '../../drivers/zgate.ts';
import type { Actuations, LastActuation } from '../actuations/actuations.ts';
import type { LiveEvents } from '../events/events.ts';
import type { Log } from '../log.ts';
import { lateOutcomeTold } from './live-events.ts';
import { DEADLINE_MS } from './lock-commands.ts';
import { lastUnlockDetail } from './schema.ts';
import type { DoorRow } from './table.ts';
import { UNLOCK } from './unlock.ts';

/** After it was asked for. A lock repeats an event that was not acknowledged; later another command may be its cause. */
const EVENT_WITHIN_MS = 300_000;
/** The same of a report that names no cause: a parent holds the command for 30 s at most, and a hand may move the bolt. */
const BOLT_WITHIN_MS = 60_000;

export interface LateOutcomeOptions {
  actuations: Pick<Actuations, 'last' | 'late'>;
  events: Pick<LiveEvents, 'publish'>;
  log: Log;
}

/** Inside a commit job. */
export function takeLateOutcome(
  { id }: Pick<DoorRow, 'id'>,
  told: LockEvent,
  { actuations, events, log }: LateOutcomeOptions,
): void {
  const object = `door/${id}`;
  const last = actuations.last(UNLOCK, object);
  if (!last || !isOpen(last, told.hwId)) return;
  const delayMs = told.at - last.at;
  if (delayMs < 0 || delayMs > withinOf(told)) return;
  const isLate = delayMs > DEADLINE_MS;
  const late = { outcome: 'confirmed', at: told.at };
  actuations.late({ action: UNLOCK, object }, isLate ? 'late' : 'done', late);
  events.publish(lateOutcomeTold(id, { delayMs, isLate, at: told.at }));
  if (isLate)
    log.warn(
      { door: id, delayMs },
      'a door was unlocked after the deadline of its command: the parent of its lock held the frame too long; let it join at another router, or set unlockBehindRouters of its gateway',
    );
}

/** It was sent to this lock (the door may have got another since), and its outcome is not certain. */
function isOpen({ outcome, detail }: LastActuation, mac: string): boolean {
  if (outcome === null) return false;
  const known = lastUnlockDetail.safeParse(detail).data;
  if (known?.via !== 'zigbee' || known.lateOutcome || (known.mac ?? mac) !== mac) return false;
  return known.outcome === 'unknown' || known.outcome === 'accepted';
}

/** 0: it is no unlock by radio. */
function withinOf({ kind, what, source }: LockEvent): number {
  if (what !== 'unlocked') return 0;
  if (kind === 'operation' && source === 'rf') return EVENT_WITHIN_MS;
  return kind === 'bolt' ? BOLT_WITHIN_MS : 0;
}
