/**
 * Opens a door now or not at all: an intent in the audit before, the outcome after. Each request is sent once at most;
 * nothing is ever queued or sent again, and what nobody can know is said to be unknown.
 */
import { DriverError } from '../../drivers/driver.ts';
import type { Unlock, Unlocked } from '../../drivers/zgate.ts';
import type { Actuations, LastActuation } from '../actuations/actuations.ts';
import type { Clock } from '../clock.ts';
import { GatehouseError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Caller } from '../principal.ts';
import { HELD_FRAME_MS, type LockAddress, type Relay } from './configuration.ts';
import type { UnlockResult } from './lock-schema.ts';
import { type LastUnlock, lastUnlockDetail } from './schema.ts';
import { type DoorRow, type DoorTable, existing } from './table.ts';

/**
 * From the request to the lock: the time for which a parent may hold the frame of a sleeping lock, and two seconds for
 * the disk and the way to the radio. Somebody stands at the door: what comes later surprises somebody else.
 */
export const DEADLINE_MS = HELD_FRAME_MS + 2_000;

/** Time to open the door. */
const RELOCK_SECONDS = 5;

export interface UnlockOptions {
  table: DoorTable;
  actuations: Actuations;
  clock: Clock;
  log: Log;
  relay(doorId: string): Relay | undefined;
  /** Why no lock of this gateway can be reached now; undefined when nothing speaks against it. */
  unreachable(lock: LockAddress): string | undefined;
  /**
   * Has the lock unlock within `timeoutMs`. Nothing reaches it before `released` resolves; when that rejects, nothing ever
   * does. Rejects with a DriverError.
   */
  unlockLock(
    lock: LockAddress,
    unlock: Unlock,
    timeoutMs: number,
    released: Promise<void>,
  ): Promise<Unlocked>;
  /** Fires the relay of an RS-485 device once, within a deadline of its own. Rejects with a GatehouseError. */
  pulse(deviceId: string, caller: Caller): Promise<{ outcome: 'confirmed' | 'unknown' }>;
}

export type UnlockDoor = (doorId: string, caller: Caller) => Promise<UnlockResult>;

type Outcome = Pick<UnlockResult, 'outcome' | 'reason'>;
/** How it ended: sent, or certainly not. */
type End = { result: Outcome } | { refusal: GatehouseError };

/** One of the two ways to open a door. */
interface Way {
  via: UnlockResult['via'];
  /** For the audit. */
  detail: Record<string, unknown>;
  /** It still leads to this door. */
  leadsThere(): boolean;
  /** Within DEADLINE_MS. Nothing reaches the door before `released` resolves; when that rejects, nothing ever does. */
  send(released: Promise<void>): Promise<End>;
}

/** As in the audit. */
export const UNLOCK = 'door.unlock';
const AUDITED: Record<UnlockResult['outcome'], string> = {
  confirmed: 'done',
  accepted: 'done',
  jammed: 'failed',
  refused: 'refused',
  unknown: 'unknown',
};

export function openUnlock(options: UnlockOptions): UnlockDoor {
  const { table, actuations, clock } = options;
  const underWay = new Set<string>();

  async function open(row: DoorRow, way: Way, caller: Caller): Promise<UnlockResult> {
    const { principal, correlationId, isGone } = caller;
    const startedAt = clock.monotonic();
    const { via } = way;
    const intent = { principal, action: UNLOCK, object: `door/${row.id}`, correlationId };
    const { promise: released, resolve: release, reject: withdraw } = Promise.withResolvers<void>();
    // The way to the radio takes as long as the disk does.
    const sending = way.send(released);
    // Where nothing is sent, nobody waits for them.
    for (const promise of [released, sending]) promise.catch(() => undefined);
    await actuations.begin(intent, way.detail).catch((error) => {
      withdraw(error);
      throw error;
    });
    const late =
      clock.monotonic() - startedAt > DEADLINE_MS - HELD_FRAME_MS
        ? 'the disk was too slow for it to come in time'
        : (await isGone?.())
          ? 'whoever asked hung up before it was sent'
          : !way.leadsThere() && 'the door was given another lock or relay before it was sent';
    if (late) withdraw(new Error(late));
    else release();
    const end = late ? { refusal: offline(row, late) } : await sending;
    const [outcome, detail] =
      'result' in end
        ? [AUDITED[end.result.outcome], { via, ...end.result }]
        : ['failed', { via, error: end.refusal.code, reason: end.refusal.message }];
    await actuations.end(intent, outcome, detail);
    if ('refusal' in end) throw end.refusal;
    return { doorId: row.id, via, ...end.result };
  }

  return async (doorId, caller) => {
    const row = existing(table, doorId);
    const way = wayTo(row, options, caller);
    if (underWay.has(doorId)) {
      const message = 'This door is being unlocked: wait for the outcome of that. Nothing more was sent.';
      throw new GatehouseError('IN_PROGRESS', message);
    }
    underWay.add(doorId);
    try {
      return await open(row, way, caller);
    } finally {
      underWay.delete(doorId);
    }
  };
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

/** Throws NO_LOCK or DEVICE_OFFLINE. */
function wayTo(row: DoorRow, options: UnlockOptions, caller: Caller): Way {
  const device = options.relay(row.id);
  if (device) {
    const { deviceId } = device;
    return {
      via: 'rs485',
      detail: { via: 'rs485', deviceId },
      leadsThere: () => options.relay(row.id)?.deviceId === deviceId,
      async send(released) {
        await released;
        return fire(row, deviceId, options, caller);
      },
    };
  }
  const { mac } = row;
  if (mac === null)
    throw new GatehouseError(
      'NO_LOCK',
      'The door has neither a lock nor a relay: have its lock join, or give an RS-485 device its doorId.',
    );
  const lock = { doorId: row.id, gatewayId: row.gateway_id, networkId: row.network_id };
  const unreachable = options.unreachable(lock);
  if (unreachable !== undefined) throw offline(row, unreachable);
  return {
    via: 'zigbee',
    detail: { via: 'zigbee', mac, gatewayId: row.gateway_id },
    leadsThere: () => options.table.door.get(row.id)?.mac === mac && !options.relay(row.id),
    send: (released) =>
      send(
        row,
        lock,
        { hwId: mac, relockSeconds: RELOCK_SECONDS, pin: null, gatewayRelocks: false },
        released,
        options,
      ),
  };
}

async function fire(
  row: DoorRow,
  deviceId: string,
  { pulse, log }: UnlockOptions,
  caller: Caller,
): Promise<End> {
  try {
    const { outcome } = await pulse(deviceId, caller);
    const reason = outcome === 'unknown' ? 'the relay was told to close, and nothing confirmed it' : null;
    return { result: { outcome, reason } };
  } catch (error) {
    if (error instanceof GatehouseError) return { refusal: error };
    log.error({ door: row.id, err: error }, 'an unlock failed for a reason of ours');
    return { result: { outcome: 'unknown', reason: 'the gateway itself failed; its log says why' } };
  }
}

async function send(
  row: DoorRow,
  lock: LockAddress,
  unlock: Unlock,
  released: Promise<void>,
  { unlockLock, log }: UnlockOptions,
): Promise<End> {
  try {
    const { outcome } = await unlockLock(lock, unlock, DEADLINE_MS, released);
    return { result: { outcome, reason: null } };
  } catch (error) {
    if (!(error instanceof DriverError)) {
      log.error({ door: row.id, err: error }, 'an unlock failed for a reason of ours');
      return { result: { outcome: 'unknown', reason: 'the gateway itself failed; its log says why' } };
    }
    switch (error.code) {
      case 'LINK_LOST':
      case 'DEVICE_OFFLINE':
      case 'DEADLINE_PASSED':
      case 'INVALID_COMMAND':
      case 'INVALID_OPTIONS':
        return { refusal: offline(row, error.message) };
      case 'BUSY':
        return { refusal: new GatehouseError('QUEUE_FULL', `Nothing was sent: ${error.message}.`) };
      case 'REFUSED':
        return { result: { outcome: 'refused', reason: error.message } };
      // It was sent, and what came back says nothing for certain.
      case 'NO_REPLY':
      case 'BAD_REPLY':
      case 'OUTCOME_UNKNOWN':
        return { result: { outcome: 'unknown', reason: error.message } };
    }
  }
}

function offline({ id, gateway_id }: DoorRow, reason: string): GatehouseError {
  const gateway = gateway_id === null ? 'its gateway' : `gateway ${gateway_id}`;
  return new GatehouseError(
    'DEVICE_OFFLINE',
    `Nothing was sent: the lock of door ${id} cannot be reached (${reason}). See to the lock and to ${gateway}.`,
  );
}
