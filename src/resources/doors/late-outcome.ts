/**
 * An unlock that ended without a certain outcome, and which the lock reports later by an operation event that names the
 * radio. Heard by the deadline it shows that the door opened in time. Heard after it, a parent may have delivered the command late, or
 * the event itself was held up: which of the two, no one can know. A report of the bolt is no proof: a hand may have moved it.
 */
import { EVENT_WITHIN_MS } from '../../../drivers/contract/owed-events.ts';
import type { LockEvent } from '../../../drivers/contract/zgate.ts';
import type { Delay, LastActuation } from '../../services/actuations/actuations.ts';
import type { DoorContext } from './context.ts';
import { lateOutcomeEvent } from './live-events.ts';
import { DEADLINE_MS, type OpeningCommand } from './lock-links.ts';
import { lastUnlockDetail } from './schema.ts';
import { STAND_OPEN } from './standing.ts';
import { UNLOCK } from './unlock.ts';

/** Inside a commit job; returns what is to be done after it. `startedAt`: of this run, monotonic milliseconds. */
export function takeLateOutcome(
  event: LockEvent,
  context: DoorContext,
  startedAt: number,
): (() => void) | undefined {
  const { kind, what, source, heardAt, hwId } = event;
  if (kind !== 'operation' || what !== 'unlocked' || source !== 'rf' || heardAt === null) return undefined;
  const { lockLinks } = context;
  const command = lockLinks.onlyOpening(hwId, heardAt);
  if (!command) return undefined;
  const publish = settle(command, event, { heardAt, startedAt }, context);
  return () => {
    lockLinks.openingHeard(hwId, command);
    publish?.();
  };
}

/** The event is of this command: of an unlock without a certain outcome it is the outcome. */
function settle(
  command: OpeningCommand,
  event: LockEvent,
  { heardAt, startedAt }: { heardAt: number; startedAt: number },
  { actuations, events, log }: DoorContext,
): (() => void) | undefined {
  const { hwId: mac, at } = event;
  const isOfThisRun = command.doorId !== undefined;
  if (command.kind !== 'unlock') return undefined;
  const object = isOfThisRun ? `door/${command.doorId}` : actuations.objectOfLock(UNLOCK, mac);
  const last = object === undefined ? undefined : actuations.lastSent(UNLOCK, object);
  if (object === undefined || !last || !isOpen(last, mac)) return undefined;
  const from = last.begunAt ?? startedAt;
  if (heardAt < from || heardAt - from > EVENT_WITHIN_MS) return undefined;
  if (isOfThisRun !== (last.begunAt !== undefined)) return undefined;
  if (!isOfThisRun && !(last.isAlone && isLatest(last, actuations.lastSent(STAND_OPEN, object))))
    return undefined;
  const delayMs: Delay = last.begunAt === undefined ? null : Math.round(heardAt - last.begunAt);
  const isLate = delayMs !== null && delayMs <= DEADLINE_MS ? false : null;
  const own = { action: UNLOCK, object, way: 'zigbee' } as const;
  const stored = actuations.late(own, { outcome: 'confirmed', at }, { delayMs, isLate });
  const id = object.replace(/^door\//, '');
  events.publish(lateOutcomeEvent(id, { delayMs, isLate, at }, last));
  if (isLate === null && delayMs !== null)
    log.warn(
      { door: id, delayMs },
      'a lock reported an unlock after the deadline of its command: its parent held the command too long, or the report; let it join at another router, or set unlockBehindRouters of its gateway',
    );
  return stored;
}

/** Of what was sent before this start. */
function isLatest({ ordinal }: LastActuation, standOpen: LastActuation | undefined): boolean {
  return standOpen === undefined || (standOpen.begunAt === undefined && standOpen.ordinal < ordinal);
}

/** It was sent to this lock (the door may have got another since), and its outcome is not certain. */
function isOpen({ outcome, detail }: LastActuation, mac: string): boolean {
  if (outcome === null) return false;
  const known = lastUnlockDetail.safeParse(detail).data;
  if (known?.via !== 'zigbee' || known.lateOutcome || (known.mac ?? mac) !== mac) return false;
  return known.outcome === 'unknown' || known.outcome === 'accepted';
}
