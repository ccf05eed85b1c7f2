/** What every RS-485 bus is configured with (`links[].options`); each protocol adds its own. */
import { z } from 'zod';
import { PORTS, portIn } from '../contract/port-number.ts';

/** Those that UARTs and serial device servers have in common. */
export const BAUD_RATES = [1_200, 2_400, 4_800, 9_600, 19_200, 38_400, 57_600, 115_200, 230_400] as const;

const HOST_AND_PORT = String.raw`(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):\d{1,5}`;

/** `schemes`: of what is behind a network, as a regular expression; `expected` in words. */
export function portName(schemes: string, expected: string) {
  return z
    .string(`expected ${expected}`)
    .max(4_096)
    .regex(new RegExp(`^(/[^\\0]+|${schemes}://${HOST_AND_PORT})$`), `expected ${expected}`)
    .refine(portIn(/^[a-z-]+:.*:(\d+)$/), PORTS);
}

/** What an RS-485 bus may be behind. */
export const SERIAL_SCHEMES = 'tcp|tcp-listen|rfc2217';
const serialPort = portName(
  `(${SERIAL_SCHEMES})`,
  'a device such as /dev/serial/by-id/…, or tcp://host:port of a serial device server (rfc2217:// where it is one of RFC 2217, tcp-listen://address:port where it dials in)',
);

export const PARITIES = ['none', 'even', 'odd'] as const;

/** More than linux/serial_core.h takes is cut there to 100. */
const rtsDelay = z.int().min(0).max(100).default(0);

/** Spread into the options of a protocol, which may give other defaults to what its standard decides. */
export const busOptions = {
  port: serialPort.describe(
    'Serial device (by-id paths survive replugging), or a serial device server: tcp://host:port in raw mode, rfc2217://host:port by RFC 2217, tcp-listen://address:port where it dials in, at that address of this machine',
  ),
  allowedPeer: z
    .union([z.ipv4(), z.ipv6()], 'expected an IP address')
    .optional()
    .describe('The address that may dial in to tcp-listen://, and needed there: it authenticates nothing'),
  rs485: z
    .strictObject({
      rtsOnSend: z.boolean().default(true).describe('Level of RTS while it sends'),
      rtsAfterSend: z.boolean().default(false).describe('Level of RTS otherwise'),
      delayBeforeMs: rtsDelay.describe('From switching to the first bit'),
      delayAfterMs: rtsDelay.describe('From the last bit to switching back'),
    })
    .optional()
    .describe(
      'A UART whose line driver is switched by RTS: the kernel does it (TIOCSRS485), where its driver can. Absent: the mode is left as it is',
    ),
  baudRate: z
    .literal(BAUD_RATES)
    .default(19_200)
    .describe('Of the wire, also behind a device server or gateway'),
  parity: z.enum(PARITIES).default('even').describe('Modbus prescribes even; DCON and OSDP none'),
  stopBits: z.literal([1, 2]).default(1).describe('2 with parity none, where devices want 11 bits'),
  localEcho: z.boolean().default(false).describe('The adapter hears what it sends: strip it, and compare'),
  pollEveryMs: z
    .int()
    .min(0)
    .max(3_600_000)
    .default(200)
    .describe('How often each device is read; 0: as often as the wire lets'),
  turnaroundMaxMs: z
    .int()
    .min(1)
    .max(5_000)
    .default(100)
    .describe('The longest a device takes to begin its reply; one that is there always has so long'),
};

const schema = z.object(busOptions);
/** `dataBits`: of a serial port; 8 when absent. */
export type BusOptions = z.output<typeof schema> & { dataBits?: 7 | 8 };
/** How characters travel. */
export type LineSettings = Pick<BusOptions, 'baudRate' | 'parity' | 'stopBits'>;

type Wire = Pick<BusOptions, 'baudRate' | 'parity' | 'stopBits' | 'dataBits'>;

/** Start, data bits, parity, stop. */
export function characterMs({ baudRate, parity, stopBits, dataBits = 8 }: Wire): number {
  return ((1 + dataBits + (parity === 'none' ? 0 : 1) + stopBits) / baudRate) * 1_000;
}

/** Above this rate t3.5 is fixed, for interrupts would come too often (Modbus over serial line 1.02, 2.5.1.1). */
const FIXED_GAP_ABOVE_BAUD = 19_200;
const FIXED_GAP_MS = 1.75;
const GAP_CHARACTERS = 3.5;

/** t3.5: the silence that ends a frame of Modbus RTU, and so the least before each request. */
export function rtuGapMs(wire: Wire): number {
  return wire.baudRate > FIXED_GAP_ABOVE_BAUD ? FIXED_GAP_MS : GAP_CHARACTERS * characterMs(wire);
}

/** What the port and the other options say against each other. */
export function checkPort(
  { port, allowedPeer, rs485 }: Pick<BusOptions, 'port' | 'allowedPeer' | 'rs485'>,
  context: z.RefinementCtx,
): void {
  const refuse = (path: string, message: string) =>
    context.addIssue({ code: 'custom', path: [path], message });
  const isDialledIn = port.startsWith('tcp-listen://');
  if (isDialledIn && allowedPeer === undefined)
    refuse(
      'allowedPeer',
      'is needed with tcp-listen: every host that may connect there can play the devices of the bus',
    );
  if (!isDialledIn && allowedPeer !== undefined) refuse('allowedPeer', 'is for a port tcp-listen://');
  if (rs485 && !port.startsWith('/')) refuse('rs485', 'is for a serial port of this machine');
  if (rs485 && rs485.rtsOnSend === rs485.rtsAfterSend)
    refuse('rs485', 'needs rtsOnSend and rtsAfterSend to differ: RTS switches the transmitter');
}

/** Refuses devices of which two have the same address. */
export function eachOnce<Field extends string>(field: Field) {
  return (devices: readonly Record<Field, number>[], context: z.RefinementCtx): void => {
    const addresses = devices.map((device) => device[field]);
    for (const [index, input] of addresses.entries())
      if (addresses.indexOf(input) < index)
        context.addIssue({ code: 'custom', path: [index, field], message: `${input} is there twice`, input });
  };
}
