/**
 * A lock that stands open, and its end: by passage mode where it offers one, else unlocked, with its own relock time put
 * aside meanwhile. What it had before is kept with the device before it is overwritten, and given back at the end. It is kept
 * until no write that was not answered can arrive any more, and given back once more if one has arrived after the end.
 */
import { DriverError } from '../contract/driver.ts';
import { HELD_FRAME_MS, type Locked, type StandingEnded, type StandingOpen } from '../contract/zgate.ts';
import type { HeldWrites } from './held-frames.ts';
import { TYPE } from './lock-cluster.ts';
import { DOOR_LOCK, KNOWN, type LockRadio, type ZclReply } from './radio.ts';
import {
  type AttributeWrite,
  attributeName,
  DOOR_LOCK_ATTRIBUTE,
  holidaysIn,
  MODE,
  offersPassage,
  valuesIn,
} from './standard-lock.ts';
import { LOCK_STATE } from './unlock.ts';
import type { ActuationOptions } from './unlocking.ts';
import { field, integer, UINT32_LAST } from './values.ts';
import { STATUS_SUCCESS, statusName } from './zcl-status.ts';

const STEP_MS = HELD_FRAME_MS;
/** Before what was not answered is read back, doubled each time. */
const SETTLE_MS = 2_000;
/** Between the first sign of a lock that is awake and its answer. */
const ANSWER_MS = 500;
/** Of a write that opens nothing: all that the deadline of standing open has room for. */
const TRIES_MAX = 3;
const { lockState, autoRelockTime, operatingMode, supportedOperatingModes } = DOOR_LOCK_ATTRIBUTE;
/** What is changed, and restored. */
const CHANGED = [autoRelockTime, operatingMode];

export interface StandOpenOptions extends Omit<ActuationOptions, 'radio'> {
  radio: LockRadio;
  signal: AbortSignal;
  heldWrites: HeldWrites;
  /** Rejects with a DriverError. */
  move(kind: 'lockDoor' | 'unlockDoor'): Promise<Locked>;
}

/** What the lock had before it stood open, as kept with the device. */
interface Before {
  operatingMode?: number;
  autoRelockTime?: number;
}

type Attributes = ReadonlyMap<number, number>;

export async function standOpen(options: StandOpenOptions): Promise<StandingOpen> {
  const reported = known(options) ?? (await firstRead(options));
  if (mayEnterPassage(options, reported) && (await enterPassage(options, reported))) {
    const now = await onceSent(read(options, [lockState, operatingMode]));
    const holds = now.get(operatingMode) === MODE.passage;
    if (holds && now.get(lockState) === LOCK_STATE.unlocked) return { outcome: 'confirmed' };
    const { outcome } = await unlocked(options, true);
    // It took the mode and does not show it: that it stays open is not certain.
    return { outcome: holds || outcome === 'jammed' ? outcome : 'accepted' };
  }
  return unlocked(options, await stopRelocking(options, reported));
}

/**
 * The values that the lock reported when it was configured and at the end of each standing open, in one answer with its lockState: a
 * frame less to a lock that sleeps. Undefined: not reported yet.
 */
function known({ radio, ieee, endpoint }: StandOpenOptions): Attributes | undefined {
  const value = (name: string) => radio.attribute(ieee, endpoint, DOOR_LOCK, name);
  // The second: a lock without one, or one to which another is written (lock-settings.ts).
  if (value('lockState') === undefined || value('autoRelockTime') === undefined) return undefined;
  const reported = Object.entries({ autoRelockTime, operatingMode, supportedOperatingModes }).flatMap(
    ([name, id]) => {
      const number = integer(value(name), 0, UINT32_LAST);
      return number === undefined ? [] : [[id, number] as const];
    },
  );
  return new Map(reported);
}

/** Nothing that opens or changes the lock was sent before it: without an answer all of it may be tried again. */
async function firstRead(options: StandOpenOptions): Promise<Attributes> {
  try {
    return await read(options, [...CHANGED, supportedOperatingModes]);
  } catch (error) {
    if (!(error instanceof DriverError) || error.code !== 'NO_REPLY') throw error;
    throw new DriverError('DEVICE_OFFLINE', `nothing that opens was sent: ${error.message}`, {
      cause: error,
    });
  }
}

/** `isWritten`: something was sent to the lock before. Rejects with REFUSED when the lock is as it was. */
async function unlocked(options: StandOpenOptions, isWritten: boolean): Promise<StandingOpen> {
  try {
    return await options.move('unlockDoor');
  } catch (error) {
    if (!(error instanceof DriverError) || error.code !== 'REFUSED') throw isWritten ? sent(error) : error;
    const isSettled = options.heldWrites.leftMs(options.ieee) === 0;
    const reported = await onceSent(read(options, CHANGED));
    if (await onceSent(restore(options, reported, isSettled))) await onceSent(read(options, CHANGED));
    throw error;
  }
}

/** Beside holidays the end of one could give the lock its passage mode back (holidays.ts). */
function mayEnterPassage({ radio, ieee }: StandOpenOptions, reported: Attributes): boolean {
  return offersPassage(reported.get(supportedOperatingModes)) && !holidaysIn(radio.meta(ieee))?.length;
}

/** False: the lock refused the mode. */
async function enterPassage(options: StandOpenOptions, reported: Attributes): Promise<boolean> {
  const mode = reported.get(operatingMode);
  const before = { operatingMode: mode === MODE.passage ? MODE.normal : (mode ?? MODE.normal) };
  // What opens the lock is written once: it is read back, and not written again.
  return (await keptAndWritten(options, before, modeWrite(MODE.passage), { tries: 1 })) === undefined;
}

/** False: it locks not again by itself, and was sent nothing. */
async function stopRelocking(options: StandOpenOptions, reported: Attributes): Promise<boolean> {
  const seconds = reported.get(autoRelockTime) ?? 0;
  if (seconds === 0) return false;
  const before = { autoRelockTime: seconds };
  const refused = await keptAndWritten(options, before, relockWrite(0), { tries: TRIES_MAX });
  if (!refused) return true;
  options.radio.remember(options.ieee, { standOpenRefused: true });
  const reason = `the lock locks again by itself after ${seconds} s, and does not let that be changed`;
  throw new DriverError('REFUSED', `${reason} (${statusName(refused.status)})`);
}

/** Safe to repeat: what is restored already is left as it is. The door is locked whatever the lock refuses before. */
export async function endStandOpen(options: StandOpenOptions): Promise<StandingEnded> {
  let failure: unknown;
  let isRead = false;
  let isChanged = false;
  let settlesMs = 0;
  const giveBack = async () => {
    failure = undefined;
    // Before the read: a write that arrives after it is not seen.
    settlesMs = options.heldWrites.leftMs(options.ieee);
    try {
      const reported = await read(options, CHANGED);
      isRead = true;
      isChanged = await restore(options, reported, settlesMs === 0);
    } catch (error) {
      failure = error;
    }
  };
  await giveBack();
  const locked = await options.move('lockDoor');
  // The lock answers now: what was lost before is sent once more, if that can be over before the deadline.
  const isLost = failure instanceof DriverError && failure.code !== 'REFUSED';
  if (isLost && options.clock.monotonic() + 2 * HELD_FRAME_MS < options.deadline) await giveBack();
  const isDone = locked.outcome === 'confirmed' && !isRead && !isKept(options);
  if (failure && !isDone) throw sent(failure);
  // So that the present values are known here, too; the door does not wait for that. Without an answer the next end asks.
  if (isChanged) await read(options, CHANGED).catch(() => undefined);
  return isKept(options) ? { outcome: locked.outcome, settlesMs } : locked;
}

/** Throws when the lock does not take it. True: something was to be restored. `isSettled`: before `reported` was read. */
async function restore(
  options: StandOpenOptions,
  reported: Attributes,
  isSettled: boolean,
): Promise<boolean> {
  const { radio, ieee } = options;
  const meta = radio.meta(ieee);
  const before = beforeOf(meta.standing);
  const writes: AttributeWrite[] = [];
  if (reported.get(operatingMode) === MODE.passage)
    writes.push(modeWrite(before.operatingMode ?? MODE.normal));
  // `relockSeconds` is what earlier versions kept when they wrote "never".
  const seconds = before.autoRelockTime ?? integer(meta.relockSeconds, 1, UINT32_LAST);
  if (reported.get(autoRelockTime) === 0 && seconds !== undefined) writes.push(relockWrite(seconds));
  const refused = writes.length > 0 ? await write(options, writes) : undefined;
  if (refused)
    throw new DriverError(
      'REFUSED',
      `the lock does not take ${attributeName(refused.attrId)} back: ${statusName(refused.status)}`,
    );
  if (isSettled && isKept(options)) radio.remember(ieee, { standing: null, relockSeconds: null });
  return writes.length > 0;
}

/** Something of the lock is still to be given back to it. */
function isKept({ radio, ieee }: Pick<StandOpenOptions, 'radio' | 'ieee'>): boolean {
  const { standing, relockSeconds } = radio.meta(ieee);
  return Object.keys(beforeOf(standing)).length > 0 || integer(relockSeconds, 1, UINT32_LAST) !== undefined;
}

/** Keeps what the lock has before the write, and only where the lock may have taken that. The refusal of the lock, if any. */
async function keptAndWritten(
  options: StandOpenOptions,
  before: Before,
  one: AttributeWrite,
  how: { tries: number },
): Promise<Refused | undefined> {
  const takeBack = keep(options, before);
  try {
    const refused = await settled(options, one, how);
    if (refused) takeBack();
    return refused;
  } catch (error) {
    if (isUnsent(error)) takeBack();
    throw error;
  }
}

/** The first value is kept: standing open twice makes no other one. Returns what forgets it again. */
function keep({ radio, ieee, heldWrites }: StandOpenOptions, before: Before): () => void {
  if (!isKept({ radio, ieee })) heldWrites.begun(ieee);
  const kept = beforeOf(radio.meta(ieee).standing);
  radio.rememberFirst(ieee, { standing: { ...before, ...kept } });
  return () => {
    // An earlier write that was not answered may still arrive.
    if (heldWrites.leftMs(ieee) === 0) radio.remember(ieee, { standing: kept });
  };
}

function beforeOf(kept: unknown): Before {
  const mode = integer(field(kept, 'operatingMode'), 0, 0xfe);
  const seconds = integer(field(kept, 'autoRelockTime'), 1, UINT32_LAST);
  return {
    ...(mode !== undefined && { operatingMode: mode }),
    ...(seconds !== undefined && { autoRelockTime: seconds }),
  };
}

const modeWrite = (attrData: number): AttributeWrite => ({
  attrId: operatingMode,
  dataType: TYPE.enum8,
  attrData,
});
const relockWrite = (attrData: number): AttributeWrite => ({
  attrId: autoRelockTime,
  dataType: TYPE.uint32,
  attrData,
});

/** Values by attribute; one that the lock does not have is missing. */
async function read(options: StandOpenOptions, attributes: readonly number[]): Promise<Attributes> {
  const records = attributes.map((attrId) => ({ attrId }));
  return valuesIn(await exchange(options, 'read', records));
}

/**
 * Writes, and reads back what was not answered: the write or its answer may be what was lost. `tries` of the write. A lock
 * that says anything meanwhile is awake: it is read at once. The error of the last try is thrown when the lock does not say
 * before the deadline that it has the value.
 */
async function settled(
  options: StandOpenOptions,
  one: AttributeWrite,
  { tries }: { tries: number },
): Promise<Refused | undefined> {
  const { clock, deadline, signal, heldWrites, ieee } = options;
  for (let attempt = 1; ; attempt += 1) {
    const { awake, stop } = awakeIn(options);
    try {
      return await write(options, [one], awake);
    } catch (error) {
      if (isUnanswered(error)) heldWrites.unanswered(ieee);
      const pauseMs = SETTLE_MS * 2 ** (attempt - 1);
      const isLate = clock.monotonic() + pauseMs + 2 * HELD_FRAME_MS > deadline;
      // The write before it may have arrived.
      if (!isUnanswered(error) || isLate) throw attempt > 1 ? sent(error) : error;
      await clock.sleep(pauseMs, AbortSignal.any([signal, awake])).catch(() => undefined);
      const reported = signal.aborted ? undefined : await read(options, [one.attrId]).catch(() => undefined);
      if (reported?.get(one.attrId) === one.attrData) return undefined;
      if (attempt >= tries || signal.aborted) throw error;
    } finally {
      stop();
    }
  }
}

/** `awake` fires when the lock has said something, and has had the time to answer as well. */
function awakeIn({ clock, listen }: StandOpenOptions): { awake: AbortSignal; stop(): void } {
  const [awake, over] = [new AbortController(), new AbortController()];
  const forget = listen(({ isThere }) => {
    // It may have announced itself before it fetched anything.
    if (isThere) return;
    clock.sleep(ANSWER_MS, over.signal).then(
      () => awake.abort(KNOWN),
      () => undefined,
    );
  });
  return {
    awake: awake.signal,
    stop() {
      forget();
      over.abort(KNOWN);
    },
  };
}

function isUnanswered(error: unknown): boolean {
  return error instanceof DriverError && error.code === 'OUTCOME_UNKNOWN';
}

/** Of a first write: nothing of it can reach the lock. */
function isUnsent(error: unknown): boolean {
  return error instanceof DriverError && ['DEADLINE_PASSED', 'DEVICE_OFFLINE'].includes(error.code);
}

interface Refused {
  attrId: unknown;
  status: number;
}

/** In one frame. The first that the lock refused; undefined: it took all (ZCL rev. 8, 2.5.5: one status without an attribute). */
async function write(
  options: StandOpenOptions,
  writes: readonly AttributeWrite[],
  awake?: AbortSignal,
): Promise<Refused | undefined> {
  const records = writes.map((one) => ({ ...one }));
  const payload = await exchange(options, 'write', records, awake);
  const answers: unknown[] = Array.isArray(payload) ? payload : [{ status: field(payload, 'statusCode') }];
  const ends = answers.map((record, index) => ({
    attrId: field(record, 'attrId') ?? writes[index]?.attrId,
    status: integer(field(record, 'status'), 0, 0xff) ?? Number.NaN,
  }));
  if (ends.length === 0 || ends.some(({ status }) => Number.isNaN(status)))
    throw new DriverError('OUTCOME_UNKNOWN', 'the lock answered nonsense to a write');
  return ends.find(({ status }) => status !== STATUS_SUCCESS);
}

/** Throws DEVICE_OFFLINE or DEADLINE_PASSED when nothing was sent, OUTCOME_UNKNOWN when no answer came to a write. */
async function exchange(
  { radio, ieee, endpoint, deadline, released, signal }: StandOpenOptions,
  command: 'read' | 'write',
  payload: Record<string, unknown>[],
  awake?: AbortSignal,
): Promise<unknown> {
  const opens = payload.some(({ attrId, attrData }) => attrId === operatingMode && attrData === MODE.passage);
  const reply: ZclReply = await radio.send({
    ieee,
    endpoint,
    cluster: DOOR_LOCK,
    scope: 'foundation',
    command,
    payload,
    notAfter: deadline - HELD_FRAME_MS,
    timeoutMs: STEP_MS,
    withdrawn: signal,
    actuates: true,
    ...(opens && { opens }),
    ...(released && { released }),
    ...(awake && { known: awake }),
  });
  switch (reply.kind) {
    case 'answered':
      return reply.payload;
    case 'late':
      throw new DriverError('DEADLINE_PASSED', 'not sent: the lock could get it after the deadline');
    case 'unsent':
      throw new DriverError('DEVICE_OFFLINE', `not sent: ${reply.reason}`);
    case 'unanswered':
      if (command === 'read') throw new DriverError('NO_REPLY', `the lock did not answer: ${reply.reason}`);
      throw new DriverError('OUTCOME_UNKNOWN', `the lock did not answer: ${reply.reason}`);
  }
}

async function onceSent<Value>(doing: Promise<Value>): Promise<Value> {
  try {
    return await doing;
  } catch (error) {
    throw sent(error);
  }
}

/** After the first write nothing can be said not to have been sent. */
function sent(error: unknown): unknown {
  const isUnsent =
    error instanceof DriverError && ['DEADLINE_PASSED', 'DEVICE_OFFLINE', 'NO_REPLY'].includes(error.code);
  if (!isUnsent) return error;
  return new DriverError('OUTCOME_UNKNOWN', `the lock may stand open: ${error.message}`, { cause: error });
}
