/** Users of the lock of a door, and its settings, as the interface shows them. */
import { z } from '@hono/zod-openapi';
import { HOLIDAY_MODES } from '../../../drivers/contract/lock-settings.ts';
import { USER_ID_MAX } from '../../../drivers/contract/lock-users.ts';
import { HOLIDAYS_MAX, OPERATING_MODES } from '../../../drivers/contract/settings.ts';
import { numberCursor, pageLimit, pageOf } from '../../platform/http/fields.ts';
import { localTime } from './local-time.ts';
import { dateTime, doorId } from './schema.ts';

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
const LISTS_MAX = 16;

const minute = z.int().min(0).max(1_439);
const weekDays = z
  .array(z.strictObject({ days: z.array(z.enum(DAYS)).min(1).max(DAYS.length), start: minute, end: minute }))
  .min(1)
  .max(LISTS_MAX)
  .openapi({
    description:
      'Minutes of the day in the local time of the lock, as the intervals of a schedule. A lock may keep fewer of them',
  });

const yearDays = z
  .array(
    z
      .strictObject({ start: localTime, end: localTime })
      .refine(({ start, end }) => start < end, 'expected an end after the start'),
  )
  .min(1)
  .max(LISTS_MAX)
  .openapi({ description: 'In the local time of the lock, without a zone' });

/** As they are stored. */
export const storedWeekDays = weekDays.nullable();
export const storedYearDays = yearDays.nullable();

export const userParams = z.object({
  doorId,
  userId: z
    .string()
    .regex(/^(0|[1-9][0-9]{0,4})$/, `expected a number from 0 to ${USER_ID_MAX}`)
    .transform(Number)
    .refine((id) => id <= USER_ID_MAX, `expected a number from 0 to ${USER_ID_MAX}`)
    .openapi({
      type: 'integer',
      minimum: 0,
      maximum: USER_ID_MAX,
      description: 'The place in the memory of the lock, as its keypad and its events number it',
    }),
});

export const userBody = z
  .strictObject({
    status: z.enum(['enabled', 'disabled']).optional(),
    pin: z
      .string()
      .regex(/^[0-9]{1,16}$/, 'expected 1 to 16 digits')
      .nullable()
      .optional()
      .openapi({ description: 'Never returned, logged or audited; null removes it' }),
    card: z
      .string()
      .regex(/^([0-9a-fA-F]{2}){1,20}$/, 'expected 1 to 20 bytes in hex')
      .toLowerCase()
      .nullable()
      .optional()
      .openapi({ description: 'The RFID code as the lock reads it. As secret as the PIN; null removes it' }),
    weekDays: weekDays.nullable().optional(),
    yearDays: yearDays.nullable().optional(),
  })
  .openapi('LockUserUpdate');
export type UserBody = z.output<typeof userBody>;

const USER_STATES = ['applied', 'waiting', 'refused', 'removing', 'foreign'] as const;

export const lockUser = z
  .object({
    userId: z.int(),
    status: z.enum(['enabled', 'disabled']).nullable().openapi({
      description: 'As it is wanted; null: nothing is wanted of it',
    }),
    hasPin: z.boolean(),
    hasCard: z.boolean(),
    weekDays: weekDays.nullable(),
    yearDays: yearDays.nullable(),
    state: z.enum(USER_STATES).openapi({
      description:
        'applied: the lock has it as it is wanted · waiting: it is to be sent, and what the lock had there before opens until then · refused: the lock said no; `failure` says why, and what the lock had there before may still open · removing: it is to be removed from the lock, and opens until then · foreign: somebody stored it at the lock; Gatehouse leaves it there until it is set or deleted here',
    }),
    isShown: z.boolean().openapi({
      description:
        'Of what is applied: the lock has shown it, digits and schedules included; else it has only said yes',
    }),
    failure: z.string().nullable().openapi({ description: 'Begins with the field' }),
    at: dateTime
      .nullable()
      .openapi({ description: 'When it was last written to the lock, or changed at it; null: never' }),
  })
  .openapi('LockUser', { description: 'Without the digits, which are never returned.' });
export type LockUser = z.infer<typeof lockUser>;

export const userPage = pageOf(lockUser).openapi('LockUserPage');
export const userQuery = z.strictObject({ cursor: numberCursor, limit: pageLimit });
export type UserQuery = z.output<typeof userQuery>;

export const usersCleared = z
  .object({
    doorId: z.guid(),
    removing: z.int().openapi({ description: 'How many users are to be removed' }),
  })
  .openapi('LockUsersCleared');

const HOUR_S = 3_600;
const BYTE_MAX = 254;

const fields = {
  autoRelockSeconds: z.int().min(1).max(HOUR_S).openapi({
    description:
      'The lock locks again by itself after so long (AutoRelockTime). 0, never, is not to be set: it would stay open after an unlock at its keypad',
  }),
  soundVolume: z.int().min(0).max(2).openapi({ description: '0 silent · 1 low · 2 high' }),
  oneTouchLocking: z.boolean().openapi({ description: 'One touch at the outside locks it' }),
  wrongCodeLimit: z
    .int()
    .min(1)
    .max(BYTE_MAX)
    .openapi({ description: 'So many wrong codes, and it takes none for a while' }),
  wrongCodeLockoutSeconds: z.int().min(1).max(BYTE_MAX).openapi({ description: 'For so long' }),
  holidays: z
    .array(
      z
        .strictObject({ start: localTime, end: localTime, mode: z.enum(HOLIDAY_MODES) })
        .refine(({ start, end }) => start < end, 'expected an end after the start'),
    )
    .max(HOLIDAYS_MAX)
    .refine((list) => !overlap(list), 'expected spans that do not overlap')
    .openapi({
      description:
        'Spans in the local time of the lock, in which it is in another operating mode. vacation: it opens for no PIN and no card; Gatehouse unlocks it as ever · normal. []: none, also of those that somebody set at the lock',
    }),
};

function overlap(list: readonly { start: string; end: string }[]): boolean {
  const ordered = list.toSorted((a, b) => (a.start < b.start ? -1 : 1));
  return ordered.some(({ start }, index) => index > 0 && start < (ordered[index - 1]?.end ?? ''));
}

/** As they are stored. */
export const storedSettings = z.strictObject(fields).partial();
export type WantedSettings = z.output<typeof storedSettings>;

export const settingsBody = z
  .strictObject({
    autoRelockSeconds: fields.autoRelockSeconds.nullable().optional(),
    soundVolume: fields.soundVolume.nullable().optional(),
    oneTouchLocking: fields.oneTouchLocking.nullable().optional(),
    wrongCodeLimit: fields.wrongCodeLimit.nullable().optional(),
    wrongCodeLockoutSeconds: fields.wrongCodeLockoutSeconds.nullable().optional(),
    holidays: fields.holidays.nullable().optional(),
  })
  .openapi('LockSettingsUpdate');
export type SettingsBody = z.output<typeof settingsBody>;

const number = z.int().nullable();
const holidaysOf = <Mode extends string>(modes: readonly [Mode, ...Mode[]]) =>
  z.array(z.object({ start: z.string(), end: z.string(), mode: z.enum(modes) })).nullable();
const settings = {
  autoRelockSeconds: number,
  soundVolume: number,
  oneTouchLocking: z.boolean().nullable(),
  wrongCodeLimit: number,
  wrongCodeLockoutSeconds: number,
};

export const settingsResult = z
  .object({
    doorId: z.guid(),
    wanted: z
      .object({ ...settings, holidays: holidaysOf(HOLIDAY_MODES) })
      .openapi({ description: 'null: it is left as the lock has it' }),
    reported: z
      .object({
        ...settings,
        holidays: holidaysOf(OPERATING_MODES).openapi({
          description: 'As they were written or read last (POST …/users/read)',
        }),
      })
      .openapi({
        description: 'As the lock has it. null: it does not have that setting, or has not reported it',
      }),
    state: z.enum(['applied', 'waiting', 'refused']).openapi({
      description:
        'applied: the lock has what is wanted · waiting: it is to be sent · refused: the lock said no to some; `failure` names each',
    }),
    failure: z.string().nullable(),
  })
  .openapi('LockSettings');
export type SettingsResult = z.infer<typeof settingsResult>;
