/** What a Modbus RTU bus is configured with. */
import { z } from 'zod';
import { busOptions, eachOnce } from '../bus/options.ts';

/** Unit ids of devices; 0 is the broadcast, and those above 247 are reserved (Modbus over serial line 1.02, 2.2). */
const unitId = z.int().min(1).max(247);

const profileName = z
  .string()
  .regex(
    /^([a-z0-9-]{1,64}|[^\0]{1,4000}\.ya?ml)$/,
    'expected the name of a profile that comes with Gatehouse, or the path of a .yaml file',
  );

export const modbusOptions = z.strictObject({
  ...busOptions,
  profile: profileName
    .default('gatehouse-io')
    .describe('What devices are taken for unless devices says otherwise'),
  devices: z
    .array(
      z.strictObject({
        unitId: unitId.describe('As set at the device'),
        profile: profileName.optional().describe('Its product, when it is not the profile of the bus'),
      }),
    )
    .max(247)
    .superRefine(eachOnce('unitId'))
    .default([])
    .describe('Devices that are known to be there; a scan finds those that can say who they are'),
});
export type ModbusOptions = z.output<typeof modbusOptions>;
