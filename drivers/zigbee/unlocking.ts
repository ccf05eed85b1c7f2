/** Commands to the bolt: one frame, at once or not at all, and its outcome (unlock.ts decides). */
import { type Clock, DriverError } from '../contract/driver.ts';
import { settles, unlessAborted } from '../contract/waiting.ts';
import { HELD_FRAME_MS, type Unlocked } from '../contract/zgate.ts';
import type { Facts } from './messages.ts';
import { DOOR_LOCK, KNOWN, type Radio, type ZclReply, type ZclRequest } from './radio.ts';
import { DOOR_LOCK_ATTRIBUTE, readingOf, valuesIn } from './standard-lock.ts';
import {
  type ActuationInput,
  actuationBegun,
  actuationStep,
  type Earlier,
  hasEnded,
  isReadDue,
  isShowing,
  type Target,
} from './unlock.ts';

/** For the confirmation of the coordinator, and again for the answer of the lock. */
const ANSWER_MS = HELD_FRAME_MS;
/** A library that has not settled it by then hangs, and its process is replaced. */
export const UNSETTLED_MS = 2 * ANSWER_MS + 1_000;
/** After it was accepted, for the report of the bolt: a motor takes a second or two. */
const CONFIRM_MS = 3_000;
/** After a report of the bolt, for the answer or for an event that names who moved it: a lock sends them in a row. */
const EVENT_MS = 1_500;
/** Between the first sign of a lock that was away and its answer to what was sent before. */
const HEARD_MS = 1_000;
/** Before the deadline the state is read when no report came. */
const READ_MS = 2_000;

/** A command to the bolt. */
export interface BoltCommand {
  /** Its name in the library, and its fields. */
  command: string;
  payload: Record<string, unknown>;
  target: Target;
}

export interface ActuationOptions {
  radio: Pick<Radio, 'send'>;
  clock: Clock;
  ieee: string;
  endpoint: number;
  /** Monotonic milliseconds. */
  deadline: number;
  /** What an earlier command that opens the lock may still do. */
  earlier: Earlier;
  /** Another command that opens the lock has begun since: it is not to be locked on the way. */
  isReopened(): boolean;
  /** Events of the lock name the radio. */
  namesRadio: boolean;
  /** Of a lock command: as of a LockNow. */
  eventConfirms: boolean;
  /** A lock command is sent once more: the lock may report both. */
  sentAgain(): void;
  /** The lock is to stand open: its mode may have moved the bolt before this command, and who moved it does not matter. */
  byAnyone: boolean;
  /** Another command to the lock begins: no question is to keep it waiting. */
  superseded: AbortSignal;
  /** As of a DriverCommand. */
  released: Promise<void> | undefined;
  /** What the lock says by itself meanwhile; `listen` gives back how to stop. */
  listen(hear: (facts: Facts) => void): () => void;
}

/** `refused`: the status of ZCL that the lock answered with. It does nothing then. */
type ActuationEnd = { outcome: Unlocked['outcome'] } | { refused: number };

/**
 * One frame, at once or not at all. Rejects with a DriverError: DEVICE_OFFLINE and DEADLINE_PASSED when nothing was sent,
 * OUTCOME_UNKNOWN when it was and nothing came back until the signal fired, which it does at the deadline.
 */
export async function actuate(
  command: BoltCommand,
  options: ActuationOptions,
  signal: AbortSignal,
): Promise<ActuationEnd> {
  const { radio, clock, deadline } = options;
  const notAfter = deadline - HELD_FRAME_MS;
  if (clock.monotonic() > notAfter) throw tooLate();
  const progress = openProgress(command.target, options, signal);
  try {
    const request = { ...requestOf(command, options, notAfter), ...progress.request };
    const sending = command.target === 'locked' ? sendUntilHeard(request, options) : radio.send(request);
    const reply = await Promise.race([sending, progress.ended]);
    if (reply) progress.take(inputOf(reply));
    await watchBolt(command.target, options, progress);
    await progress.ended;
    return progress.end();
  } finally {
    progress.stop();
  }
}

/**
 * A lock that speaks after the command left and does not answer it was away: it is sent the command once more. To lock twice
 * does no harm, nor does to lock late.
 */
async function sendUntilHeard(
  request: ZclRequest & Pick<Progress['request'], 'left' | 'known'>,
  { radio, clock, deadline, listen, isReopened, sentAgain }: ActuationOptions,
): Promise<ZclReply> {
  const [missed, over] = [new AbortController(), new AbortController()];
  let isSent = false;
  const stop = listen(() => {
    if (!isSent) return;
    clock.sleep(HEARD_MS, over.signal).then(
      () => isReopened() || missed.abort(KNOWN),
      () => undefined,
    );
  });
  const left = () => {
    isSent = true;
    request.left?.();
  };
  const known = request.known ? AbortSignal.any([request.known, missed.signal]) : missed.signal;
  try {
    const reply = await radio.send({ ...request, left, known });
    const isAway = reply.kind === 'unanswered' && missed.signal.aborted && !request.known?.aborted;
    if (!isAway) return reply;
    sentAgain();
    return await radio.send({ ...request, notAfter: deadline });
  } finally {
    over.abort(KNOWN);
    stop();
  }
}

function tooLate(): DriverError {
  return new DriverError(
    'DEADLINE_PASSED',
    `not sent: it would have left with less than ${HELD_FRAME_MS / 1_000} s to its deadline, for so long a command can be held on its way; the gateway or its coordinator was too slow, or busy`,
  );
}

function requestOf(
  { command, payload, target }: BoltCommand,
  { ieee, endpoint, released }: ActuationOptions,
  notAfter: number,
): ZclRequest {
  return {
    ieee,
    endpoint,
    cluster: DOOR_LOCK,
    scope: 'cluster',
    command,
    payload,
    notAfter,
    timeoutMs: ANSWER_MS,
    actuates: true,
    ...(target === 'unlocked' && { opens: true }),
    ...(released && { released }),
  };
}

/** Throws when nothing was sent. */
function inputOf(reply: ZclReply): ActuationInput {
  switch (reply.kind) {
    case 'late':
      throw tooLate();
    case 'unsent':
      throw new DriverError('DEVICE_OFFLINE', `not sent: ${reply.reason}`);
    default:
      return reply;
  }
}

interface Progress {
  /** Of the request: what the radio reports while it sends. */
  request: Pick<ZclRequest, 'left' | 'unconfirmed' | 'known' | 'withdrawn'>;
  take(input: ActuationInput): void;
  isAccepted(): boolean;
  isShowing(): boolean;
  /** Resolves when the lock has shown something that is to be read. */
  readDue(): Promise<void>;
  /** The lock has accepted it, after it had shown something that an earlier command may have done. */
  isUnattributed(): boolean;
  /** Fires when the outcome is known, or the caller waits no longer. */
  over: AbortSignal;
  /** Resolves then. */
  ended: Promise<void>;
  /** Throws OUTCOME_UNKNOWN. */
  end(): ActuationEnd;
  stop(): void;
}

function openProgress(
  target: Target,
  { listen, clock, earlier, namesRadio, eventConfirms, byAnyone }: ActuationOptions,
  signal: AbortSignal,
): Progress {
  let state = actuationBegun(target, earlier, namesRadio && !byAnyone, eventConfirms);
  const settled = new AbortController();
  const over = AbortSignal.any([settled.signal, signal]);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  over.addEventListener('abort', () => resolve(), { once: true });
  if (over.aborted) resolve();
  /** Of the command itself: the lock is free for the question. */
  const asks = new AbortController();
  let due = Promise.withResolvers<void>();

  function take(input: ActuationInput): void {
    const wasShowing = isShowing(state);
    state = actuationStep(state, input);
    if (hasEnded(state)) {
      settled.abort(KNOWN);
    } else if (isReadDue(state)) {
      asks.abort(KNOWN);
      due.resolve();
    } else if (isShowing(state) && !wasShowing && !over.aborted)
      // An answer, or an event that names who moved the bolt, may follow.
      clock.sleep(EVENT_MS, over).then(
        () => take({ kind: 'unnamed' }),
        () => undefined,
      );
  }
  const stop = listen((facts) => {
    if (facts.jam) take({ kind: 'jam' });
    if (facts.unlockedByRadio) take({ kind: 'operated', to: 'unlocked' });
    if (facts.lockedByRadio) take({ kind: 'operated', to: 'locked' });
    if (facts.unlockedByRadio === false && !byAnyone) take({ kind: 'operatedByOther' });
    if (facts.lockState !== undefined) take({ kind: 'lockState', value: facts.lockState });
  });
  return {
    request: {
      left: () => take({ kind: 'left' }),
      unconfirmed: (reason) => take({ kind: 'unconfirmed', reason }),
      known: AbortSignal.any([over, asks.signal]),
      withdrawn: signal,
    },
    take,
    isAccepted: () => state.phase === 'accepted',
    isShowing: () => isShowing(state),
    readDue() {
      if (!isReadDue(state)) due = Promise.withResolvers();
      return due.promise;
    },
    isUnattributed: () => state.phase === 'accepted' && state.unattributed,
    over,
    ended,
    end() {
      if (state.phase === 'begun') throw tooLate();
      // Nothing more comes: what the lock showed decides.
      if (state.phase === 'sent') take({ kind: 'unanswered', reason: 'no answer in time' });
      take({ kind: 'waited' });
      if (state.phase === 'done') return { outcome: state.outcome };
      if (state.phase === 'refused') return { refused: state.status };
      throw unknownOutcome(state.phase === 'sent' ? state.doubt : undefined, signal);
    },
    stop,
  };
}

function unknownOutcome(doubt: string | undefined, { reason }: AbortSignal): DriverError {
  const why = reason instanceof DriverError ? reason.message : 'the caller stopped waiting';
  const message = `it was sent, and the lock may have carried it out (${doubt ?? why})`;
  return new DriverError('OUTCOME_UNKNOWN', message, { cause: reason });
}

/**
 * What the lock shows is read, for it may be older than the command. A lock that accepted it and shows nothing is asked once;
 * one that showed what an earlier command may have done is asked at once, and so is one that did not answer a lock command.
 */
async function watchBolt(target: Target, options: ActuationOptions, progress: Progress): Promise<void> {
  const { clock, deadline } = options;
  const { over } = progress;
  const look = async () => progress.take({ kind: 'read', value: await readState(options, over) });
  const isAccepted = progress.isAccepted();
  const lookUntil = async (time: number) => {
    while (await settles(progress.readDue(), time - clock.monotonic(), clock, over)) await look();
  };
  try {
    if (progress.isUnattributed() || (target === 'locked' && !isAccepted)) await look();
    if (!isAccepted) return await lookUntil(deadline);
    await lookUntil(Math.min(clock.monotonic() + CONFIRM_MS, deadline - READ_MS));
    over.throwIfAborted();
    await look();
    // It has the time to name who moved the bolt.
    if (progress.isShowing()) await lookUntil(clock.monotonic() + EVENT_MS);
  } catch {
    // It is over: what the lock has shown decides.
  }
  progress.take({ kind: 'waited' });
}

export async function readState(
  {
    radio,
    clock,
    ieee,
    endpoint,
    superseded,
  }: Pick<ActuationOptions, 'radio' | 'clock' | 'ieee' | 'endpoint' | 'superseded'>,
  signal: AbortSignal,
): Promise<unknown> {
  const over = AbortSignal.any([signal, superseded]);
  over.throwIfAborted();
  const reply = await unlessAborted(
    radio.send({
      ieee,
      endpoint,
      ...readingOf([DOOR_LOCK_ATTRIBUTE.lockState]),
      // A lock that sleeps fetches the question when it polls. Who cannot wait for that long ends the waiting.
      notAfter: clock.monotonic() + READ_MS,
      timeoutMs: ANSWER_MS,
      known: over,
      withdrawn: over,
    }),
    over,
  );
  return reply.kind === 'answered' ? valuesIn(reply.payload).get(DOOR_LOCK_ATTRIBUTE.lockState) : undefined;
}
