/** What OSDP devices alone are asked for, as the interface has it. */
import { z } from '@hono/zod-openapi';
import { firmwareName } from '../../platform/firmware-file.ts';

/** Those of SIA OSDP 2.2, 5.1. */
const BAUD_RATES = [9_600, 19_200, 38_400, 57_600, 115_200, 230_400] as const;
const HIGHEST_ADDRESS = 126;

export const firmwareBody = z.strictObject({ file: firmwareName }).openapi('OsdpFirmware');
export type FirmwareBody = z.output<typeof firmwareBody>;

export const communicationBody = z
  .strictObject({
    address: z
      .int()
      .min(0)
      .max(HIGHEST_ADDRESS)
      .optional()
      .openapi({ description: 'The new one; by default it keeps the one it has' }),
    baudRate: z.literal(BAUD_RATES).optional().openapi({
      description:
        'The new one; by default that of the bus. With another one it cannot be reached over this bus',
    }),
    confirm: z.boolean().default(false).openapi({
      description:
        'Also for a device that is spoken to in clear text, or that this takes off the bus (CONFIRMATION_NEEDED)',
    }),
  })
  .refine(({ address, baudRate }) => address !== undefined || baudRate !== undefined, {
    error: 'expected an address or a baudRate',
  })
  .openapi('OsdpCommunication');
export type CommunicationBody = z.output<typeof communicationBody>;
