/** A configuration to a lock, whole: by its own cluster, or what a standard lock can carry of it. */
import { type Clock, DriverError } from '../contract/driver.ts';
import type { LockApplied, LockApply } from '../contract/settings.ts';
import { HELD_FRAME_MS } from '../contract/zgate.ts';
import { commandFrame, type TransferFrame, transferOf, transferStatus } from './lock-cluster.ts';
import type { Lock } from './locks.ts';
import { LOCK_CLUSTER, type Radio, type ZclReply } from './radio.ts';
import { limitsOf, unsupportedOf } from './standard-lock.ts';
import { field } from './values.ts';
import { statusName } from './zcl-status.ts';

const STEP_MS = HELD_FRAME_MS;
/** 0 to 254: in an answer 255 is read as a value that is missing (ZCL rev. 8, 2.6.2). */
const TRANSFER_IDS = 0xff;

export interface ApplyOptions {
  radio: Pick<Radio, 'send' | 'attribute' | 'meta'>;
  clock: Clock;
  lock: Lock;
  manufacturerCode: number | undefined;
  /** Monotonic milliseconds; a frame that could arrive after it is not sent. */
  deadline: number;
  /** A number of the caller's, another one each time. */
  next(): number;
  /** By address: the transfers that were begun and not put in force. */
  unfinished: Map<string, number>;
  /** Fires: no further frame leaves. What has left is waited for, since the lock may have it. */
  signal: AbortSignal;
}

/** Rejects with a DriverError. */
export async function applyConfiguration(apply: LockApply, options: ApplyOptions): Promise<LockApplied> {
  const { lock, manufacturerCode, radio } = options;
  return lock.hasOwnCluster && manufacturerCode !== undefined
    ? transfer(apply, manufacturerCode, options)
    : {
        ...versionsOf(apply),
        payloads: [],
        unsupported: unsupportedOf(apply.configuration, limitsOf(lock, radio)),
      };
}

async function transfer(
  apply: LockApply,
  manufacturerCode: number,
  options: ApplyOptions,
): Promise<LockApplied> {
  const { unfinished, lock } = options;
  // A lock is busy for half a minute with a transfer that broke off, as each does that is superseded; under its number it
  // begins again.
  const transferId = unfinished.get(lock.ieee) ?? options.next() % TRANSFER_IDS;
  unfinished.set(lock.ieee, transferId);
  const payloads: string[] = [];
  for (const frame of transferOf(apply, transferId)) {
    const tsn = options.next() % 0x1_00;
    const sent = { cluster: LOCK_CLUSTER, command: frame.command, payload: frame.payload, tsn };
    const reply = await exchange({ ...sent, scope: 'cluster' }, options);
    settle(reply, frame, transferId, apply.configVersion);
    payloads.push(Buffer.from(commandFrame(frame, { manufacturerCode, tsn })).toString('base64'));
  }
  unfinished.delete(lock.ieee);
  return { ...versionsOf(apply), payloads };
}

/** Throws unless the lock took the frame. */
function settle(payload: unknown, { command }: TransferFrame, transferId: number, version: number): void {
  const failure = field(payload, 'statusCode');
  if (failure !== undefined)
    throw new DriverError('REFUSED', `the lock does not take the command ${command}: ${statusName(failure)}`);
  const result = {
    transferId: field(payload, 'transferId'),
    status: field(payload, 'status'),
    configVersion: field(payload, 'configVersion'),
  };
  const inForce = command === 'commit' ? version : undefined;
  switch (transferStatus(result, transferId, inForce)) {
    case 'ok':
      return;
    case 'unsupported':
      throw new DriverError('REFUSED', 'the lock does not support a part of the configuration');
    case 'older':
      throw new DriverError('REFUSED', `the lock has a newer configuration than version ${version}`);
    case 'busy':
      throw new DriverError('BUSY', 'the lock is busy with another configuration');
    case 'lost':
      throw new DriverError('NO_REPLY', 'the lock lost a part of the configuration; it has the earlier one');
    case 'nonsense':
      throw new DriverError('BAD_REPLY', `the lock answered nonsense to a ${command}`);
  }
}

type Sent = Pick<Parameters<Radio['send']>[0], 'cluster' | 'command' | 'payload' | 'scope' | 'tsn'>;

/** The payload of the reply. Throws when there is none. */
async function exchange(sent: Sent, { radio, lock, deadline, signal }: ApplyOptions): Promise<unknown> {
  const { ieee, endpoint } = lock;
  const notAfter = deadline - HELD_FRAME_MS;
  const reply: ZclReply = await radio.send({
    ...sent,
    ieee,
    endpoint,
    notAfter,
    timeoutMs: STEP_MS,
    withdrawn: signal,
  });
  switch (reply.kind) {
    case 'answered':
      return reply.payload;
    case 'late':
      throw new DriverError(
        'DEADLINE_PASSED',
        'the rest of the configuration could arrive after the deadline',
      );
    case 'unsent':
      throw new DriverError('NO_REPLY', `the lock could not be reached: ${reply.reason}`);
    case 'unanswered':
      throw new DriverError('NO_REPLY', `the lock did not answer: ${reply.reason}`);
  }
}

function versionsOf({ hwId: _, configuration: __, ...versions }: LockApply): Omit<LockApplied, 'payloads'> {
  return versions;
}
