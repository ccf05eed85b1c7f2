/**
 * Modbus ASCII: the exchanges of RTU with other characters on the wire, which the bus hears and counts as they are. Its frames (Modbus
 * over serial line 1.02, 2.5.2): a colon, each byte as two hexadecimal digits, the LRC (6.2.1) and CR LF.
 */
import type { Bus } from '../bus/bus.ts';
import type { Exchange, Reading } from '../bus/exchange.ts';
import { CRC_LENGTH, wireFrame } from './frame.ts';

export function asciiBus(bus: Bus): Bus {
  return {
    ...bus,
    exchange: (exchange, order, signal) => bus.exchange(inAscii(exchange), order, signal),
    poll: (poll) => bus.poll({ ...poll, begin: () => inAscii(poll.begin()) }),
  };
}

function inAscii<Reply>(exchange: Exchange<Reply>): Exchange<Reply> {
  const { replyLength, request, read } = exchange;
  return {
    ...exchange,
    replyLength: replyLength === 0 ? 0 : asciiLength(replyLength),
    request: () => encodeAscii(request().subarray(0, -CRC_LENGTH)),
    read(received): Reading<Reply> {
      const reading = read(rtuOf(received));
      const isPart = reading.kind === 'more' && received.length > 0;
      return isPart ? { fault: 'framing', ...reading } : reading;
    },
  };
}

/**
 * Colon; address, function, at most 252 bytes and the LRC (2.5.2.1); CR LF. A frame begins wherever a colon is, also in the
 * midst of another one.
 */
const FRAMES = /:((?:[0-9A-F]{2}){3,255})\r\n/g;

/** `body`: address, function and data. */
export function encodeAscii(body: Uint8Array): Uint8Array {
  const bytes = Buffer.from([...body, lrc(body)]);
  return Buffer.from(`:${bytes.toString('hex').toUpperCase()}\r\n`, 'latin1');
}

/** 2.5.2.1. */
export const ASCII_LONGEST = 513;

/** How many characters a frame has that has so many bytes in RTU: the CRC is two of them. */
export function asciiLength(rtuLength: number): number {
  return 2 * rtuLength + 1;
}

/** The frames that are whole in what was received, as RTU has them; the CRC is wrong where the LRC was. */
export function rtuOf(received: Uint8Array): Uint8Array {
  const text = Buffer.from(received).toString('latin1');
  const frames = [...text.matchAll(FRAMES)].map(([, digits = '']) => {
    const all = Buffer.from(digits, 'hex');
    const body = all.subarray(0, -1);
    const frame = wireFrame(body);
    const last = frame.length - 1;
    if (all.at(-1) !== lrc(body)) frame[last] = ~(frame[last] ?? 0);
    return frame;
  });
  return Buffer.concat(frames);
}

/** The sum of the bytes, negated, in eight bits. */
function lrc(body: Uint8Array): number {
  return -body.reduce((sum, byte) => sum + byte, 0) & 0xff;
}
