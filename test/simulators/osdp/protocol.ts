/** OSDP on a simulated bus. */
import { createHash } from 'node:crypto';
import type { CheckedPlan, DevicePlan } from '../bus/plan.ts';
import type { Device, Protocol, Reading } from '../bus/protocol.ts';
import { type OsdpDeviceOptions, openOsdpDevice, rewritten } from './device.ts';
import { nak, type Peripheral } from './peripheral.ts';
import { messageSpan, readCommand, writeReply } from './wire.ts';

const BROADCAST = 0x7f;
/** Characters of silence before each message (5.7). */
const SILENT_CHARACTERS = 2;
/** Of a device that was not given one. */
const FIRST_SERIAL = 1_000;

function read(received: Uint8Array): Reading {
  const span = messageSpan(received);
  if (!span || span.end > received.length) return { kind: 'more' };
  const address = received[span.start + 1] ?? 0;
  if (address >= 0x80) return { kind: 'bad' };
  return { kind: 'request', length: span.end, address: address === BROADCAST ? 'all' : address };
}

function optionsOf(
  { address, hwId = '', osdp = {}, settings, type, app }: DevicePlan,
  baudRate: number,
): OsdpDeviceOptions {
  const { key, ...more } = osdp;
  // Out of JSON: what is absent is absent.
  const given = more as Partial<OsdpDeviceOptions>;
  return {
    ...given,
    address,
    baudRate,
    serial: /^\d+$/.test(hwId) ? Number(hwId) : FIRST_SERIAL + address,
    ...(key !== undefined && { key: Buffer.from(key, 'hex') }),
    ...(settings && { settings }),
    ...(type !== undefined && { type }),
    ...(app && { app }),
  };
}

/** How many there were of each command. */
function deedsOf({ peripheral }: { peripheral: Peripheral }): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { code } of peripheral.deeds) {
    const name = code.toString(16);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** What they were, without their bytes. */
function filesOf({ peripheral }: { peripheral: Peripheral }) {
  return peripheral.files().map(({ type, content }) => {
    return { type, length: content.length, sha256: createHash('sha256').update(content).digest('hex') };
  });
}

function openDevice(plan: DevicePlan, baudRate: number): Device {
  const device = openOsdpDevice(optionsOf(plan, baudRate));
  return {
    ...device,
    act({ break: broken, card, keys, key, address }) {
      if (broken) device.break(broken.fault, broken.times);
      if (card) device.peripheral.presentCard({ ...card, data: Buffer.from(card.data, 'hex') });
      if (keys !== undefined) device.peripheral.pressKeys(0, keys);
      if (address !== undefined) device.setAddress(address);
      if (key !== undefined) device.setKey(key === null ? undefined : Buffer.from(key, 'hex'));
    },
    describe: (now) => ({ ...device.describe(now), files: filesOf(device), deeds: deedsOf(device) }),
  };
}

export const osdp = ({ baudRate }: Pick<CheckedPlan, 'baudRate'>): Protocol => ({
  silenceMs: (characterMs) => SILENT_CHARACTERS * characterMs,
  read,
  openDevice: (plan) => openDevice(plan, baudRate),
  refusal(request, code) {
    const command = readCommand(request);
    const isRead = command !== undefined && command !== 'damaged';
    return writeReply({
      address: isRead ? command.address : 0,
      sequence: isRead ? command.sequence : 0,
      usesCrc: true,
      block: null,
      ...nak(code),
    });
  },
  corrupted(reply) {
    const bytes = Buffer.from(reply);
    const last = bytes.length - 1;
    bytes[last] = (bytes[last] ?? 0) ^ 0x01;
    return bytes;
  },
  readdressed: (reply, address) => rewritten(Buffer.from(reply), 1, () => address | 0x80),
});
