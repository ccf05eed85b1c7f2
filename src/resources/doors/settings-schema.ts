/** Settings of the lock of a door, as the interface shows them. */
import { z } from '@hono/zod-openapi';

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
};

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
  })
  .openapi('LockSettingsUpdate');
export type SettingsBody = z.output<typeof settingsBody>;

const number = z.int().nullable();

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
      })
      .openapi({ description: 'null: it is left as the lock has it' }),
    reported: z
      .object({
        autoRelockSeconds: number,
        soundVolume: number,
        oneTouchLocking: z.boolean().nullable(),
        wrongCodeLimit: number,
        wrongCodeLockoutSeconds: number,
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
