/**
 * What became of a command to a lock, by what its driver answered: sent, and then confirmed … unknown (AUDITED); or certainly not
 * sent, and then an error of the interface. How a driver comes to that is drivers/zigbee/unlock.ts; of a relay, pulse.ts of
 * src/resources/rs485 decides the same.
 */
import { DriverError } from '../../../drivers/contract/driver.ts';
import { GatehouseError, ownFault } from '../../platform/errors.ts';
import type { Log } from '../../platform/log.ts';
import type { LockResult, UnlockResult } from './lock-schema.ts';
import type { DoorRow } from './table.ts';

export type Outcome = Pick<UnlockResult, 'outcome' | 'reason'>;
/** The same of what is tried again until it succeeds. waiting: nothing was sent yet. */
export type Attempted = Pick<LockResult, 'outcome' | 'reason'>;
/** How it ended: sent, or certainly not. `settlesMs`: of the end of standing open, as its driver says. */
export type End = { result: Outcome; settlesMs?: number } | { refusal: GatehouseError };

/** As in the audit. */
export const AUDITED: Record<Attempted['outcome'], string> = {
  confirmed: 'done',
  accepted: 'done',
  jammed: 'failed',
  refused: 'refused',
  unknown: 'unknown',
  waiting: 'waiting',
};

/** A fault of Gatehouse, as the audit and …/state have it. */
export const INTERNAL = { code: 'INTERNAL', message: 'the gateway itself failed; its log says why' };

type Place = Pick<DoorRow, 'id' | 'gateway_id'>;

/** Never rejects. */
export async function endOf(
  sending: Promise<{ outcome: Outcome['outcome']; settlesMs?: number | undefined }>,
  place: Place,
  log: Log,
): Promise<End> {
  try {
    const { outcome, settlesMs = 0 } = await sending;
    return { result: { outcome, reason: null }, settlesMs };
  } catch (error) {
    return endOfFault(error, place, log);
  }
}

export function endOfFault(error: unknown, row: Place, log: Log): End {
  if (!(error instanceof DriverError)) {
    log.error({ door: row.id, err: error }, 'a command to a lock failed for a reason of ours');
    return { result: { outcome: 'unknown', reason: INTERNAL.message } };
  }
  switch (error.code) {
    case 'LINK_LOST':
    case 'DEVICE_OFFLINE':
    case 'DEADLINE_PASSED':
      return { refusal: offline(row, error.message) };
    case 'INVALID_COMMAND':
    case 'INVALID_OPTIONS':
      log.error({ door: row.id, err: error }, 'a driver did not take a command of ours to a lock');
      return { refusal: ownFault('Nothing was sent', error) };
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

export function noOpener(): GatehouseError {
  return new GatehouseError(
    'NO_LOCK',
    'The door has neither a lock nor a relay: have its lock join, or give an RS-485 device its doorId.',
  );
}

/** For what is of a lock alone. */
export function noLock(): GatehouseError {
  return new GatehouseError('NO_LOCK', 'The door has no lock: have it join, or name its mac.');
}

export function relayKeepsNone(): GatehouseError {
  return new GatehouseError(
    'NO_LOCK',
    'A relay opens this door: only a lock keeps PINs and cards. Give its cards to the allow-list, or the door a lock.',
  );
}

export function offline({ id, gateway_id }: Place, reason: string): GatehouseError {
  const gateway = gateway_id === null ? 'its gateway' : `gateway ${gateway_id}`;
  return new GatehouseError(
    'DEVICE_OFFLINE',
    `Nothing was sent: the lock of door ${id} cannot be reached (${reason}). See to the lock and to ${gateway}.`,
  );
}
