/** An RS-485 device of a site's file (config/site.schema.json). */
import { z } from 'zod';
import { PINS, RELAY_MAX, UNLOCK_MAX_MS, UNLOCK_MIN_MS } from '../../../drivers/contract/settings.ts';
import {
  clearableName,
  DESCRIPTION_MAX,
  identifier,
  lines,
  looseId,
  NAME_MAX,
} from '../../platform/http/fields.ts';

export const rs485Entry = z
  .strictObject({
    deviceId: z.guid('expected a UUID').toLowerCase().optional(),
    hwId: identifier.describe('What the device is called on its bus'),
    bus: identifier.describe('Id of the link it is wired to, as the configuration says it'),
    name: clearableName(NAME_MAX).optional(),
    description: lines.max(DESCRIPTION_MAX).nullable().optional(),
    doorId: looseId.nullable().optional().describe('Door that its relay opens'),
    groupId: identifier.nullable().optional(),
    relayIndex: z.int().min(0).max(RELAY_MAX).nullable().optional(),
    unlockDurationMilliseconds: z.int().min(UNLOCK_MIN_MS).max(UNLOCK_MAX_MS).nullable().optional(),
    useInputPinMemory: z.boolean().optional(),
    ioPins: z.partialRecord(z.enum(PINS), z.boolean()).optional().describe('Which pins are in use'),
  })
  .describe('Found by its deviceId, else by its bus and hwId; what is absent stays as it is');
export type Rs485Entry = z.output<typeof rs485Entry>;
