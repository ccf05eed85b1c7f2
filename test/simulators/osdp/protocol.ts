/** OSDP on a simulated bus. */
import type { Protocol, Reading } from '../bus/protocol.ts';
import { type OsdpDeviceOptions, openOsdpDevice, rewritten } from './device.ts';
import { nak } from './peripheral.ts';
import { messageSpan, readCommand, writeReply } from './wire.ts';

const BROADCAST = 0x7f;
/** Characters of silence that end a message that was cut short (5.7: 20 ms at most; devices take less). */
const SILENT_CHARACTERS = 20;

function read(received: Uint8Array): Reading {
  const span = messageSpan(received);
  if (!span || span.end > received.length) return { kind: 'more' };
  const address = received[span.start + 1] ?? 0;
  if (address >= 0x80) return { kind: 'bad' };
  return { kind: 'request', length: span.end, address: address === BROADCAST ? 'all' : address };
}

/** `optionsOf`: what a device is made of, by its address. */
export function osdpProtocol(optionsOf: (address: number) => Omit<OsdpDeviceOptions, 'address'>): Protocol {
  return {
    silenceMs: (characterMs) => SILENT_CHARACTERS * characterMs,
    read,
    openDevice: ({ address }) => openOsdpDevice({ ...optionsOf(address), address }),
    refusal(request, code) {
      const command = readCommand(request);
      const isRead = command !== undefined && command !== 'damaged';
      return writeReply({
        ...{ address: isRead ? command.address : 0, sequence: isRead ? command.sequence : 0 },
        ...{ usesCrc: true, block: null, ...nak(code) },
      });
    },
    corrupted(reply) {
      const bytes = Buffer.from(reply);
      const last = bytes.length - 1;
      bytes[last] = (bytes[last] ?? 0) ^ 0x01;
      return bytes;
    },
    readdressed: (reply, address) => rewritten(Buffer.from(reply), 1, () => address | 0x80),
  };
}
