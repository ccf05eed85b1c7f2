/**
 * Users of a lock: numbered places in its memory, each with a PIN, a card, and when they may open (ZCL rev. 8, 7.3.2.17).
 *
 * Commands of a Zigbee gateway link (DriverCommand.kind, data → answer):
 *  - `applyUser`  UserApply → UserApplied   one user as it is wanted, whole; without PIN and card the place is emptied. The same
 *      again is harmless. REFUSED when the lock said no, does not have it, or says yes and does not keep it
 *  - `readUsers`  UsersRead → UsersShown  which of some places are taken, and by what; never the digits. Of users that are wanted
 *      also what is not as it is wanted
 */
import { z } from 'zod';
import { hwId, localTime } from './settings.ts';

/** What ZCL can number: 0xffff is no user. */
export const USER_ID_MAX = 0xff_fe;
export const SCHEDULES_MAX = 64;

const hour = z.int().min(0).max(23);
const minute = z.int().min(0).max(59);
/** Bit 0 of the mask is Sunday (7.3.2.17.13), unlike in a lock configuration. */
const weekDaySchedule = z.strictObject({
  daysMask: z.int().min(1).max(127),
  startHour: hour,
  startMinute: minute,
  endHour: hour,
  endMinute: minute,
});
export type WeekDaySchedule = z.infer<typeof weekDaySchedule>;

const yearDaySchedule = z.strictObject({ start: localTime, end: localTime });
export type YearDaySchedule = z.infer<typeof yearDaySchedule>;

/** The user may open: always, on days of the week, or in spans of time. */
const access = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('always') }),
  z.strictObject({ kind: z.literal('weekDays'), schedules: z.array(weekDaySchedule).max(SCHEDULES_MAX) }),
  z.strictObject({ kind: z.literal('yearDays'), schedules: z.array(yearDaySchedule).max(SCHEDULES_MAX) }),
]);
export type UserAccess = z.infer<typeof access>;

const userId = z.int().min(0).max(USER_ID_MAX);

const wantedUser = z.strictObject({
  userId,
  isEnabled: z.boolean(),
  /** Digits; null: none. A secret, as the card is: never logged, never in an error. */
  pin: z
    .string()
    .regex(/^[0-9]{1,16}$/)
    .nullable(),
  /** Hex of its bytes; null: none. */
  card: z
    .string()
    .regex(/^([0-9a-f]{2}){1,20}$/)
    .nullable(),
  access,
});
export type WantedUser = z.infer<typeof wantedUser>;

export const userApply = wantedUser.extend({ hwId });
export type UserApply = z.infer<typeof userApply>;

/** `isShown`: the lock has shown that it has what is wanted, digits and schedules included; else it has said yes. */
export const userApplied = z.object({ isShown: z.boolean() });
export type UserApplied = z.infer<typeof userApplied>;

/** Places that are read with one command: each takes two frames, which a lock that sleeps fetches one by one. */
export const READ_MAX = 8;
export const usersRead = z.strictObject({
  hwId,
  from: userId,
  count: z.int().min(1).max(READ_MAX),
  /** Of these places; each takes a frame more for each schedule that the lock keeps for it. */
  wanted: z.array(wantedUser).max(READ_MAX),
});
export type UsersRead = z.infer<typeof usersRead>;

/** `type`: whether the user may open always, or at times. */
const userDifference = z.enum(['pin', 'card', 'status', 'type', 'weekDays', 'yearDays']);
export type UserDifference = z.infer<typeof userDifference>;

/** Those that are taken. */
export const usersShown = z.object({
  users: z
    .array(
      z.object({
        userId,
        hasPin: z.boolean(),
        hasCard: z.boolean(),
        /** Of one that is wanted. */
        differs: z.array(userDifference),
      }),
    )
    .max(READ_MAX),
});
export type UsersShown = z.infer<typeof usersShown>;
