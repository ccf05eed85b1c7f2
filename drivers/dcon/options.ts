/** What a DCON bus is configured with. */
import { z } from 'zod';
import { BAUD_RATES, busOptions, checkPort, eachOnce } from '../bus/options.ts';

/** Two hex digits of the frame; 00 is where a module with INIT* grounded answers, and a legal address. */
const moduleAddress = z.int().min(0).max(255);

export const dconOptions = z
  .strictObject({
    ...busOptions,
    baudRate: z
      .literal(BAUD_RATES)
      .default(9_600)
      .describe('Of the wire, also behind a serial device server'),
    parity: busOptions.parity.removeDefault().default('none').describe('Modules are delivered with none'),
    checksum: z
      .boolean()
      .default(true)
      .describe('Frames carry a checksum; false only for modules that cannot, for noise is then believed'),
    hostWatchdogMs: z
      .int()
      .min(1_000)
      .max(25_500)
      .default(10_000)
      .describe('A module that hears nothing for so long puts its outputs to their safe value'),
    moduleTypes: z
      .array(z.string().regex(/^[^\0]{1,4000}\.ya?ml$/, 'expected the path of a .yaml file'))
      .max(64)
      .default([])
      .describe(
        'Modules that do not come with Gatehouse, a file each (config/profiles/dcon-module.schema.json)',
      ),
    devices: z
      .array(
        z.strictObject({ address: moduleAddress.describe('As set at the module; 17 is 0x11 in its frames') }),
      )
      .max(256)
      .superRefine(eachOnce('address'))
      .default([])
      .describe('Modules that are known to be there; a scan finds others'),
  })
  .superRefine(checkPort);
export type DconOptions = z.output<typeof dconOptions>;
