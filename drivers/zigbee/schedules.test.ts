/** Schedules that are cleared, of locks of many kinds, stored by any system, and with the link lost at each frame. */
import { describe, expect, it } from 'vitest';
import { DriverError } from '../contract/driver.ts';
import type { Exchanges } from './lock-exchanges.ts';
import { openLockUsers } from './lock-users.ts';
import { clearSchedules, hasSchedules, type Schedules } from './schedules.ts';

const [SUCCESS, FAILURE, UNSUP_COMMAND, INVALID_FIELD, NOT_FOUND] = [0x00, 0x01, 0x81, 0x85, 0x8b];
const KEPT = 6;

interface Habits {
  /** Reports how many it keeps. */
  reports?: true;
  first?: number;
  /** Answers to Get: of a place that is free, and of a number that it does not keep. */
  free?: number;
  beyond?: number;
  get?: 'none' | 'silent';
  clear?: 'none';
  /** Of the answer to Clear for a place that is free. */
  clearsFree?: number;
  /** Refuses that many frames from this one on, as one that is busy. */
  busy?: { from: number; frames: number; isCut: boolean };
}

/** What a lock that keeps to the standard says, but for its habits. `frames`: after so many the link is lost. */
function lockWith(taken: number[], habits: Habits, frames = Number.POSITIVE_INFINITY) {
  const { first = 0, free = NOT_FOUND, beyond = INVALID_FIELD, clearsFree = SUCCESS } = habits;
  const places = new Set(taken);
  let sent = 0;
  function isBusy(): boolean {
    const { from, frames: refused } = habits.busy ?? { from: 0, frames: 0 };
    return sent > from && sent <= from + refused;
  }
  function answer(command: string, id: number) {
    if (isBusy()) return { statusCode: FAILURE };
    const isKept = id >= first && id < first + KEPT;
    if (command.startsWith('get')) {
      if (habits.get === 'none') return { statusCode: UNSUP_COMMAND };
      return { status: !isKept ? beyond : places.has(id) ? SUCCESS : free };
    }
    if (habits.clear === 'none') return { statusCode: UNSUP_COMMAND };
    if (!isKept) return { status: FAILURE };
    return { status: places.delete(id) ? SUCCESS : clearsFree };
  }
  const send: Exchanges['send'] = async (command, payload) => {
    sent += 1;
    if (sent > frames) return { kind: 'unanswered', reason: 'the link is lost' };
    // The library takes an answer that is not whole for none.
    if (isBusy() && habits.busy?.isCut && command.startsWith('get'))
      return { kind: 'unanswered', reason: 'no answer' };
    const { scheduleid, holidayscheduleid = scheduleid } = payload as Record<string, number>;
    if (habits.get === 'silent' && command.startsWith('get'))
      return { kind: 'unanswered', reason: 'no answer' };
    return { kind: 'answered', payload: answer(command, holidayscheduleid ?? -1) };
  };
  const exchanges = {
    send,
    async answered(command, payload) {
      const reply = await send(command, payload);
      if (reply.kind === 'answered') return reply.payload;
      throw new DriverError('NO_REPLY', reply.reason);
    },
  } as Exchanges;
  return { exchanges, left: () => [...places], sent: () => sent };
}

const HABITS: [string, Habits][] = [
  ['keeps to the standard', {}],
  ['reports how many it keeps', { reports: true }],
  ['refuses to clear what is not there', { clearsFree: FAILURE }],
  ['reports that, and refuses to clear what is not there', { reports: true, clearsFree: FAILURE }],
  ['numbers from 1', { first: 1 }],
  ['reports that, and numbers from 1', { reports: true, first: 1 }],
  ['says FAILURE beyond its last', { beyond: FAILURE }],
  ['says NOT_FOUND beyond its last', { beyond: NOT_FOUND }],
  ['shows a schedule where there is none', { free: SUCCESS, beyond: FAILURE }],
  ['has no command to show them', { get: 'none' }],
  ['does not answer when it is asked for them', { get: 'silent', clearsFree: FAILURE }],
];
const KINDS: Omit<Schedules, 'limit'>[] = [
  { kind: 'weekDays', userId: 5 },
  { kind: 'yearDays', userId: 5 },
  { kind: 'holidays' },
];
const limited = (habits: Habits) => ({ limit: habits.reports ? KEPT : undefined });

describe.each(HABITS)('a lock that %s', (_, habits) => {
  const first = habits.first ?? 0;
  it.each(KINDS)('keeps none, wherever holes are: $kind', async (kind) => {
    const schedules = { ...kind, ...limited(habits) };
    for (let pattern = 0; pattern < 1 << KEPT; pattern += 1) {
      const taken = Array.from({ length: KEPT }, (_, id) => id + first).filter(
        (id) => pattern & (1 << (id - first)),
      );
      const { exchanges, left } = lockWith(taken, habits);
      await clearSchedules(schedules, 0, exchanges);
      expect(left(), `of ${taken.join()}`).toEqual([]);
    }
  });

  it('keeps none after the link was lost at any frame', async () => {
    const schedules = { ...(KINDS[0] as Schedules), ...limited(habits) };
    for (let frames = 0; ; frames += 1) {
      const { exchanges, left, sent } = lockWith([first, first + 1, first + 4], habits, frames);
      const failure = await clearSchedules(schedules, 0, exchanges).catch((error) => error);
      if (sent() <= frames) return;
      expect(failure).toMatchObject({ code: 'NO_REPLY' });
      const again = lockWith(left(), habits);
      await clearSchedules(schedules, 0, again.exchanges);
      expect(again.left(), `cut after ${frames}`).toEqual([]);
    }
  });
});

it.each([
  ['reports how many it keeps', { reports: true }],
  ['does not report that', {}],
  ['does not report that, and says FAILURE beyond its last', { beyond: FAILURE }],
] as [string, Habits][])('do not stay in a lock that is busy for a moment: %s', async (_, habits) => {
  const schedules = { ...(KINDS[0] as Schedules), ...limited(habits) };
  for (const wanted of [[], [0, 1, 2, 3, 4]])
    for (let from = 0; ; from += 1) {
      const sentAt = await Promise.all(
        [1, 2, 3, 1, 2, 3].map(async (frames, index) => {
          const busy = { from, frames, isCut: index > 2 };
          const { exchanges, left, sent } = lockWith([...wanted, 0, 1, 5], { ...habits, busy });
          const failure = await clearSchedules(schedules, wanted.length, exchanges).catch((error) => error);
          if (!failure) expect(left(), `${frames} refused after ${from}`).toEqual(wanted);
          return sent();
        }),
      );
      if (sentAt.every((frames) => frames <= from)) break;
    }
});

it('are said to be gone by a lock that has cleared each or shown it as free, and not by one that stays busy', async () => {
  const schedules = { ...(KINDS[0] as Schedules), limit: KEPT };
  const cleared = (taken: number[], habits: Habits) =>
    clearSchedules(schedules, 0, lockWith(taken, habits).exchanges);
  expect(await cleared([0, 5], {})).toBe(true);
  expect(await cleared([0, 5], { clearsFree: FAILURE })).toBe(true);
  for (let from = 0; from < KEPT; from += 1)
    expect(await cleared([0, 5], { busy: { from, frames: 1_000, isCut: false } })).toBe(false);
});

it('that are wanted stay', async () => {
  const { exchanges, left } = lockWith([0, 1, 2, 5], {});
  await clearSchedules({ kind: 'yearDays', userId: 5, limit: undefined }, 2, exchanges);
  expect(left()).toEqual([0, 1]);
});

it('cost a lock that has none, and says so, two frames of a kind', async () => {
  const { exchanges, sent } = lockWith([], { get: 'none', clear: 'none' });
  await clearSchedules({ kind: 'weekDays', userId: 5, limit: undefined }, 0, exchanges);
  expect(sent()).toBe(2);
});

it('that it does not remove are refused', async () => {
  for (const limit of [undefined, KEPT]) {
    const { exchanges } = lockWith([0, 3], { clear: 'none' });
    await expect(clearSchedules({ kind: 'holidays', limit }, 1, exchanges)).rejects.toMatchObject({
      code: 'REFUSED',
      message: 'holidays: the lock does not remove an earlier one',
    });
  }
});

it('are found behind a hole', async () => {
  const has = (taken: number[], from: number, limit?: number) =>
    hasSchedules({ kind: 'yearDays', userId: 5, limit }, from, lockWith(taken, {}).exchanges);
  expect([await has([0, 3], 1), await has([0, 3], 1, KEPT)]).toEqual([true, true]);
  expect([await has([0], 1), await has([0], 1, KEPT)]).toEqual([false, false]);
  const silent = lockWith([], { get: 'silent' });
  const asked = { kind: 'weekDays', userId: 5, limit: undefined } as const;
  expect(await hasSchedules(asked, 0, silent.exchanges)).toBeUndefined();
  expect(silent.sent()).toBe(1);
});

it('of a lock that stays busy leave a user that may open at times not shown: it may have others', async () => {
  const user = { hwId: '00158d0001000001', userId: 5, isEnabled: true, pin: '1234', card: null };
  const access = {
    kind: 'weekDays',
    schedules: [{ daysMask: 1, startHour: 8, startMinute: 0, endHour: 9, endMinute: 0 }],
  };
  /** Shows what it has; `unclear`: of this number it neither shows nor clears one. */
  async function applied(unclear: number | undefined): Promise<unknown> {
    let pin: Record<string, unknown> = {
      userid: 5,
      userstatus: 0,
      usertype: 0,
      pincodevalue: Buffer.alloc(0),
    };
    const stored = new Map<number, object>();
    const answers: Record<string, (payload: Record<string, number>) => object> = {
      getPinCode: () => pin,
      setPinCode(payload) {
        pin = payload;
        return { status: SUCCESS };
      },
      getWeekDaySchedule: ({ scheduleid = 0 }) =>
        scheduleid === unclear ? { status: FAILURE } : (stored.get(scheduleid) ?? { status: NOT_FOUND }),
      setWeekDaySchedule(payload) {
        stored.set(payload.scheduleid ?? 0, { ...payload, status: SUCCESS });
        return { status: SUCCESS };
      },
      clearWeekDaySchedule: ({ scheduleid }) => ({ status: scheduleid === unclear ? FAILURE : SUCCESS }),
      getYearDaySchedule: () => ({ status: NOT_FOUND }),
      clearYearDaySchedule: () => ({ status: SUCCESS }),
    };
    const limits: Record<string, number> = {
      numOfRfidUsersSupported: 0,
      numOfWeekDaySchedulesSupportedPerUser: 3,
      numOfYearDaySchedulesSupportedPerUser: 1,
    };
    const answered = async (command: string, payload: object) =>
      answers[command]?.(payload as Record<string, number>);
    const exchanges = {
      lock: { ieee: user.hwId, endpoint: 1 },
      radio: { attribute: (...[, , , name]: unknown[]) => limits[String(name)], meta: () => ({}) },
      answered,
      send: async (command: string, payload: object) => ({
        kind: 'answered',
        payload: await answered(command, payload),
      }),
    } as unknown as Exchanges;
    const { applyUser } = openLockUsers({ during: (_, __, work) => work(exchanges) });
    return applyUser({ ...user, access }, 0, new AbortController().signal);
  }
  expect(await applied(undefined)).toEqual({ isShown: true });
  expect(await applied(2)).toEqual({ isShown: false });
});
