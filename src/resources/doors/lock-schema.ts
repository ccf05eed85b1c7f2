/** What is done with the lock of a door, as the interface shows it. */
import { z } from '@hono/zod-openapi';
import { firmwareName } from '../../platform/firmware-file.ts';
import { ieeeAddress } from '../../platform/http/fields.ts';
import { connectionType, standingOpen } from './openings-schema.ts';
import { door, doorId, LOCK_OUTCOMES, UNLOCK_OUTCOMES } from './schema.ts';
import { STAND_OPEN_MAX_MS } from './stand-open-time.ts';

export const unlockResult = z
  .object({
    doorId: z.guid(),
    outcome: z.enum(UNLOCK_OUTCOMES).openapi({
      description:
        'confirmed: the lock reported that it is unlocked, or the relay was seen to close · accepted: the lock answered that it will, and reported nothing in time · jammed: it tried, and the bolt did not move · refused: it said no · unknown: it was sent, and the outcome cannot be determined. It is never sent again by itself',
    }),
    via: connectionType,
    reason: z.string().nullable().openapi({ description: 'Why it was refused, or is not known' }),
  })
  .openapi('DoorUnlock');
export type UnlockResult = z.infer<typeof unlockResult>;

const outcomes = z.enum(LOCK_OUTCOMES);

export const lockResult = z
  .object({
    doorId: z.guid(),
    outcome: outcomes.openapi({
      description:
        'confirmed: the lock reported that it is locked · accepted: it answered that it will, and reported nothing in time; or the relay lets go within 20 s; or it is locked, and a frame that opens it for a stand-open may still arrive (`reason` has the seconds) · jammed: it tried, and the bolt did not move · refused: it said no · unknown: it was sent, and the outcome cannot be determined · waiting: nothing was sent yet, and the gateway repeats the attempt until the lock has shown that it is locked',
    }),
    via: connectionType,
    reason: z.string().nullable(),
  })
  .openapi('DoorLock');
export type LockResult = z.infer<typeof lockResult>;

export const standOpenBody = z
  .strictObject({
    until: z.iso
      .datetime({ offset: true })
      .optional()
      .openapi({ description: 'At most 24 h ahead. Either this or `seconds`' }),
    seconds: z
      .int()
      .min(1)
      .max(STAND_OPEN_MAX_MS / 1_000)
      .optional(),
  })
  .refine(({ until, seconds }) => (until === undefined) !== (seconds === undefined), {
    message: 'expected either until or seconds',
  })
  .openapi('StandOpenOrder');
export type StandOpenBody = z.output<typeof standOpenBody>;

export const standOpenResult = z
  .object({
    doorId: z.guid(),
    outcome: outcomes.openapi({
      description:
        'confirmed: the lock or relay was seen open; after DELETE, the lock was seen locked, or the door did not stand open · accepted: the lock answered that it will, and reported nothing in time; after DELETE, also a relay that lets go within 20 s, or a lock that is locked and that a frame sent before may still open (`reason` has the seconds; it is locked again then) · jammed, refused: it does not stand open, and the lock is locked again · unknown: it was sent, and the outcome cannot be determined; `standingOpen` of …/state follows what the lock reports · waiting: nothing was sent yet; the attempt is repeated, a begin for 15 minutes',
    }),
    reason: z.string().nullable(),
    standingOpen,
  })
  .openapi('DoorStandOpen');
export type StandOpenResult = z.infer<typeof standOpenResult>;

export const rfPinBody = z
  .strictObject({
    pin: z
      .string()
      .regex(/^[0-9]{1,16}$/, 'expected 1 to 16 digits')
      .openapi({ description: 'As the lock has it. Never returned, logged or audited' }),
  })
  .openapi('LockRfPin');

export const rfPinResult = z.object({ doorId: z.guid(), isStored: z.boolean() }).openapi('LockRfPinState');

export const replaceLockBody = z
  .strictObject({
    mac: ieeeAddress.openapi({ description: 'IEEE address of the lock that takes its place' }),
  })
  .openapi('LockReplacement');
export type LockReplacement = z.output<typeof replaceLockBody>;

export const retireLockQuery = z.strictObject({
  confirm: z.enum(['true', 'false']).default('false').openapi({
    description:
      'true: also a lock that has to be locked and has not shown that it is locked (CONFIRMATION_NEEDED). The gateway gives that up',
  }),
});

export const retiredLock = door
  .extend({
    usersLeft: z.int().openapi({
      description:
        'Users whose PINs and cards are in the memory of the lock still, as far as is known: it opens for them. DELETE …/users removes them before the lock is retired',
    }),
    leave: z
      .object({
        outcome: z.enum(['confirmed', 'unconfirmed', 'notSent']),
        reason: z.string().nullable(),
      })
      .openapi({
        description:
          'confirmed: the lock has confirmed that it leaves its network, or has left it before · unconfirmed: it was asked, and did not answer in time · notSent: its gateway cannot be reached. A lock that has not confirmed is asked again when it is heard',
      }),
  })
  .openapi('RetiredLock');
export type LeaveResult = z.infer<typeof retiredLock>['leave'];

export const swapLockBody = z
  .strictObject({
    doorId: doorId.openapi({
      description: 'The door whose lock this one gets, and which gets the lock of this one',
    }),
  })
  .openapi('LockSwap');
export type LockSwap = z.output<typeof swapLockBody>;

export const lockSwapResult = z
  .object({ doors: z.array(door).openapi({ description: 'This door, then the other one' }) })
  .openapi('LockSwapResult');

export const firmwareBody = z
  .strictObject({
    file: firmwareName,
    ignoreBattery: z
      .boolean()
      .default(false)
      .openapi({ description: 'For a lock on mains, or one that does not report its battery' }),
  })
  .openapi('LockFirmware');
export type LockFirmware = z.output<typeof firmwareBody>;
