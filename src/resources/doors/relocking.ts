/**
 * Who locks a door again after an unlock: the lock, where it is known to; else the gateway. In the same commit as the intent
 * it is stored that the door has to be seen locked, and it is forgotten when the answer says that nothing opened. Locks do not
 * relock when that was switched off at the lock, or when the bolt jams: the gateway locks those too (closing.ts).
 */
import { randomUUID } from 'node:crypto';
import type { LockReport, RelockWay } from '../../../drivers/contract/settings.ts';
import type { LockEvent } from '../../../drivers/contract/zgate.ts';
import { openLastRead } from '../../platform/database/last-read.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Busy } from './busy.ts';
import { type Closings, NOT_OPENED } from './closing.ts';
import type { DoorContext } from './context.ts';
import { type CloseUnstoredOptions, closeAlsoUnstored } from './deferred-writes.ts';
import { DEADLINE_MS, HELD_AT_MOST_MS } from './lock-links.ts';
import type { Locks } from './locks.ts';
import type { End } from './outcome.ts';
import type { StandOpen } from './stand-open.ts';
import type { DoorRow } from './table.ts';

/** Time to open the door. */
export const RELOCK_SECONDS = 5;
const RELOCK_MS = RELOCK_SECONDS * 1_000;
/** From the time at which a lock relocks to its report of that: the bolt moves, and a sleeping lock wakes. */
const REPORT_MARGIN_MS = 10_000;

export interface RelockOptions extends DoorContext {
  locks: Pick<Locks, 'report'>;
  closings: Pick<Closings, 'store' | 'schedule'>;
}

/** Of one unlock. */
export interface Relock {
  /** The lock is not known to lock again by itself. */
  byGateway: boolean;
  /** Inside the commit job of the intent. */
  store(): void;
  /** After that commit. */
  stored(): void;
  /** Inside the commit job of the outcome. */
  settle(end: End): void;
  /** After that commit, whether it succeeded or not. `by`: as the answer said. */
  settled(end: End, by: RelockWay | undefined): void;
}

export function relockOf(
  door: DoorRow,
  mac: string,
  caller: Caller,
  { table, locks, closings }: RelockOptions,
): Relock {
  const known = locks.report(door)?.relock;
  /** What had to be locked before still has to be. */
  let hadOne = false;
  let openings = 0;
  return {
    byGateway: !isByLock(known?.by),
    store() {
      hadOne = table.closing.get(mac) !== undefined;
      const reason = 'it was unlocked';
      closings.store({ door, mac, purpose: 'unlock', reason, uncertain: true, caller });
      openings = table.closing.get(mac)?.openings ?? 0;
    },
    stored() {
      if (!hadOne) return;
      const relocksItself = isByLock(known?.by);
      closings.schedule(mac, DEADLINE_MS + RELOCK_MS, {
        settlesMs: NOT_OPENED,
        relocksItself,
        isOpening: true,
      });
    },
    settle(end) {
      if (hadOne || isUnknown(end)) return;
      if (isOpened(end)) table.setClosingCertain.run(mac);
      else table.deleteClosing.run(mac, openings);
    },
    settled(end, by = known?.by) {
      const heldMs = isUnknown(end) ? HELD_AT_MOST_MS : 0;
      const settlesMs = isOpened(end) ? heldMs : NOT_OPENED;
      if (isByLock(by))
        closings.schedule(mac, heldMs + watchMs(by, known), {
          settlesMs,
          relocksItself: true,
          openForMs: watchMs(by, known),
        });
      else closings.schedule(mac, isOpened(end) ? RELOCK_MS : 0, { settlesMs, openForMs: RELOCK_MS });
    },
  };
}

function isByLock(by: RelockWay | null | undefined): boolean {
  return by === 'timedUnlock' || by === 'autoRelock';
}

/** So long a lock that relocks by itself has for that and for its report. */
function watchMs(by: RelockWay | undefined, known: LockReport['relock']): number {
  const seconds = by === 'autoRelock' ? (known?.seconds ?? RELOCK_SECONDS) : RELOCK_SECONDS;
  return seconds * 1_000 + REPORT_MARGIN_MS;
}

/** Or may be. */
function isOpened(end: End): boolean {
  return 'result' in end && end.result.outcome !== 'refused';
}

function isUnknown(end: End): boolean {
  return 'result' in end && end.result.outcome === 'unknown';
}

export interface LateRelockOptions
  extends Omit<RelockOptions, 'closings'>,
    CloseUnstoredOptions,
    DoorContext {
  closings: CloseUnstoredOptions['closings'] & Pick<Closings, 'store' | 'isPending'>;
  busy: Pick<Busy, 'has'>;
  standOpen: Pick<StandOpen, 'keepsOpen'>;
}

type LockedDoor = Pick<DoorRow, 'id' | 'gateway_id' | 'network_id'>;

/** Events whose door was locked before they were stored; a driver sends each again until it is stored. */
const REMEMBERED_MAX = 1_000;

export interface LateRelocks {
  /** Inside the commit job of the event; returns what is to be done after it. `key`: the same each time that it is sent. */
  relock(door: DoorRow, event: LockEvent, key: string): (() => void) | undefined;
  /** The event could not be stored: events are refused sooner than what closes a door. */
  unstored(event: LockEvent, key: string): void;
}

/**
 * A lock reports that it was unlocked by radio when nothing waits for that any more, such as by a frame that its parent has held
 * for minutes.
 */
export function openLateRelocks(options: LateRelockOptions): LateRelocks {
  const { database, table, locks, closings } = options;
  /** Keys of those that were undone, and are not stored. */
  const undone = new Set<string>();
  const doorOf = openLastRead<LockedDoor>(
    (mac) => table.byMac.get(mac),
    table.listed.all().flatMap(({ mac, ...door }) => (mac === null ? [] : [[mac, door] as const])),
  );

  function lateRelock(door: LockedDoor, { hwId: mac, what, source }: LockEvent) {
    if (what !== 'unlocked' || source !== 'rf' || options.busy.has(door.id)) return undefined;
    if (closings.isPending(mac) || options.standOpen.keepsOpen(mac)) return undefined;
    const known = locks.report({ mac, gateway_id: door.gateway_id })?.relock;
    const relocksItself = isByLock(known?.by);
    const delayMs = relocksItself ? watchMs(known?.by, known) : RELOCK_MS;
    const caller = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
    const reason = 'it was unlocked by radio, and no command was under way';
    const order = { door, mac, purpose: 'unlock' as const, reason, uncertain: false, caller };
    return { order, delayMs, relocksItself };
  }

  return {
    relock(door, event, key) {
      if (undone.has(key)) return () => void undone.delete(key);
      const relock = lateRelock(door, event);
      if (!relock) return undefined;
      const { order, delayMs, relocksItself } = relock;
      closings.store(order);
      return () => closings.schedule(order.mac, delayMs, { relocksItself });
    },
    unstored(event, key) {
      const door = undone.has(key) ? undefined : doorOf(event.hwId);
      const relock = door && lateRelock(door, event);
      if (!relock) return;
      if (undone.size >= REMEMBERED_MAX) undone.clear();
      undone.add(key);
      const { order, delayMs, relocksItself } = relock;
      const store = () => database.commit(() => closings.store(order), 'urgent');
      void closeAlsoUnstored(options, order, { delayMs, relocksItself }, store);
    },
  };
}
