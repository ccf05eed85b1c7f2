/**
 * Opens a door now or not at all: an intent in the audit before, the outcome after. Each request is sent once at most;
 * nothing is ever queued or sent again, and what no one can know is said to be unknown.
 */
import type { LockReport, RelockWay } from '../../../drivers/contract/settings.ts';
import { HELD_AT_MOST_MS, HELD_FRAME_MS, type Unlock } from '../../../drivers/contract/zgate.ts';
import { whenUnreadable } from '../../platform/database/last-read.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import { NOT_OPENED } from './closing.ts';
import { addressOf, DEADLINE_MS, type LockAddress } from './lock-links.ts';
import type { UnlockResult } from './lock-schema.ts';
import type { OpeningContext } from './opening-context.ts';
import { AUDITED, type End, endOfFault, noOpener, offline } from './outcome.ts';
import { isSameRelay } from './relay-hold.ts';
import { assertPin } from './rf-pin.ts';
import type { StandOpen } from './stand-open.ts';
import { type DoorRow, existing } from './table.ts';

/** Time to open the door. */
const RELOCK_SECONDS = 5;
export const RELOCK_MS = RELOCK_SECONDS * 1_000;
/** From the time at which a lock relocks to its report of that: the bolt moves, and a sleeping lock wakes. */
const REPORT_MARGIN_MS = 10_000;

type Standing = Pick<StandOpen, 'isOn' | 'of'>;

/** One of the two ways to open a door. */
interface Way {
  via: UnlockResult['via'];
  /** For the audit. */
  detail: Record<string, unknown>;
  /** Of a lock. */
  relock?: Relock | undefined;
  /** No command before it can still have an effect at the lock. */
  isAlone: boolean;
  /** It still leads to this door. */
  leadsThere(): boolean;
  /** Within `timeoutMs`. Nothing reaches the door before `released` resolves; when that rejects, nothing ever does. */
  send(released: Promise<void>, timeoutMs: number): Promise<{ end: End; relock?: RelockWay }>;
}

/** As in the audit. */
export const UNLOCK = 'door.unlock';

export interface Unlocks {
  /** Throws NO_LOCK, STANDS_OPEN, PIN_REQUIRED, IN_PROGRESS or DEVICE_OFFLINE. */
  unlock(doorId: string, caller: Caller): Promise<UnlockResult>;
}

export function openUnlocks(context: OpeningContext, standOpen: Standing): Unlocks {
  const { table, actuations, clock } = context;

  async function open(row: DoorRow, way: Way, caller: Caller): Promise<UnlockResult> {
    const { principal, correlationId, isGone } = caller;
    const now = clock.monotonic();
    const { arrivedAt = now } = caller;
    const { via, isAlone } = way;
    const own = { principal, action: UNLOCK, object: `door/${row.id}`, correlationId };
    const intent = { ...own, way: via, arrivedAt, isAlone };
    const { promise: released, resolve: release, reject: withdraw } = Promise.withResolvers<void>();
    // The way to the radio takes as long as the disk does.
    const sending = way.send(released, Math.max(1, Math.floor(DEADLINE_MS - (now - arrivedAt))));
    // Where nothing is sent, no one waits for them.
    for (const promise of [released, sending]) promise.catch(() => undefined);
    await actuations
      .begin(intent, way.detail, () => way.relock?.store())
      .catch((error) => {
        withdraw(error);
        throw error;
      });
    way.relock?.stored();
    const late =
      clock.monotonic() - arrivedAt > DEADLINE_MS - HELD_FRAME_MS
        ? 'the disk was too slow, or the gateway stood still, for it to come in time'
        : (await isGone?.())
          ? 'the client disconnected before the command was sent'
          : misled(way);
    if (late) withdraw(new Error(late));
    else release();
    const { end, relock } = late ? { end: { refusal: offline(row, late) } } : await sending;
    const settle = () => way.relock?.settle(end);
    if ('refusal' in end) await actuations.unsent(intent, way.detail, end.refusal, settle);
    else await actuations.end(intent, AUDITED[end.result.outcome], { ...way.detail, ...end.result }, settle);
    way.relock?.settled(end, relock);
    if ('refusal' in end) throw end.refusal;
    return { doorId: row.id, via, ...end.result };
  }

  return {
    async unlock(doorId, caller) {
      const row = existing(table, doorId);
      const way = wayTo(row, context, standOpen, caller);
      return actuations.exclusive(`door/${doorId}`, () => open(row, way, caller));
    },
  };
}

/** Why it leads to this door no more; nothing opens a door of which that cannot be read. */
function misled(way: Way): string | undefined {
  return whenUnreadable(
    () => (way.leadsThere() ? undefined : 'the door was given another lock or relay before it was sent'),
    () => 'the database cannot be read',
  );
}

/** Throws NO_LOCK, STANDS_OPEN, PIN_REQUIRED or DEVICE_OFFLINE. */
function wayTo(row: DoorRow, context: OpeningContext, standOpen: Standing, caller: Caller): Way {
  const { rs485, lockLinks, rfPins } = context;
  const device = rs485.relay(row.id);
  if (device) {
    const { deviceId } = device;
    return {
      via: 'rs485',
      detail: { via: 'rs485', deviceId },
      isAlone: false,
      leadsThere() {
        const now = rs485.relay(row.id);
        return now !== undefined && isSameRelay(now, device);
      },
      async send(released) {
        await released;
        return { end: await fire(row, deviceId, context, caller) };
      },
    };
  }
  const { mac } = row;
  if (mac === null) throw noOpener();
  assertLocked(row.id, standOpen);
  assertPin(mac, context.locks.report(row), rfPins);
  const lock = addressOf(row);
  const unreachable = lockLinks.unreachable(lock);
  if (unreachable !== undefined) throw offline(row, unreachable);
  const relock = relockOf(row, mac, caller, context);
  const pin = rfPins.pinOf(mac);
  const earlierAt = lockLinks.firstOpenedAt(mac);
  const unlock: Unlock = {
    hwId: mac,
    relockSeconds: RELOCK_SECONDS,
    pin,
    gatewayRelocks: relock.byGateway,
    earlierAt,
  };
  return {
    via: 'zigbee',
    detail: { via: 'zigbee', mac, gatewayId: row.gateway_id },
    relock,
    isAlone: earlierAt === null,
    leadsThere: () => context.table.door.get(row.id)?.mac === mac && !rs485.relay(row.id),
    send: (released, timeoutMs) => send(row, lock, unlock, { released, timeoutMs }, context),
  };
}

/** A lock that is unlocked for a time locks itself afterwards, and the door would stand open no more. */
function assertLocked(doorId: string, standOpen: Standing): void {
  if (!standOpen.isOn(doorId)) return;
  const until = new Date(standOpen.of(doorId)?.row.until_at ?? 0).toISOString();
  throw new GatehouseError(
    'STANDS_OPEN',
    `Nothing was sent: the door stands open until ${until}. End that before it is unlocked by itself.`,
  );
}

async function fire(
  row: DoorRow,
  deviceId: string,
  { rs485, log }: OpeningContext,
  caller: Caller,
): Promise<End> {
  try {
    const { outcome } = await rs485.pulse(deviceId, caller);
    const reason =
      outcome === 'unknown'
        ? 'the command to close the relay was sent, and the device did not confirm it'
        : null;
    return { result: { outcome, reason } };
  } catch (error) {
    if (error instanceof GatehouseError) return { refusal: error };
    return endOfFault(error, row, log);
  }
}

async function send(
  row: DoorRow,
  lock: LockAddress,
  unlock: Unlock,
  { released, timeoutMs }: { released: Promise<void>; timeoutMs: number },
  { lockLinks, log }: OpeningContext,
): Promise<{ end: End; relock?: RelockWay }> {
  const known = (end: End) => (lockLinks.isOpeningReported(unlock.hwId) ? confirmedBy(end) : end);
  try {
    const { outcome, relock } = await lockLinks.unlock(lock, unlock, timeoutMs, released);
    return { end: known({ result: { outcome, reason: null } }), relock };
  } catch (error) {
    return { end: known(endOfFault(error, row, log)) };
  }
}

/** A driver that has started just now does not know whether the event may be of a command before; here it is known. */
function confirmedBy(end: End): End {
  const isOpen = 'result' in end && (end.result.outcome === 'unknown' || end.result.outcome === 'accepted');
  return isOpen ? { result: { outcome: 'confirmed', reason: null } } : end;
}

/**
 * Who locks a door again after one unlock: the lock, where it is known to; else the gateway. In the same commit as the intent
 * it is stored that the door has to be seen locked, and it is forgotten when the answer says that nothing opened. Locks do not
 * relock when that was switched off at the lock, or when the bolt jams: the gateway locks those too (closing.ts).
 */
interface Relock {
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

function relockOf(
  door: DoorRow,
  mac: string,
  caller: Caller,
  { table, locks, closings }: OpeningContext,
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

export function isByLock(by: RelockWay | null | undefined): boolean {
  return by === 'timedUnlock' || by === 'autoRelock';
}

/** So long a lock that relocks by itself has for that and for its report. */
export function watchMs(by: RelockWay | undefined, known: LockReport['relock']): number {
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
