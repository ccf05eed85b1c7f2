/**
 * One user of a lock as it is wanted: its PIN and card, whether they are in use, and when (ZCL rev. 8, 7.3.2.17). What the lock
 * shows is read before and after, so that the same again writes nothing, and a lock that says yes and keeps nothing is found.
 */
import { type Clock, DriverError, type Plain } from '../contract/driver.ts';
import {
  type UserApplied,
  type UserApply,
  type UsersRead,
  type UsersShown,
  userApply,
  usersRead,
} from '../contract/lock-users.ts';
import { valid } from '../contract/valid.ts';
import { HELD_FRAME_MS } from '../contract/zgate.ts';
import type { Lock, Locks } from './locks.ts';
import { DOOR_LOCK, KNOWN, type Radio } from './radio.ts';
import { limitsOf } from './standard-lock.ts';
import {
  answerStatus,
  COMMANDS,
  codeBytes,
  type Field,
  isSuccess,
  isTaken,
  type Kind,
  refusalOf,
  type Shown,
  shownOf,
  showsSchedule,
  statusOf,
  typeOf,
  weekDayPayload,
  yearDayPayload,
} from './user-codes.ts';
import { field } from './values.ts';

/** A lock that sleeps fetches a frame within that time. */
const STEP_MS = HELD_FRAME_MS;
const UNSUP_COMMAND = 0x81;

export interface LockUsersOptions {
  radio: Pick<Radio, 'send' | 'attribute' | 'memory'>;
  clock: Clock;
  locks: Pick<Locks, 'find'>;
  /** Fires when the link ends. */
  ended: AbortSignal;
}

export interface LockUsers {
  applyUser(data: Plain, deadline: number, signal: AbortSignal): Promise<UserApplied>;
  readUsers(data: Plain, deadline: number, signal: AbortSignal): Promise<UsersShown>;
  /** An actuation is sent to the lock now: it does not wait for this. */
  yield(ieee: string): void;
}

export function openLockUsers({ radio, clock, locks, ended }: LockUsersOptions): LockUsers {
  const working = new Map<string, AbortController>();

  async function during<Answer>(
    hwId: string,
    deadline: number,
    signal: AbortSignal,
    work: (exchanges: Exchanges) => Promise<Answer>,
  ): Promise<Answer> {
    const lock = locks.find(hwId);
    const { ieee, family } = lock;
    if (family?.takesNoCommands !== undefined)
      throw new DriverError('REFUSED', `not sent: ${family.takesNoCommands}`);
    if (working.has(ieee)) throw new DriverError('BUSY', 'users of the lock are read or written already');
    const yielded = new AbortController();
    working.set(ieee, yielded);
    try {
      const over = AbortSignal.any([signal, ended, yielded.signal]);
      return await work({ radio, clock, lock, deadline, over });
    } finally {
      working.delete(ieee);
    }
  }

  return {
    yield: (ieee) => working.get(ieee)?.abort(KNOWN),
    async applyUser(data, deadline, signal) {
      const wanted = valid(userApply, data, 'INVALID_COMMAND');
      return during(wanted.hwId, deadline, signal, (exchanges) => apply(wanted, exchanges));
    },
    async readUsers(data, deadline, signal) {
      const places = valid(usersRead, data, 'INVALID_COMMAND');
      return during(places.hwId, deadline, signal, (exchanges) => read(places, exchanges));
    },
  };
}

async function read({ from, count }: UsersRead, exchanges: Exchanges): Promise<UsersShown> {
  const limits = limitsOf(exchanges.lock, exchanges.radio);
  async function has(kind: Kind, userId: number): Promise<boolean> {
    if (limits[kind === 'pin' ? 'pins' : 'cards'] === 0) return false;
    const payload = await answered(COMMANDS[kind].get, { userid: userId }, exchanges);
    // It has none of that kind, or no such place.
    if (field(payload, 'statusCode') !== undefined) return false;
    const taken = isTaken(payload, userId);
    if (taken !== undefined) return taken;
    throw new DriverError('BAD_REPLY', `the lock does not say whether place ${userId} is taken`);
  }
  const users: UsersShown['users'] = [];
  for (let userId = from; userId < from + count; userId += 1) {
    const [hasPin, hasCard] = [await has('pin', userId), await has('card', userId)];
    if (hasPin || hasCard) users.push({ userId, hasPin, hasCard });
  }
  return { users };
}

interface Exchanges extends Pick<LockUsersOptions, 'radio' | 'clock'> {
  lock: Lock;
  /** Monotonic milliseconds. */
  deadline: number;
  /** Fires: nothing more is sent, and no answer is waited for. */
  over: AbortSignal;
}

async function apply(wanted: UserApply, exchanges: Exchanges): Promise<UserApplied> {
  let isShown = true;
  for (const kind of ['pin', 'card'] as const) {
    const code = wanted[kind];
    const end = code === null ? empty(kind, wanted, exchanges) : store(kind, code, wanted, exchanges);
    isShown = (await end) && isShown;
  }
  const hasCode = wanted.pin !== null || wanted.card !== null;
  if (hasCode) isShown = (await storeSchedules(wanted, exchanges)) && isShown;
  return { isShown };
}

/** Resolves with whether the lock has shown it. */
async function store(kind: Kind, code: string, wanted: UserApply, exchanges: Exchanges): Promise<boolean> {
  const bytes = codeBytes(kind, code);
  const before = await shown(kind, bytes, wanted, exchanges);
  if (before.kind === 'code' && before.differs.length === 0) return true;
  const { userId } = wanted;
  const isThere = before.kind === 'code' && !before.differs.includes('code');
  const payload = {
    userid: userId,
    userstatus: statusOf(wanted),
    usertype: typeOf(wanted),
    pincodevalue: bytes,
  };
  // A code that is there already is a duplicate to some locks.
  if (isThere) await changeUser(before.differs, wanted, exchanges);
  else await ordered(COMMANDS[kind].set, payload, kind, wanted, exchanges);
  const after = await shown(kind, bytes, wanted, exchanges);
  if (after.kind === 'unknown' || (after.kind === 'masked' && after.differs.length === 0)) return false;
  if (after.kind === 'code' && after.differs.length === 0) return true;
  // Without its type a user that may open at times could open always.
  if (after.kind !== 'empty' && after.differs.includes('type'))
    await ordered(COMMANDS[kind].clear, { userid: userId }, kind, wanted, exchanges);
  const what = after.kind === 'empty' ? 'it' : after.differs.join(' and ');
  throw new DriverError('REFUSED', `${kind}: the lock said that it took it, and does not show ${what}`);
}

async function changeUser(
  differs: readonly string[],
  wanted: UserApply,
  exchanges: Exchanges,
): Promise<void> {
  const { userId } = wanted;
  // First what limits it.
  if (differs.includes('type'))
    await ordered('setUserType', { userid: userId, usertype: typeOf(wanted) }, 'status', wanted, exchanges);
  if (differs.includes('status')) {
    const payload = { userid: userId, userstatus: statusOf(wanted) };
    await ordered('setUserStatus', payload, 'status', wanted, exchanges);
  }
}

async function empty(kind: Kind, wanted: UserApply, exchanges: Exchanges): Promise<boolean> {
  const limits = limitsOf(exchanges.lock, exchanges.radio);
  if (limits[kind === 'pin' ? 'pins' : 'cards'] === 0) return true;
  const before = await shown(kind, undefined, wanted, exchanges);
  if (before.kind === 'empty') return true;
  const payload = await answered(COMMANDS[kind].clear, { userid: wanted.userId }, exchanges);
  // It has none of that kind.
  if (field(payload, 'statusCode') === UNSUP_COMMAND) return true;
  if (!isSuccess(payload)) throw new DriverError('REFUSED', refusalOf(payload, kind, wanted));
  const after = await shown(kind, undefined, wanted, exchanges);
  if (after.kind === 'empty' || after.kind === 'unknown') return after.kind === 'empty';
  throw new DriverError('REFUSED', `${kind}: the lock said that it removed it, and still has it`);
}

/** Those that are wanted, and none of former ones beside them. Resolves with whether the lock has shown each. */
async function storeSchedules(wanted: UserApply, exchanges: Exchanges): Promise<boolean> {
  const { access } = wanted;
  if (access.kind === 'always') return true;
  const limit = limitsOf(exchanges.lock, exchanges.radio)[access.kind];
  const { length } = access.schedules;
  if (limit !== undefined && length > limit)
    throw new DriverError(
      'REFUSED',
      `${access.kind}: the lock keeps ${limit} schedules for a user, and ${length} are wanted`,
    );
  const [set, clear, get] =
    access.kind === 'weekDays'
      ? (['setWeekDaySchedule', 'clearWeekDaySchedule', 'getWeekDaySchedule'] as const)
      : (['setYearDaySchedule', 'clearYearDaySchedule', 'getYearDaySchedule'] as const);
  const payloads =
    access.kind === 'weekDays'
      ? access.schedules.map((one, id) => weekDayPayload(id, wanted, one))
      : access.schedules.map((one, id) => yearDayPayload(id, wanted, one));
  for (let id = length; id < (limit ?? length); id += 1) {
    const place = { scheduleid: id, userid: wanted.userId };
    // Some locks refuse to clear what is not there.
    if (isSuccess(await answered(clear, place, exchanges))) continue;
    if (isSuccess(await answered(get, place, exchanges)))
      throw new DriverError('REFUSED', `${access.kind}: the lock does not remove an earlier schedule`);
  }
  let isShown = true;
  for (const payload of payloads) {
    await ordered(set, payload, access.kind, wanted, exchanges);
    const { scheduleid, userid } = payload;
    const reply = await send(get, { scheduleid, userid }, exchanges);
    // Not every lock answers this one.
    const has = reply.kind === 'answered' ? showsSchedule(reply.payload, payload) : undefined;
    if (has === false) {
      // The user could open at other times.
      await answered(clear, { scheduleid, userid }, exchanges);
      throw new DriverError(
        'REFUSED',
        `${access.kind}: the lock said that it took the schedule, and shows another`,
      );
    }
    isShown &&= has === true;
  }
  return isShown;
}

/** Throws REFUSED. */
async function ordered(
  command: string,
  payload: Record<string, unknown>,
  of: Field,
  wanted: UserApply,
  exchanges: Exchanges,
): Promise<void> {
  const answer = await answered(command, payload, exchanges);
  if (answerStatus(answer) === undefined)
    throw new DriverError('BAD_REPLY', `${of}: the lock answered without a status`);
  if (!isSuccess(answer)) throw new DriverError('REFUSED', refusalOf(answer, of, wanted));
}

async function shown(
  kind: Kind,
  code: Uint8Array | undefined,
  wanted: UserApply,
  exchanges: Exchanges,
): Promise<Shown> {
  const reply = await send(COMMANDS[kind].get, { userid: wanted.userId }, exchanges);
  // Not every lock answers this one.
  return reply.kind === 'answered' ? shownOf(reply.payload, wanted, code) : { kind: 'unknown' };
}

async function answered(
  command: string,
  payload: Record<string, unknown>,
  exchanges: Exchanges,
): Promise<unknown> {
  const reply = await send(command, payload, exchanges);
  if (reply.kind === 'answered') return reply.payload;
  throw new DriverError('NO_REPLY', `the lock did not answer: ${reply.reason}`);
}

/** Throws when nothing may be sent any more. */
async function send(command: string, payload: Record<string, unknown>, exchanges: Exchanges) {
  const { radio, clock, lock, deadline, over } = exchanges;
  over.throwIfAborted();
  const { ieee, endpoint } = lock;
  const notAfter = Math.min(clock.monotonic() + STEP_MS, deadline - HELD_FRAME_MS);
  const sent = { cluster: DOOR_LOCK, command, payload, scope: 'cluster' } as const;
  const until = { notAfter, timeoutMs: STEP_MS, withdrawn: over, known: over };
  const reply = await radio.send({ ieee, endpoint, ...sent, ...until });
  if (over.aborted) throw new DriverError('NO_REPLY', 'the lock is needed for something more urgent');
  if (reply.kind === 'late')
    throw new DriverError('NO_REPLY', 'there was no time left for the rest of the user');
  return reply;
}
