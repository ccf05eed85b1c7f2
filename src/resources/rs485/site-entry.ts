/** An RS-485 device of a site's file (config/site.schema.json). */
import { z } from 'zod';
import { clearableName, identifier, lines, looseId } from '../../platform/http/fields.ts';

const NAME_MAX = 128;
const DESCRIPTION_MAX = 1_024;
const PINS = [
  ...['input0', 'input1', 'input2', 'input3'],
  ...['output0', 'output1', 'output2', 'output3', 'output4', 'output5', 'output6', 'output7'],
] as const;

export const rs485Entry = z
  .strictObject({
    deviceId: z.guid('expected a UUID').toLowerCase().optional(),
    hwId: identifier.describe('What the device is called on its bus'),
    bus: identifier.describe('Id of the link it is wired to, as the configuration says it'),
    name: clearableName(NAME_MAX).optional(),
    description: lines.max(DESCRIPTION_MAX).nullable().optional(),
    doorId: looseId.nullable().optional().describe('Door that its relay opens'),
    groupId: identifier.nullable().optional(),
    relayIndex: z.int().min(0).max(7).nullable().optional(),
    unlockDurationMilliseconds: z.int().min(100).max(600_000).nullable().optional(),
    useInputPinMemory: z.boolean().optional(),
    ioPins: z.partialRecord(z.enum(PINS), z.boolean()).optional().describe('Which pins are in use'),
  })
  .describe('Found by its deviceId, else by its bus and hwId; what is absent stays as it is');
export type Rs485Entry = z.output<typeof rs485Entry>;
