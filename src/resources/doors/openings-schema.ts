/** How a door stands open, who locks it again, and what its lock shows, as …/state has them. */
import { z } from '@hono/zod-openapi';
import { DOOR_STATES, LOCK_STATES } from '../../../drivers/contract/settings.ts';

const dateTime = z.iso.datetime();
export const connectionType = z.enum(['zigbee', 'rs485']);

export const standingOpen = z
  .object({
    state: z.enum(['waiting', 'sent', 'open', 'lost', 'ending']).openapi({
      description:
        'waiting: nothing was sent yet · sent: the command was sent, and the lock or the relay has not shown that it is open · open: the lock has shown that it is unlocked, or the device that its relay is closed · lost: it was open, and the lock or the device reports that it is not any more, or the relay cannot be held; a relay is closed again by the next renewal · ending: the gateway sends lock commands until the lock has shown that it is locked',
    }),
    on: z.boolean().openapi({
      description:
        'The lock or the device has shown that the door stands open, and has reported nothing else since',
    }),
    via: connectionType,
    by: z.guid().nullable().openapi({ description: 'Who wanted it' }),
    requestedAt: dateTime.nullable(),
    since: dateTime.nullable(),
    until: dateTime.nullable().openapi({ description: 'When it ends by itself' }),
    expiresAt: dateTime.nullable().openapi({
      description: 'When it is given up: of one that waits, and of a relay that was not shown closed',
    }),
    failure: z.object({ code: z.string(), message: z.string(), at: dateTime }).nullable().openapi({
      description: 'Why the last attempt failed, to open the door or to see it locked',
    }),
  })
  .nullable()
  .openapi({ description: 'null: the door is not to stand open' });
export type StandingOpenState = z.infer<typeof standingOpen>;

export const relockState = z.object({
  by: z.enum(['timedUnlock', 'autoRelock', 'gateway']).nullable().openapi({
    description:
      'timedUnlock: the lock, after the time in the command · autoRelock: the lock, by its own setting · gateway: Gatehouse, which sends lock commands until the lock has shown that it is locked · null: not known yet; then Gatehouse, unless the lock turns out to do it',
  }),
  seconds: z.int().nullable(),
  pending: z
    .array(
      z.object({
        mac: z.string(),
        purpose: z.enum(['unlock', 'standOpen']),
        reason: z.string(),
        since: dateTime,
        attempts: z.int(),
        failure: z.object({ message: z.string(), at: dateTime }).nullable(),
        alarm: z.boolean().openapi({ description: 'A person has to check the door' }),
      }),
    )
    .openapi({
      description: 'Locks of this door that Gatehouse has not seen locked yet; a replaced one too',
    }),
});

const aged = <Value extends z.ZodType>(value: Value) =>
  z.object({ value, at: dateTime, age: z.int().openapi({ description: 'Milliseconds' }) }).nullable();

const limit = z.int().nullable();

export const lockConditions = {
  lockState: aged(z.enum(LOCK_STATES)).openapi({
    description: 'The bolt, as the lock reported; null: it has not',
  }),
  doorState: aged(z.enum(DOOR_STATES)).openapi({
    description: 'The door, by the sensor of the lock; null: it has none, or has not reported',
  }),
  battery: z
    .object({
      percent: z.int().nullable(),
      low: z.boolean().openapi({
        description: 'Below 20 %, until it is 25 % again, or the lock raised its own alarm',
      }),
      at: dateTime.nullable().openapi({ description: 'When the lock reported the percentage' }),
      age: z.int().nullable().openapi({ description: 'Of the percentage, in milliseconds' }),
      alarmAt: dateTime.nullable().openapi({
        description:
          'When the lock said last whether its battery is low, by itself or when it was asked; null: it has not',
      }),
    })
    .nullable()
    .openapi({
      description:
        'Of a standard lock, which reports a percentage; `dueBattery…` of the door stay null then. null: it has not reported',
    }),
  lockFamily: z.string().nullable().openapi({
    description:
      'The family of standard locks that the lock says it is of (docs/locks.md); null: of none that is known, or no lock has reported',
  }),
  setupFaults: z.array(z.object({ step: z.string(), reason: z.string(), at: dateTime })).openapi({
    description: 'Steps of the first configuration of the lock that failed; they are tried again',
  }),
  users: z
    .object({
      pins: limit,
      cards: limit,
      pinMin: limit,
      pinMax: limit,
      cardMin: limit,
      cardMax: limit,
      weekDays: limit,
      yearDays: limit,
      holidays: limit,
    })
    .nullable()
    .openapi({
      description:
        'Limits of the lock, not its users: how many PINs and cards, their lengths (digits, bytes), and schedules for each user; a null is not reported. null: it has reported none of it',
    }),
  rfPin: z.object({ required: z.boolean().nullable(), isStored: z.boolean() }).openapi({
    description:
      'The PIN for operations by radio: whether the lock requires one (null: it has not reported), and whether it is stored',
  }),
};
