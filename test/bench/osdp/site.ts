/** A bus of OSDP devices behind a pty, paced byte by byte, the gateway on it, and what its wire can carry at most. */
import { openSimulatedBus, type SimulatedBus } from '../../simulators/bus/bus.ts';
import { type BusPlan, characterMs } from '../../simulators/bus/plan.ts';
import { type Gateway, openFieldGateway } from '../rs485/contenders.ts';

const FORMAT = { parity: 'none', stopBits: 1 } as const;
export const TURNAROUND_MS = 1;
/** Silence before each message, of either side (SIA OSDP 2.2, 5.7). */
const SILENT_CHARACTERS = 2;
/** Characters of a POLL and its ACK with mark and CRC; the secure ones have a security block and a MAC more. */
const CHARACTERS = {
  plain: { poll: 9, ack: 9 },
  secure: { poll: 15, ack: 15 },
};

/** Data is padded to sixteen characters; the reply is an OSTATR of eight outputs. */
const SECURE_OUT = { request: 31, reply: 31 };

/** How the devices are spoken to. */
export type Security = keyof typeof CHARACTERS;

/** A reader that knows nothing of our own messages: it is polled, and asked nothing else. */
const OTHER_VENDOR = 0x00_06_8e;
const FIRST_SERIAL = 4_700;

export interface OsdpBus {
  baudRate: number;
  security: Security;
  addresses: readonly number[];
  /** 0: as often as the wire lets. */
  pollEveryMs?: number;
  pacing?: BusPlan['pacing'];
}

const keyOf = (address: number) => Buffer.alloc(16, address + 1).toString('hex');

function hwIdOf(address: number): string {
  return `${OTHER_VENDOR.toString(16).padStart(6, '0')}-1-${FIRST_SERIAL + address}`;
}

export function addressesTo(last: number): number[] {
  return Array.from({ length: last + 1 }, (_, index) => index);
}

export function openBenchBus({
  baudRate,
  security,
  addresses,
  pacing = 'exact',
}: OsdpBus): Promise<SimulatedBus> {
  const isPlain = security === 'plain';
  return openSimulatedBus({
    ...FORMAT,
    baudRate,
    protocol: 'osdp',
    pacing,
    devices: addresses.map((address) => ({
      address,
      kind: 'osdp-io',
      hwId: String(FIRST_SERIAL + address),
      turnaroundMs: TURNAROUND_MS,
      osdp: {
        vendorCode: OTHER_VENDOR,
        ...(isPlain ? { isPlain } : { key: keyOf(address), requiresSecurity: true }),
      },
    })),
  });
}

/** Resolves when every device is connected, in its session. */
export function openGatewayOn(
  { port }: SimulatedBus,
  { baudRate, security, addresses, pollEveryMs = 0 }: OsdpBus,
): Promise<Gateway> {
  const secure = security === 'plain' ? 'off' : 'required';
  return openFieldGateway({
    links: [
      {
        id: 'readers',
        protocol: 'osdp',
        options: { port, baudRate, pollEveryMs, devices: addresses.map((address) => ({ address, secure })) },
        // No one is polled before the first list of keys, even an empty one.
        keys: security === 'plain' ? [] : addresses.map((address) => ({ address, key: keyOf(address) })),
      },
    ],
    devices: addresses.length,
    hwIdOf,
  });
}

/** Milliseconds from one poll to the next on a wire with a panel that needs no time itself. */
export function pollWireMs(baudRate: number, security: Security): number {
  const { poll, ack } = CHARACTERS[security];
  return (poll + ack + 2 * SILENT_CHARACTERS) * characterMs({ baudRate, ...FORMAT }) + TURNAROUND_MS;
}

/** Milliseconds that an OUT of one relay takes in a secure channel: until the device has heard it, and has answered. */
export function outWireMs(baudRate: number): { heard: number; answered: number } {
  const character = characterMs({ baudRate, ...FORMAT });
  const heard = (SECURE_OUT.request + SILENT_CHARACTERS) * character;
  return { heard, answered: heard + (SECURE_OUT.reply + SILENT_CHARACTERS) * character + TURNAROUND_MS };
}
