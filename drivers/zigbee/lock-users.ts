/**
 * One user of a lock as it is wanted: its PIN and card, whether they are in use, and when (ZCL rev. 8, 7.3.2.17). What the lock
 * shows is read before and after, so that the same again writes nothing, and a lock that says yes and keeps nothing is found.
 */
import { DriverError, type Plain } from '../contract/driver.ts';
import {
  type UserApplied,
  type UserApply,
  type UserDifference,
  type UsersRead,
  type UsersShown,
  userApply,
  usersRead,
  type WantedUser,
} from '../contract/lock-users.ts';
import { valid } from '../contract/valid.ts';
import type { Exchanges, LockExchanges } from './lock-exchanges.ts';
import { clearSchedules, hasSchedules, isScheduleShown } from './schedules.ts';
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
  SCHEDULES,
  type Shown,
  shownOf,
  statusOf,
  typeOf,
  weekDayPayload,
  yearDayPayload,
} from './user-codes.ts';
import { field } from './values.ts';
import { STATUS_UNSUP_COMMAND } from './zcl-status.ts';

const KINDS = ['pin', 'card'] as const;
const TIMES = ['weekDays', 'yearDays'] as const;
type Times = (typeof TIMES)[number];

export interface LockUsers {
  applyUser(data: Plain, deadline: number, signal: AbortSignal): Promise<UserApplied>;
  readUsers(data: Plain, deadline: number, signal: AbortSignal): Promise<UsersShown>;
}

export function openLockUsers({ during }: Pick<LockExchanges, 'during'>): LockUsers {
  return {
    async applyUser(data, deadline, signal) {
      const wanted = valid(userApply, data, 'INVALID_COMMAND');
      const { hwId } = wanted;
      return during('users', { hwId, deadline, signal }, (exchanges) => apply(wanted, exchanges));
    },
    async readUsers(data, deadline, signal) {
      const places = valid(usersRead, data, 'INVALID_COMMAND');
      const { hwId } = places;
      return during('users', { hwId, deadline, signal }, (exchanges) => read(places, exchanges));
    },
  };
}

async function read({ from, count, wanted }: UsersRead, exchanges: Exchanges): Promise<UsersShown> {
  const users: UsersShown['users'] = [];
  for (let userId = from; userId < from + count; userId += 1) {
    const [pin, card] = [await place('pin', userId, exchanges), await place('card', userId, exchanges)];
    const user = wanted.find((one) => one.userId === userId);
    const taken = { hasPin: pin !== undefined, hasCard: card !== undefined };
    if (!taken.hasPin && !taken.hasCard) continue;
    const differs = user ? await differencesOf(user, { pin, card }, exchanges) : [];
    users.push({ userId, ...taken, differs });
  }
  return { users };
}

/** False: the lock has reported that it keeps no codes of that kind. */
function mayKeep(kind: Kind, { lock, radio }: Exchanges): boolean {
  return limitsOf(lock, radio)[kind === 'pin' ? 'pins' : 'cards'] !== 0;
}

/** What the lock answers of a place that is taken; undefined: it is free. */
async function place(kind: Kind, userId: number, exchanges: Exchanges): Promise<unknown> {
  if (!mayKeep(kind, exchanges)) return undefined;
  const payload = await exchanges.answered(COMMANDS[kind].get, { userid: userId });
  // It has none of that kind, or no such place.
  if (field(payload, 'statusCode') !== undefined) return undefined;
  const taken = isTaken(payload, userId);
  if (taken !== undefined) return taken ? payload : undefined;
  throw new DriverError('BAD_REPLY', `the lock does not say whether place ${userId} is taken`);
}

/** What the lock shows of a user, and is not as it is wanted. What it masks, or does not answer, is none. */
async function differencesOf(
  user: WantedUser,
  taken: Record<Kind, unknown>,
  exchanges: Exchanges,
): Promise<UserDifference[]> {
  const found = KINDS.flatMap((kind): UserDifference[] => {
    const code = user[kind];
    if (taken[kind] === undefined) return code === null ? [] : [kind];
    if (code === null) return [kind];
    const shown = shownOf(taken[kind], user, codeBytes(kind, code));
    return 'differs' in shown ? shown.differs.map((part) => (part === 'code' ? kind : part)) : [];
  });
  for (const kind of TIMES) if ((await showsTimes(kind, user, exchanges)) === false) found.push(kind);
  return [...new Set(found)];
}

/** Whether the lock shows the schedules of that kind that are wanted, and no others; undefined: it does not show them. */
async function showsTimes(kind: Times, user: WantedUser, exchanges: Exchanges): Promise<boolean | undefined> {
  const { limit, payloads } = schedulesOf(kind, user, exchanges);
  let areShown: boolean | undefined = true;
  for (const payload of payloads) {
    const has = await isScheduleShown(kind, payload, exchanges);
    if (has === false) return false;
    areShown &&= has;
  }
  const hasMore = await hasSchedules({ kind, userId: user.userId, limit }, payloads.length, exchanges);
  if (hasMore) return false;
  return hasMore === undefined ? undefined : areShown;
}

async function apply(wanted: UserApply, exchanges: Exchanges): Promise<UserApplied> {
  const isRemoved = wanted.pin === null && wanted.card === null;
  const isLimited = wanted.access.kind !== 'always';
  const hasTimes = !isRemoved && (await showsAllTimes(wanted, exchanges));
  const areTimesNew = isLimited && !isRemoved && !hasTimes;
  let isShown = true;
  for (const kind of KINDS) {
    if (wanted[kind] === null) isShown = (await empty(kind, wanted, exchanges)) && isShown;
    // A lock may open always for a code whose schedules are cleared: Silicon Labs' door lock server makes it unrestricted then.
    else if (areTimesNew) await remove(kind, wanted, exchanges);
  }
  // The next frame may be the last that arrives: no code is to open at the times of the user before.
  // One that it neither shows nor clears may let the user in at other times.
  const areCleared = (isRemoved || areTimesNew) && (await clearAllSchedules(wanted.userId, exchanges));
  for (const kind of KINDS) {
    const code = wanted[kind];
    if (code !== null) isShown = (await store(kind, code, wanted, exchanges)) && isShown;
  }
  if (areTimesNew) return { isShown: (await storeSchedules(wanted, exchanges)) && isShown && areCleared };
  // A limited code of before is gone by now.
  if (!isRemoved && !hasTimes) await clearAllSchedules(wanted.userId, exchanges);
  return { isShown };
}

async function showsAllTimes(wanted: UserApply, exchanges: Exchanges): Promise<boolean> {
  for (const kind of TIMES) if (!(await showsTimes(kind, wanted, exchanges))) return false;
  return true;
}

/** Resolves with whether the lock has shown it. */
async function store(kind: Kind, code: string, wanted: UserApply, exchanges: Exchanges): Promise<boolean> {
  const bytes = codeBytes(kind, code);
  const before = await shown(kind, bytes, wanted, exchanges);
  if (before.kind === 'code' && before.differs.length === 0) return true;
  const opensAsWanted = before.kind === 'code' && !before.differs.some((part) => part !== 'code');
  if (kind === 'pin' && wanted.isEnabled && !opensAsWanted) await removeFormerCard(wanted, exchanges);
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

/** Where the user may open more than before, a card that is to be another one would open, too: it goes before that. */
async function removeFormerCard(wanted: UserApply, exchanges: Exchanges): Promise<void> {
  if (wanted.card === null) return;
  const before = await shown('card', codeBytes('card', wanted.card), wanted, exchanges);
  if (before.kind !== 'code' && before.kind !== 'masked') return;
  const isThere = before.kind === 'code' && !before.differs.includes('code');
  if (!isThere && before.differs.some((part) => part !== 'code')) await remove('card', wanted, exchanges);
}

async function changeUser(
  differs: readonly string[],
  wanted: UserApply,
  exchanges: Exchanges,
): Promise<void> {
  const { userId } = wanted;
  const type = ['setUserType', { userid: userId, usertype: typeOf(wanted) }] as const;
  const status = ['setUserStatus', { userid: userId, userstatus: statusOf(wanted) }] as const;
  const changes = [
    ...(differs.includes('type') ? [type] : []),
    ...(differs.includes('status') ? [status] : []),
  ];
  // First what keeps it out: the next frame may be the last that arrives.
  if (!wanted.isEnabled) changes.reverse();
  for (const [command, payload] of changes) await ordered(command, payload, 'status', wanted, exchanges);
}

async function empty(kind: Kind, wanted: UserApply, exchanges: Exchanges): Promise<boolean> {
  if (!(await remove(kind, wanted, exchanges))) return true;
  const after = await shown(kind, undefined, wanted, exchanges);
  if (after.kind === 'empty' || after.kind === 'unknown') return after.kind === 'empty';
  throw new DriverError('REFUSED', `${kind}: the lock said that it removed it, and still has it`);
}

/** Resolves with whether there was one to remove. Throws REFUSED. */
async function remove(kind: Kind, wanted: UserApply, exchanges: Exchanges): Promise<boolean> {
  if (!mayKeep(kind, exchanges)) return false;
  const before = await shown(kind, undefined, wanted, exchanges);
  if (before.kind === 'empty') return false;
  const payload = await exchanges.answered(COMMANDS[kind].clear, { userid: wanted.userId });
  // It has none of that kind.
  if (field(payload, 'statusCode') === STATUS_UNSUP_COMMAND) return false;
  if (!isSuccess(payload)) throw new DriverError('REFUSED', refusalOf(payload, kind, wanted));
  return true;
}

/** Commands of that kind, and the payloads of what is wanted; `limit`: what the lock keeps, where it has said so. */
function schedulesOf(kind: Times, { userId, access }: WantedUser, exchanges: Exchanges) {
  const limit = limitsOf(exchanges.lock, exchanges.radio)[kind];
  const payloads: Record<string, number>[] = [];
  if (access.kind === 'yearDays' && kind === 'yearDays')
    payloads.push(...access.schedules.map((one, id) => yearDayPayload(id, userId, one)));
  if (access.kind === 'weekDays' && kind === 'weekDays')
    payloads.push(...access.schedules.map((one, id) => weekDayPayload(id, userId, one)));
  return { ...SCHEDULES[kind], limit, payloads };
}

/** All of a user, of both kinds. Resolves with whether none is left for sure. */
async function clearAllSchedules(userId: number, exchanges: Exchanges): Promise<boolean> {
  const limits = limitsOf(exchanges.lock, exchanges.radio);
  let areCleared = true;
  for (const kind of TIMES)
    areCleared = (await clearSchedules({ kind, userId, limit: limits[kind] }, 0, exchanges)) && areCleared;
  return areCleared;
}

/** Resolves with whether the lock has shown each. */
async function storeSchedules(wanted: UserApply, exchanges: Exchanges): Promise<boolean> {
  const { kind } = wanted.access;
  if (kind === 'always') return true;
  const { set, clear, limit, payloads } = schedulesOf(kind, wanted, exchanges);
  const { length } = payloads;
  if (limit !== undefined && length > limit)
    throw new DriverError(
      'REFUSED',
      `${kind}: the lock keeps ${limit} schedules for a user, and ${length} are wanted`,
    );
  let isShown = true;
  for (const payload of payloads) {
    await ordered(set, payload, kind, wanted, exchanges);
    const has = await isScheduleShown(kind, payload, exchanges);
    if (has === false) {
      // The user could open at other times, and always once it is cleared.
      for (const one of KINDS) if (wanted[one] !== null) await remove(one, wanted, exchanges);
      const { scheduleid, userid } = payload;
      await exchanges.answered(clear, { scheduleid, userid });
      throw new DriverError('REFUSED', `${kind}: the lock said that it took the schedule, and shows another`);
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
  const answer = await exchanges.answered(command, payload);
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
  const reply = await exchanges.send(COMMANDS[kind].get, { userid: wanted.userId });
  // Not every lock answers this one.
  return reply.kind === 'answered' ? shownOf(reply.payload, wanted, code) : { kind: 'unknown' };
}
