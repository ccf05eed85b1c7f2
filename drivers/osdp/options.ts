/** What an OSDP bus is configured with. */
import { z } from 'zod';
import { BAUD_RATES, busOptions, checkPort, eachOnce } from '../bus/options.ts';
import { HIGHEST_ADDRESS } from './protocol/frame.ts';

/** 127 is everybody's (SIA OSDP 2.2, 5.4). */
const deviceAddress = z.int().min(0).max(HIGHEST_ADDRESS);

const LEDS = ['none', 'off', 'red', 'green', 'amber'] as const;

const signal = (byDefault: { led: (typeof LEDS)[number]; milliseconds: number; beeps: number }) =>
  z
    .strictObject({
      led: z.enum(LEDS).default(byDefault.led).describe('Colour of the first LED; none leaves it as it is'),
      milliseconds: z
        .int()
        .min(100)
        .max(60_000)
        .default(byDefault.milliseconds)
        .describe('How long; then the reader shows again what it did before'),
      beeps: z.int().min(0).max(10).default(byDefault.beeps).describe('0: none'),
    })
    .prefault({});
const granted = signal({ led: 'green', milliseconds: 2_000, beeps: 1 });
const denied = signal({ led: 'red', milliseconds: 1_000, beeps: 3 });
export type Signal = z.output<typeof granted>;

export const osdpOptions = z
  .strictObject({
    ...busOptions,
    baudRate: z
      .literal(BAUD_RATES)
      .default(9_600)
      .describe('Of the wire, also behind a serial device server'),
    parity: busOptions.parity.removeDefault().default('none').describe('OSDP prescribes none'),
    pollEveryMs: busOptions.pollEveryMs
      .removeDefault()
      .default(100)
      .describe(
        'How often each device is polled, every 2 s at the least: unasked, it ends its session; 0: as often as the wire lets',
      ),
    turnaroundMaxMs: busOptions.turnaroundMaxMs
      .removeDefault()
      .default(200)
      .describe('The longest a device takes to begin its reply; OSDP allows 200'),
    check: z
      .enum(['crc', 'checksum'])
      .default('crc')
      .describe('Of messages; checksum only for old devices, for one error of 256 passes it'),
    feedback: z
      .strictObject({
        granted: granted.describe('Once a relay was fired'),
        denied: denied.describe('Once a device has refused to fire one'),
      })
      .prefault({})
      .describe('What readers show once a relay was fired, or was refused'),
    devices: z
      .array(
        z.strictObject({
          address: deviceAddress.describe('As set at the device'),
          secure: z
            .enum(['required', 'off'])
            .default('required')
            .describe('off speaks to it in clear text: anyone who reaches the wire can open its doors'),
        }),
      )
      .max(HIGHEST_ADDRESS + 1)
      .superRefine(eachOnce('address'))
      .default([])
      .describe('Devices that are known to be there; a scan finds others'),
  })
  .superRefine(checkPort);
export type OsdpOptions = z.output<typeof osdpOptions>;
