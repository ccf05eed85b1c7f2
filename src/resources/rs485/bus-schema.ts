/** Buses, scans, pulses and replacements as the interface shows them; and what OSDP devices alone are asked for. */
import { z } from '@hono/zod-openapi';
import { BAUD_RATES, PARITIES } from '../../../drivers/bus/options.ts';
import { busWarningSchema } from '../../../drivers/contract/bus-warnings.ts';
import { readerBuzzer, readerLed, readerText } from '../../../drivers/contract/osdp.ts';
import { address, baudRate, PAIRING_MAX_MS, parity, wireCounters } from '../../../drivers/contract/rs485.ts';
import { HW_ID_MAX } from '../../../drivers/contract/settings.ts';
import { firmwareName } from '../../platform/firmware-file.ts';
import { plainId, printable, wholeNumber } from '../../platform/http/fields.ts';

const BUS_MAX = 64;
const milliseconds = z.number().min(0);
const busId = z.string().openapi({ example: 'bus-1' });
/** As callers give it. */
export const busReference = plainId.min(1).max(BUS_MAX).openapi({ example: 'bus-1' });

export const wire = z
  .object({
    address,
    alive: z.boolean(),
    turnaroundMs: milliseconds.nullable().openapi({
      description: 'Between the end of a question and the beginning of the reply; null until it answered',
    }),
    refreshMs: milliseconds.nullable().openapi({ description: 'From poll to poll' }),
    replyAge: z.int().nullable().openapi({
      description: 'Milliseconds since it answered last; null: not since the link came up',
    }),
    counters: z.object(wireCounters.shape).openapi({
      description:
        'Exchanges since the link came up. `collisions`: sound frames that answered no question; `refusals`: the device answered with an error; `late`: replies that came after `turnaroundMaxMs`, or after the shorter wait for a device that was taken for absent',
    }),
  })
  .openapi('Rs485Wire');
export type Wire = z.infer<typeof wire>;

const busOverview = z
  .object({
    id: busId,
    protocol: z.string(),
    port: z.string().nullable(),
    up: z.boolean(),
    since: z.iso.datetime().nullable(),
    lastError: z.string().nullable(),
    reportAge: z.int().nullable().openapi({
      description: 'Milliseconds since the figures below; null: the bus is down, or has reported none yet',
    }),
    utilisation: z.number().nullable().openapi({ description: '0 to 1: how busy the wire was lately' }),
    pollsPerSecond: z.number().nullable(),
    strayBytes: z.int().nullable().openapi({ description: 'That came while no question was open' }),
    warnings: z.array(busWarningSchema).openapi({
      description: 'What a technician should mend: `message` says it in English, of what is in `parameters`',
    }),
    pairing: z.object({ address, until: z.iso.datetime() }).nullable().openapi({
      description: 'The window in which the OSDP device at this address is given its key',
    }),
    devices: z.array(wire.extend({ hwId: z.string().nullable(), deviceId: z.guid().nullable() })),
  })
  .openapi('Rs485Bus');
export type BusOverview = z.infer<typeof busOverview>;
export type PairingWindow = NonNullable<BusOverview['pairing']>;

export const busList = z.object({ items: z.array(busOverview) }).openapi('Rs485BusList');

const REPEATS_MAX = 100;
export const scanBody = z
  .strictObject({
    bus: busReference.optional().openapi({ description: 'May be left out where there is only one' }),
    from: address.optional().openapi({ description: 'First address; by default the lowest of the protocol' }),
    to: address.optional().openapi({ description: 'Last address; by default the highest of the protocol' }),
    repeats: z.int().min(1).max(REPEATS_MAX).default(1).openapi({
      description: 'How often each address is asked; one that never answers, twice at most',
    }),
    record: z.boolean().optional().openapi({
      description: 'false: show who is there, but create no device and store no address; true where absent',
    }),
    detect: z.boolean().optional().openapi({
      description: 'Ask also with the other baud rates and parities that are usual with the protocol',
    }),
    baudRates: z.array(baudRate).min(1).max(BAUD_RATES.length).optional().openapi({
      description: 'Those to try instead of the usual ones; implies `detect`',
    }),
    parities: z.array(parity).min(1).max(PARITIES.length).optional().openapi({
      description: 'Those to try instead of the usual ones; implies `detect`',
    }),
  })
  .refine(({ from = 0, to = from }) => from <= to, { path: ['to'], error: 'expected `to` not below `from`' })
  .openapi('Rs485Scan');
export type ScanBody = z.output<typeof scanBody>;

const PAIRING_MAX_S = PAIRING_MAX_MS / 1_000;
export const pairBody = z
  .strictObject({
    address: z.int().min(0).max(126).openapi({ description: 'As set at the device' }),
    seconds: z.int().min(1).max(PAIRING_MAX_S).default(60).openapi({
      description: 'How long the window is open at most; it closes once the device has its key',
    }),
  })
  .openapi('OsdpPairing');
export type PairBody = z.output<typeof pairBody>;

export const pulseResult = z
  .object({
    relay: z.int(),
    milliseconds: z.int().openapi({
      description:
        'What this order asked for, as the device can do it, rounded up. A relay that an earlier pulse keeps closed for longer stays closed to the end of that one',
    }),
    outcome: z.enum(['confirmed', 'unknown']).openapi({
      description:
        'unknown: it was sent, and no one knows whether it fired. It is never sent again by itself',
    }),
    timedBy: z.enum(['device', 'gateway']).nullable().openapi({
      description: 'Who opens the relay again; null when the outcome is unknown',
    }),
  })
  .openapi('Rs485Pulse');
export type PulseResult = z.infer<typeof pulseResult>;

export const watchdogTestBody = z
  .strictObject({
    confirm: z.boolean().default(false).openapi({
      description: 'What the relay opens is disconnected, or may be opened (CONFIRMATION_NEEDED)',
    }),
    openedByItself: z.boolean().optional().openapi({
      description:
        'Within 10 minutes after a test, which is not run again: whether somebody saw the relay open both times while the device was asked nothing. true is the proof, false withdraws an earlier one',
    }),
  })
  .openapi('Rs485WatchdogTest');
export type WatchdogTestBody = z.output<typeof watchdogTestBody>;

export const replaceBody = z
  .strictObject({
    hwId: printable.min(1).max(HW_ID_MAX).openapi({ description: 'Of the device that takes its place' }),
    bus: busReference.optional().openapi({ description: 'By default the bus of the device before it' }),
    confirm: z.boolean().default(false).openapi({
      description: 'Also for a hwId that does not answer on that bus now (CONFIRMATION_NEEDED)',
    }),
  })
  .openapi('Rs485Replacement');
export type Replacement = z.output<typeof replaceBody>;

const TRACE_MAX_S = 3_600;
const TRACE_MAX_PACKETS = 1_000_000;
export const traceQuery = z.strictObject({
  seconds: wholeNumber(TRACE_MAX_S).default(60).openapi({ description: 'It ends after so long' }),
  count: wholeNumber(TRACE_MAX_PACKETS).optional().openapi({ description: 'It ends after so many packets' }),
  decrypt: z
    .enum(['true', 'false'])
    .default('false')
    .transform((value) => value === 'true')
    .openapi({
      type: 'boolean',
      description: 'Show in clear what OSDP encrypts; keys, cards and what is typed are blanked all the same',
    }),
});
export type TraceQuery = z.output<typeof traceQuery>;

export const traceEvent = z
  .discriminatedUnion('event', [
    z.object({
      event: z.literal('begin'),
      bus: busId,
      protocol: z.string(),
      port: z.string().nullable(),
      baudRate: z.int().nullable(),
    }),
    z.object({
      event: z.literal('packets'),
      dropped: z.int().openapi({
        description: 'Packets before these that were lost, for they were not taken in time',
      }),
      packets: z.array(
        z.object({
          at: z.int().openapi({
            description: 'Epoch microseconds: when it was handed to the port, or its first byte was read',
          }),
          sent: z.boolean().openapi({ description: 'By the gateway; else it was heard' }),
          bytes: z.string().openapi({ description: 'Hex' }),
          concealed: z.boolean().openapi({
            description: 'A key in it is blanked, with all that follows; or a card, or what was typed',
          }),
          decrypted: z.boolean().openapi({
            description:
              'Not as on the wire: what was encrypted is in clear, under the security block for that',
          }),
        }),
      ),
    }),
    z.object({ event: z.literal('interrupted'), reason: z.string() }),
    z.object({ event: z.literal('heartbeat') }),
    z.object({
      event: z.literal('end'),
      reason: z.string().openapi({ description: 'time, count, bytes, stopped, or what went wrong' }),
      packets: z.int(),
      dropped: z.int(),
    }),
  ])
  .openapi('Rs485TraceEvent');
export type TraceEvent = z.infer<typeof traceEvent>;

/** Those of SIA OSDP 2.2, 5.1. */
const OSDP_BAUD_RATES = [9_600, 19_200, 38_400, 57_600, 115_200, 230_400] as const;
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
    baudRate: z.literal(OSDP_BAUD_RATES).optional().openapi({
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
