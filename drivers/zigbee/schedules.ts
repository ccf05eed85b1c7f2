/** Schedules of a user, and holidays, that a lock is to keep no more (ZCL rev. 8, 7.3.2.17.12 to 21). */
import { DriverError } from '../contract/driver.ts';
import { SCHEDULES_MAX } from '../contract/lock-users.ts';
import type { Exchanges } from './lock-exchanges.ts';
import { answerStatus, isSuccess, SCHEDULES, showsSchedule } from './user-codes.ts';
import { field } from './values.ts';
import {
  STATUS_INVALID_FIELD,
  STATUS_NOT_FOUND,
  STATUS_SUCCESS,
  STATUS_UNSUP_COMMAND,
} from './zcl-status.ts';

export interface Schedules {
  kind: keyof typeof SCHEDULES;
  /** How many the lock keeps, where it has reported that. */
  limit: number | undefined;
  /** Of this user; undefined: holidays are of the lock. */
  userId?: number;
}

/** free: none is stored there · none: the lock keeps none of that number · unclear: it does not say */
type Slot = 'taken' | 'free' | 'none' | 'unclear';
/** So many behind the last number that a lock is known to keep are asked for once more, where it refused to say or to clear them. */
const UNCLEAR_BEYOND = 3;

/**
 * Those from this number on. A lock that has not reported how many it keeps is asked for each, until it says that it keeps none of that
 * number. One that is free is no end: a clearing that was cut off leaves free ones before others, and so does another system
 * that writes to the lock. Resolves with whether each was cleared, or shown as free. Throws REFUSED.
 */
export async function clearSchedules(
  schedules: Schedules,
  from: number,
  exchanges: Exchanges,
): Promise<boolean> {
  const { limit, kind } = schedules;
  const { get, clear } = SCHEDULES[kind];
  /** undefined: it does not answer. */
  async function slotOf(number: Record<string, number>): Promise<Slot | undefined> {
    const reply = await exchanges.send(get, number);
    return reply.kind === 'answered' ? slotIn(reply.payload) : undefined;
  }
  let isAsked = limit === undefined;
  /** Neither shown as free nor cleared. */
  const unclear: number[] = [];
  let lastKept = from - 1;
  // Some makers number from 1. A lock that keeps none has no number.
  const end = limit === undefined ? SCHEDULES_MAX : limit === 0 ? 0 : limit + 1;
  for (let id = from; id < end; id += 1) {
    const number = numberOf(schedules, id);
    const slot = isAsked ? await slotOf(number) : undefined;
    if (isEnd(slot, id)) break;
    if (slot === 'free') lastKept = id;
    if (slot === 'free' || slot === 'none') continue;
    // Not every lock answers this one.
    if (!slot) isAsked = false;
    const answer = await exchanges.answered(clear, number);
    if (isSuccess(answer)) {
      lastKept = id;
      continue;
    }
    // Some locks refuse to clear what is not there.
    const isLeft = limit === undefined ? slot : slotIn(await exchanges.answered(get, number));
    if (isLeft === 'taken') throw notRemoved(kind);
    if (isLeft !== 'free' && field(answer, 'statusCode') === STATUS_UNSUP_COMMAND) break;
    if (isLeft !== 'free' && isLeft !== 'none') unclear.push(id);
  }
  // Some locks answer so for what they do not keep, and one that is busy for a moment does for a schedule that it keeps.
  let isAnswering = true;
  let areCleared = true;
  for (const id of unclear.filter((each) => each <= lastKept + UNCLEAR_BEYOND)) {
    const number = numberOf(schedules, id);
    const slot = isAnswering ? await slotOf(number) : undefined;
    if (!slot) isAnswering = false;
    if (slot === 'free' || slot === 'none') continue;
    const isCleared = isSuccess(await exchanges.answered(clear, number));
    if (!isCleared && slot === 'taken') throw notRemoved(kind);
    areCleared &&= isCleared;
  }
  return areCleared;
}

const notRemoved = (kind: Schedules['kind']) =>
  new DriverError('REFUSED', `${kind}: the lock does not remove an earlier one`);

/** Whether the lock has one of that number, or a later one; undefined: it does not say. */
export async function hasSchedules(
  schedules: Schedules,
  from: number,
  exchanges: Exchanges,
): Promise<boolean | undefined> {
  const { limit, kind } = schedules;
  let areFree: false | undefined = false;
  for (let id = from; id < (limit ?? SCHEDULES_MAX); id += 1) {
    const reply = await exchanges.send(SCHEDULES[kind].get, numberOf(schedules, id));
    if (reply.kind !== 'answered') return undefined;
    const slot = slotIn(reply.payload);
    if (slot === 'taken') return true;
    if (slot === 'unclear') areFree = undefined;
    if (limit === undefined && (slot === 'unclear' || isEnd(slot, id))) break;
  }
  return areFree;
}

/** Whether the lock shows a schedule, or a holiday, as it is wanted; undefined: not every lock answers that. */
export async function isScheduleShown(
  kind: Schedules['kind'],
  wanted: Record<string, number>,
  exchanges: Exchanges,
): Promise<boolean | undefined> {
  const { holidayscheduleid, scheduleid, userid } = wanted;
  const number = kind === 'holidays' ? { holidayscheduleid } : { scheduleid, userid };
  const reply = await exchanges.send(SCHEDULES[kind].get, number);
  return reply.kind === 'answered' ? showsSchedule(reply.payload, wanted) : undefined;
}

function numberOf({ kind, userId }: Schedules, id: number): Record<string, number> {
  if (kind === 'holidays' || userId === undefined) return { holidayscheduleid: id };
  return { scheduleid: id, userid: userId };
}

/** Some makers number from 1. */
const isEnd = (slot: Slot | undefined, id: number) => slot === 'none' && id > 0;

function slotIn(payload: unknown): Slot {
  switch (answerStatus(payload)) {
    case STATUS_SUCCESS:
      return 'taken';
    case STATUS_NOT_FOUND:
      return 'free';
    case STATUS_INVALID_FIELD:
      return 'none';
    default:
      return 'unclear';
  }
}
