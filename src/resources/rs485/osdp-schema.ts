/** What OSDP devices alone are asked for, as the interface has it. */
import { z } from '@hono/zod-openapi';
import { readerBuzzer, readerLed, readerText } from '../../../drivers/contract/osdp.ts';
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

export const readerBody = z
  .strictObject({
    reader: z.int().min(0).max(255).default(0).openapi({ description: 'Of the device; mostly 0' }),
    text: readerText.optional().openapi({ description: 'What its display shows for so many seconds' }),
    led: readerLed.optional().openapi({ description: 'The colour of one LED for a time' }),
    buzzer: readerBuzzer.optional().openapi({ description: 'In whole tenths of a second, rounded up' }),
  })
  .refine(({ text, led, buzzer }) => text !== undefined || led !== undefined || buzzer !== undefined, {
    error: 'expected a text, a led or a buzzer',
  })
  .openapi('OsdpReader');
export type ReaderBody = z.output<typeof readerBody>;

export const readerResult = z
  .object({
    deviceId: z.guid(),
    reader: z.int(),
    shown: z
      .array(z.enum(['text', 'led', 'buzzer']))
      .openapi({ description: 'What the device acknowledged' }),
  })
  .openapi('OsdpReaderShown');
export type ReaderResult = z.output<typeof readerResult>;
