/** The commands of doors to a lock: lock, stand open, end that; and what the failure of any such command means. */
import { DriverError } from '../../../drivers/contract/driver.ts';
import type { LockNow, StandingEnded } from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import { GatehouseError, ownFault } from '../../platform/errors.ts';
import type { Log } from '../../platform/log.ts';
import { AWAKE } from '../../platform/waking.ts';
import { HELD_FRAME_MS, type LockAddress } from './configuration.ts';
import type { UnlockResult } from './lock-schema.ts';
import type { DoorRow } from './table.ts';

/**
 * Of an unlock, from the request to the lock: the time for which a parent may hold the frame of a sleeping lock, and two
 * seconds for the disk and the way to the radio. Later the person who asked may have left the door.
 */
export const DEADLINE_MS = HELD_FRAME_MS + 2_000;

/** Locking late does no harm: the frame and, when no report came, a question for the bolt; a parent may hold both. */
const LOCK_DEADLINE_MS = 2 * HELD_FRAME_MS + 4_000;

/**
 * To begin or end standing open takes up to five frames, one after the other, and a parent may hold each. What begins late
 * ends at its time all the same.
 */
const CHANGE_DEADLINE_MS = 60_000;

/** The caller is answered after so long, and the command goes on: many clients give up after 10 s. */
const ANSWER_MS = 9_000;

/**
 * So long a frame that was sent may still arrive: EmberZNet lets a parent hold frames for sleeping children up to 30 s, and
 * five more seconds cover the routes to it.
 */
export const HELD_AT_MOST_MS = 35_000;

type LockCommandKind = 'lock' | 'standOpen' | 'endStandOpen';

/**
 * Has the lock do it within `timeoutMs`. Nothing reaches it before `released`, when given, resolves; when that rejects,
 * nothing ever does. Rejects with a DriverError.
 */
export type ActuateLock = (
  lock: LockAddress,
  command: { kind: LockCommandKind; data: LockNow; released?: Promise<void> },
  timeoutMs: number,
) => Promise<StandingEnded>;

/** `leftMs`: so long standing open may still begin. */
export function deadlineOf(kind: LockCommandKind, leftMs = CHANGE_DEADLINE_MS): number {
  if (kind === 'lock') return LOCK_DEADLINE_MS;
  return Math.max(DEADLINE_MS, Math.min(CHANGE_DEADLINE_MS, Math.floor(leftMs)));
}

/** The outcome, or `meanwhile` when it is not known within ANSWER_MS. The work goes on. */
export async function answerInTime<T>(work: Promise<T>, clock: Clock, meanwhile: T): Promise<T> {
  const answered = new AbortController();
  const late = clock.sleep(ANSWER_MS, answered.signal).then(
    () => meanwhile,
    () => work,
  );
  try {
    return await Promise.race([work, late]);
  } finally {
    answered.abort(AWAKE);
  }
}

export type Outcome = Pick<UnlockResult, 'outcome' | 'reason'>;
/** How it ended: sent, or certainly not. `settlesMs`: of the end of standing open, as its driver says. */
export type End = { result: Outcome; settlesMs?: number } | { refusal: GatehouseError };

/** As in the audit. */
export const AUDITED: Record<UnlockResult['outcome'], string> = {
  confirmed: 'done',
  accepted: 'done',
  jammed: 'failed',
  refused: 'refused',
  unknown: 'unknown',
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

export function noLock(): GatehouseError {
  return new GatehouseError(
    'NO_LOCK',
    'The door has neither a lock nor a relay: have its lock join, or give an RS-485 device its doorId.',
  );
}

export function offline({ id, gateway_id }: Place, reason: string): GatehouseError {
  const gateway = gateway_id === null ? 'its gateway' : `gateway ${gateway_id}`;
  return new GatehouseError(
    'DEVICE_OFFLINE',
    `Nothing was sent: the lock of door ${id} cannot be reached (${reason}). See to the lock and to ${gateway}.`,
  );
}
