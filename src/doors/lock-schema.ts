/** What is done with the lock of a door, as the interface shows it. */
import { z } from '@hono/zod-openapi';
import { firmwareName } from '../firmware-file.ts';
import { ieeeAddress } from '../http/fields.ts';
import { connectionType, UNLOCK_OUTCOMES } from './schema.ts';

export const unlockResult = z
  .object({
    doorId: z.guid(),
    outcome: z.enum(UNLOCK_OUTCOMES).openapi({
      description:
        'confirmed: the lock reported that it is unlocked, or the relay was seen to close · accepted: the lock answered that it will, and reported nothing in time · jammed: it tried, and the bolt did not move · refused: it said no · unknown: it was sent, and nobody knows. It is never sent again by itself',
    }),
    via: connectionType,
    reason: z.string().nullable().openapi({ description: 'Why it was refused, or is not known' }),
  })
  .openapi('DoorUnlock');
export type UnlockResult = z.infer<typeof unlockResult>;

export const replaceLockBody = z
  .strictObject({
    mac: ieeeAddress.openapi({ description: 'IEEE address of the lock that takes its place' }),
  })
  .openapi('LockReplacement');
export type LockReplacement = z.output<typeof replaceLockBody>;

export const firmwareBody = z
  .strictObject({
    file: firmwareName,
    ignoreBattery: z
      .boolean()
      .default(false)
      .openapi({ description: 'For a lock on mains, or one that does not tell of its battery' }),
  })
  .openapi('LockFirmware');
export type LockFirmware = z.output<typeof firmwareBody>;
