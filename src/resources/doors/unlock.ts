/**
 * Opens a door now or not at all: an intent in the audit before, the outcome after. Each request is sent once at most;
 * nothing is ever queued or sent again, and what no one can know is said to be unknown.
 */
import type { RelockWay } from '../../../drivers/contract/settings.ts';
import { HELD_FRAME_MS, type Unlock } from '../../../drivers/contract/zgate.ts';
import { whenUnreadable } from '../../platform/database/last-read.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import type { LastActuation } from '../../services/actuations/actuations.ts';
import type { Busy } from './busy.ts';
import type { DoorContext } from './context.ts';
import { addressOf, DEADLINE_MS, type LockAddress } from './lock-links.ts';
import type { UnlockResult } from './lock-schema.ts';
import { AUDITED, type End, endOfFault, noLock, offline } from './outcome.ts';
import { isSameRelay } from './relay-hold.ts';
import { RELOCK_SECONDS, type Relock, type RelockOptions, relockOf } from './relocking.ts';
import { assertPin, type RfPins } from './rf-pin.ts';
import { type LastUnlock, lastUnlockDetail } from './schema.ts';
import type { StandOpen } from './stand-open.ts';
import { type DoorRow, existing } from './table.ts';

export interface UnlockOptions extends RelockOptions, DoorContext {
  busy: Busy;
  standOpen: Pick<StandOpen, 'isOn' | 'of'>;
  rfPins: Pick<RfPins, 'pinOf'>;
}

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

export function openUnlocks(options: UnlockOptions): Unlocks {
  const { table, actuations, clock, busy } = options;

  async function open(row: DoorRow, way: Way, caller: Caller): Promise<UnlockResult> {
    const { principal, correlationId, isGone } = caller;
    const now = clock.monotonic();
    const { askedAt = now } = caller;
    const { via, isAlone } = way;
    const own = { principal, action: UNLOCK, object: `door/${row.id}`, correlationId };
    const intent = { ...own, way: via, askedAt, isAlone };
    const { promise: released, resolve: release, reject: withdraw } = Promise.withResolvers<void>();
    // The way to the radio takes as long as the disk does.
    const sending = way.send(released, Math.max(1, Math.floor(DEADLINE_MS - (now - askedAt))));
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
      clock.monotonic() - askedAt > DEADLINE_MS - HELD_FRAME_MS
        ? 'the disk was too slow, or the gateway stood still, for it to come in time'
        : (await isGone?.())
          ? 'the client disconnected before the command was sent'
          : misled(way);
    if (late) withdraw(new Error(late));
    else release();
    const { end, relock } = late ? { end: { refusal: offline(row, late) } } : await sending;
    const [outcome, detail] =
      'result' in end
        ? [AUDITED[end.result.outcome], { ...way.detail, ...end.result }]
        : ['failed', { ...way.detail, error: end.refusal.code, reason: end.refusal.message }];
    await actuations.end(intent, outcome, detail, () => way.relock?.settle(end));
    way.relock?.settled(end, relock);
    if ('refusal' in end) throw end.refusal;
    return { doorId: row.id, via, ...end.result };
  }

  return {
    async unlock(doorId, caller) {
      const row = existing(table, doorId);
      const way = wayTo(row, options, caller);
      return busy.during(doorId, () => open(row, way, caller));
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

/** As …/state shows it. */
export function lastUnlockOf(last: LastActuation | undefined): LastUnlock | null {
  if (!last) return null;
  const { via, reason, outcome = 'failed', lateOutcome } = lastUnlockDetail.parse(last.detail);
  return {
    at: new Date(last.at).toISOString(),
    by: last.principalId,
    via,
    reason,
    outcome: last.outcome === null ? null : outcome,
    lateOutcome: lateOutcome && { ...lateOutcome, at: new Date(lateOutcome.at).toISOString() },
  };
}

/** Throws NO_LOCK, STANDS_OPEN, PIN_REQUIRED or DEVICE_OFFLINE. */
function wayTo(row: DoorRow, options: UnlockOptions, caller: Caller): Way {
  const { rs485, lockLinks, rfPins } = options;
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
        return { end: await fire(row, deviceId, options, caller) };
      },
    };
  }
  const { mac } = row;
  if (mac === null) throw noLock();
  assertLocked(row.id, options);
  assertPin(mac, options.locks.report(row), rfPins);
  const lock = addressOf(row);
  const unreachable = lockLinks.unreachable(lock);
  if (unreachable !== undefined) throw offline(row, unreachable);
  const relock = relockOf(row, mac, caller, options);
  const pin = rfPins.pinOf(mac);
  const earlierAt = options.openingCommands.firstBegunAt(mac);
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
    leadsThere: () => options.table.door.get(row.id)?.mac === mac && !rs485.relay(row.id),
    send: (released, timeoutMs) => send(row, lock, unlock, { released, timeoutMs }, options),
  };
}

/** A lock that is unlocked for a time locks itself afterwards, and the door would stand open no more. */
function assertLocked(doorId: string, { standOpen }: UnlockOptions): void {
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
  { rs485, log }: UnlockOptions,
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
  { lockLinks, openingCommands, log }: UnlockOptions,
): Promise<{ end: End; relock?: RelockWay }> {
  const known = (end: End) => (openingCommands.isReported(unlock.hwId) ? confirmedBy(end) : end);
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
