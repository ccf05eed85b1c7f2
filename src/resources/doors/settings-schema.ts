/** Settings of the lock of a door, as the interface shows them. */
import { z } from '@hono/zod-openapi';
import { HOLIDAY_MODES } from '../../../drivers/contract/lock-settings.ts';
import { HOLIDAYS_MAX, OPERATING_MODES } from '../../../drivers/contract/settings.ts';
import { localTime } from './user-schema.ts';

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

const nullable = <Field extends z.ZodType>(field: Field) => field.nullable();

export const settingsBody = z
  .strictObject({
    autoRelockSeconds: nullable(fields.autoRelockSeconds).optional(),
    soundVolume: nullable(fields.soundVolume).optional(),
    oneTouchLocking: nullable(fields.oneTouchLocking).optional(),
    wrongCodeLimit: nullable(fields.wrongCodeLimit).optional(),
    wrongCodeLockoutSeconds: nullable(fields.wrongCodeLockoutSeconds).optional(),
    holidays: nullable(fields.holidays).optional(),
  })
  .openapi('LockSettingsUpdate');
export type SettingsBody = z.output<typeof settingsBody>;

const number = z.int().nullable();
const holidaysOf = <Mode extends string>(modes: readonly [Mode, ...Mode[]]) =>
  z.array(z.object({ start: z.string(), end: z.string(), mode: z.enum(modes) })).nullable();

export const settingsResult = z
  .object({
    doorId: z.guid(),
    wanted: z
      .object({
        autoRelockSeconds: number,
        soundVolume: number,
        oneTouchLocking: z.boolean().nullable(),
        wrongCodeLimit: number,
        wrongCodeLockoutSeconds: number,
        holidays: holidaysOf(HOLIDAY_MODES),
      })
      .openapi({ description: 'null: it is left as the lock has it' }),
    reported: z
      .object({
        autoRelockSeconds: number,
        soundVolume: number,
        oneTouchLocking: z.boolean().nullable(),
        wrongCodeLimit: number,
        wrongCodeLockoutSeconds: number,
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
