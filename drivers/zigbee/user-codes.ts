/** The commands of the Door Lock cluster for users, and what their answers mean (ZCL rev. 8, 7.3.2.17 and 7.3.2.18). Pure. */
import type { UserApply, WeekDaySchedule, YearDaySchedule } from '../contract/lock-users.ts';
import { field, integer } from './values.ts';
import { STATUS_NOT_FOUND, STATUS_SUCCESS, statusName } from './zcl-status.ts';

export type Kind = 'pin' | 'card';
/** As the library names them. */
export const COMMANDS = {
  pin: { set: 'setPinCode', get: 'getPinCode', clear: 'clearPinCode' },
  card: { set: 'setRfidCode', get: 'getRfidCode', clear: 'clearRfidCode' },
} as const;
export const SCHEDULES = {
  weekDays: { set: 'setWeekDaySchedule', get: 'getWeekDaySchedule', clear: 'clearWeekDaySchedule' },
  yearDays: { set: 'setYearDaySchedule', get: 'getYearDaySchedule', clear: 'clearYearDaySchedule' },
  holidays: { set: 'setHolidaySchedule', get: 'getHolidaySchedule', clear: 'clearHolidaySchedule' },
} as const;

/** Table 7-14: user status. */
const AVAILABLE = 0;
const ENABLED = 1;
const DISABLED = 3;
/** Table 7-15: user type. */
const TYPES = { always: 0, yearDays: 1, weekDays: 2 } as const;
const USER_MAX = 0xff_fe;
/** A lock that does not send PINs puts these in the place of their digits (SendPINOverTheAir, 7.3.2.12.23). */
const MASKED = 0xff;

export type User = Pick<UserApply, 'userId' | 'isEnabled' | 'access'>;

export const statusOf = ({ isEnabled }: User) => (isEnabled ? ENABLED : DISABLED);
export const typeOf = ({ access }: User) => TYPES[access.kind];

export function codeBytes(kind: Kind, code: string): Buffer {
  return Buffer.from(code, kind === 'pin' ? 'ascii' : 'hex');
}

/** What a lock shows of a place: `differs` names what is not as wanted. */
export type Shown =
  | { kind: 'empty' }
  | { kind: 'masked'; differs: Part[] }
  | { kind: 'code'; differs: Part[] }
  /** The lock does not show it. */
  | { kind: 'unknown' };
type Part = 'code' | 'status' | 'type';

/** Of the answer to Get PIN Code or Get RFID Code. */
export function shownOf(payload: unknown, user: User, code: Uint8Array | undefined): Shown {
  const status = integer(field(payload, 'userstatus'), 0, DISABLED);
  if (integer(field(payload, 'userid'), 0, USER_MAX) !== user.userId || status === undefined)
    return { kind: 'unknown' };
  if (status === AVAILABLE) return { kind: 'empty' };
  const differs: Part[] = [];
  if (status !== statusOf(user)) differs.push('status');
  if (field(payload, 'usertype') !== typeOf(user)) differs.push('type');
  const bytes = field(payload, 'pincodevalue');
  const has = Buffer.isBuffer(bytes) ? bytes : Buffer.alloc(0);
  // Some locks send none at all in place of the masked digits.
  if (has.every((byte) => byte === MASKED)) {
    const isOther = has.length > 0 && has.length !== code?.length;
    return { kind: 'masked', differs: isOther ? ['code', ...differs] : differs };
  }
  return { kind: 'code', differs: code && has.equals(code) ? differs : ['code', ...differs] };
}

/** Whether a place is taken, by the same answer; undefined: the lock does not show it. */
export function isTaken(payload: unknown, userId: number): boolean | undefined {
  if (integer(field(payload, 'userid'), 0, USER_MAX) !== userId) return undefined;
  const status = integer(field(payload, 'userstatus'), 0, DISABLED);
  return status === undefined ? undefined : status !== AVAILABLE;
}

/** Of the answer to the question for a schedule; undefined: the lock does not show it. */
export function showsSchedule(payload: unknown, wanted: Record<string, number>): boolean | undefined {
  if (answerStatus(payload) === STATUS_NOT_FOUND) return false;
  const answer = Object.keys(wanted).map((name) => field(payload, name));
  if (!isSuccess(payload) || answer.includes(undefined)) return undefined;
  return Object.values(wanted).every((value, index) => value === answer[index]);
}

export type Field = Kind | 'status' | 'weekDays' | 'yearDays';
const NAMES: Record<Field, string> = {
  pin: 'PIN',
  card: 'card',
  status: 'status',
  weekDays: 'schedule',
  yearDays: 'schedule',
};
/** Statuses of the responses to setting a code (7.3.2.18.6). */
const FAILURE = 1;
const MEMORY_FULL = 2;
const DUPLICATE = 3;

/** Of a response of the cluster, or of a default response; undefined: the answer is none. */
export function answerStatus(payload: unknown): number | undefined {
  return integer(field(payload, 'statusCode') ?? field(payload, 'status'), 0, 0xff);
}

export const isSuccess = (payload: unknown) => answerStatus(payload) === STATUS_SUCCESS;

/** Why the lock does not take it, and what to do. */
export function refusalOf(payload: unknown, of: Field, { userId }: User): string {
  const status = answerStatus(payload);
  const what = NAMES[of];
  if (field(payload, 'statusCode') !== undefined)
    return `${of}: the lock does not have this command (${statusName(status)})`;
  switch (status) {
    case FAILURE:
      return `${of}: the lock refused the ${what} (general failure): see its form and length, and whether the lock has a user ${userId}`;
    case MEMORY_FULL:
      return `${of}: the lock has no room for another ${what} (memory full): remove a user`;
    case DUPLICATE:
      return `${of}: another user of the lock has this ${what} (duplicate code): choose another one`;
    default:
      return `${of}: the lock refused the ${what} (${statusName(status)})`;
  }
}

export function weekDayPayload(id: number, userId: number, schedule: WeekDaySchedule) {
  return {
    scheduleid: id,
    userid: userId,
    daysmask: schedule.daysMask,
    starthour: schedule.startHour,
    startminute: schedule.startMinute,
    endhour: schedule.endHour,
    endminute: schedule.endMinute,
  };
}

export function yearDayPayload(id: number, userId: number, { start, end }: YearDaySchedule) {
  return { scheduleid: id, userid: userId, zigbeelocalstarttime: start, zigbeelocalendtime: end };
}
