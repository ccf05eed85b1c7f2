/** Unlock now: one frame, at once or not at all, and what became of it (unlock.ts decides). */
import { type Clock, DriverError } from '../driver.ts';
import type { Unlocked } from '../zgate.ts';
import type { Facts } from './messages.ts';
import type { Radio, ZclReply, ZclRequest } from './radio.ts';
import { UNLOCK_BEGUN, type UnlockInput, type UnlockState, unlockStep } from './unlock.ts';
import { field } from './values.ts';

/**
 * A parent holds a frame for a sleeping lock for 7.68 s (Zigbee specification R22, nwkTransactionPersistenceTime): what
 * is sent later than this before its deadline could arrive after it.
 */
export const HELD_FRAME_MS = 8_000;
/** For the confirmation of the coordinator, and again for the answer of the lock. */
const ANSWER_MS = HELD_FRAME_MS;
/** A library that has not settled it by then hangs, and its process is replaced. */
export const UNSETTLED_MS = 2 * ANSWER_MS + 1_000;
/** After it was accepted, for the report of the bolt: a motor takes a second or two. */
const CONFIRM_MS = 3_000;
/** For the state to be read when no report came. */
const READ_MS = 2_000;
const LOCK_STATE_ATTRIBUTE = 0x00_00;
const DOOR_LOCK = 'closuresDoorLock';

export interface UnlockingOptions {
  radio: Pick<Radio, 'send'>;
  clock: Clock;
  ieee: string;
  endpoint: number;
  relockSeconds: number;
  /** Monotonic milliseconds. */
  deadline: number;
  /** As of a DriverCommand. */
  released: Promise<void> | undefined;
  /** What the lock says by itself meanwhile; `listen` gives back how to stop. */
  listen(hear: (facts: Facts) => void): () => void;
}

/** Rejects with a DriverError. Firing the signal ends the waiting, not what was sent. */
export async function unlock(options: UnlockingOptions, signal: AbortSignal): Promise<Unlocked> {
  const { radio, clock, deadline } = options;
  const notAfter = deadline - HELD_FRAME_MS;
  if (clock.monotonic() > notAfter) throw tooLate();
  let state: UnlockState = UNLOCK_BEGUN;
  const settled = new AbortController();
  const end = Promise.withResolvers<void>();
  const take = (input: UnlockInput) => {
    state = unlockStep(state, input);
    if (state.phase !== 'done' && state.phase !== 'failed') return;
    settled.abort(state.phase);
    end.resolve();
  };
  const stopListening = options.listen((facts) => {
    if (facts.jam) take({ kind: 'jam' });
    if (facts.unlockedByRadio) take({ kind: 'operated' });
    if (facts.lockState !== undefined) take({ kind: 'lockState', value: facts.lockState });
  });
  try {
    const left = () => take({ kind: 'left' });
    const request = { ...requestOf(options, notAfter), left, known: settled.signal };
    const answered = orAborted(radio.send(request), signal).then((reply) => take(inputOf(reply)));
    await Promise.race([answered, end.promise]);
    if (!settled.signal.aborted) await confirmed(options, take, AbortSignal.any([signal, settled.signal]));
    return outcomeOf(state);
  } finally {
    stopListening();
  }
}

function tooLate(): DriverError {
  return new DriverError(
    'DEADLINE_PASSED',
    `not sent: a lock may fetch the command ${HELD_FRAME_MS / 1_000} s later, which is after the deadline`,
  );
}

function requestOf(
  { ieee, endpoint, relockSeconds, released }: UnlockingOptions,
  notAfter: number,
): ZclRequest {
  const pincodevalue = Buffer.alloc(0);
  const common = {
    ieee,
    endpoint,
    cluster: DOOR_LOCK,
    scope: 'cluster' as const,
    ...(released && { released }),
  };
  return {
    ...common,
    command: 'unlockWithTimeout',
    payload: { timeout: relockSeconds, pincodevalue },
    notAfter,
    timeoutMs: ANSWER_MS,
    actuates: true,
  };
}

function inputOf(reply: ZclReply): UnlockInput {
  switch (reply.kind) {
    case 'answered':
      return { kind: 'answered', payload: reply.payload };
    case 'late':
      throw tooLate();
    case 'unsent':
      throw new DriverError('DEVICE_OFFLINE', `not sent: ${reply.reason}`);
    default:
      return reply;
  }
}

/** Waits for the bolt; a lock that reports nothing is asked once. Does nothing once the signal has fired. */
async function confirmed(
  options: UnlockingOptions,
  take: (input: UnlockInput) => void,
  signal: AbortSignal,
): Promise<void> {
  const { clock, deadline } = options;
  const waitMs = Math.max(0, Math.min(CONFIRM_MS, deadline - clock.monotonic() - READ_MS));
  try {
    await clock.sleep(waitMs, signal);
    take({ kind: 'lockState', value: await readState(options, signal) });
  } catch {
    // It has said enough, or the caller waits no longer: the lock has accepted it all the same.
  }
  take({ kind: 'waited' });
}

async function readState(
  { radio, clock, ieee, endpoint }: UnlockingOptions,
  signal: AbortSignal,
): Promise<unknown> {
  const reply = await orAborted(
    radio.send({
      ieee,
      endpoint,
      cluster: DOOR_LOCK,
      command: 'read',
      scope: 'foundation',
      payload: [{ attrId: LOCK_STATE_ATTRIBUTE }],
      notAfter: clock.monotonic() + READ_MS,
      timeoutMs: READ_MS,
    }),
    signal,
  );
  const [record] = reply.kind === 'answered' && Array.isArray(reply.payload) ? reply.payload : [];
  return field(record, 'attrData');
}

function outcomeOf(state: UnlockState): Unlocked {
  if (state.phase === 'done') return { outcome: state.outcome, relock: 'timedUnlock' };
  if (state.phase === 'failed') throw new DriverError(state.code, state.reason);
  throw new DriverError('OUTCOME_UNKNOWN', 'the lock did not say what became of it');
}

/** What was sent stays sent: whoever no longer waits does not know what became of it. */
function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () =>
      reject(
        signal.reason instanceof DriverError
          ? signal.reason
          : new DriverError('OUTCOME_UNKNOWN', 'nobody waited for what became of it', {
              cause: signal.reason,
            }),
      );
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
