/** For campaigns: what carries frames between a link and its device, and what gateways do to replies. */

import type { Plain } from '../../../drivers/contract/driver.ts';
import { fromAscii, toAscii } from '../../simulators/bus/modbus/ascii.ts';
import { exception, framed } from '../../simulators/bus/modbus/frame.ts';
import { type Adu, adu, aduReader, NO_ANSWER } from '../../simulators/bus/modbus/tcp-gateway.ts';
import type { Answer } from '../bus/port.ts';
import type { TestLink } from './link.ts';

export type CarrierKind = 'rtu' | 'ascii' | 'tcp';

export interface Carrier {
  options: { [key: string]: Plain };
  onWire?(bytes: Uint8Array, devices: (frame: Uint8Array) => Uint8Array | null): Answer;
  /** The reply of the device, as it goes over the wire to the question that is open now. */
  carried(reply: Uint8Array): Uint8Array;
  /** What a gateway does to so many of its replies, from 0 to 1. */
  disturb(share: number): void;
  /** The connection that it answers on. */
  connect(link: TestLink): void;
}

export function openCarrier(kind: CarrierKind, random: () => number): Carrier {
  const plain = { options: {}, disturb: () => {}, connect: () => {} };
  if (kind === 'rtu') return { ...plain, carried: (reply) => reply };
  if (kind === 'tcp') return openGateway(random);
  return {
    ...plain,
    options: { framing: 'ascii', dataBits: 7 },
    carried: toAscii,
    onWire(bytes, devices) {
      const request = fromAscii(bytes);
      const reply = request && devices(request);
      return reply ? toAscii(reply) : null;
    },
  };
}

/** Messaging on TCP/IP Implementation Guide 1.0b, 4.4.2.2: a client compares the transaction with what it asked. */
const MISCHIEF = ['twice', 'earlier', 'renumbered', 'other unit', 'in pieces', 'held', 'hang-up'] as const;
/** Application protocol 1.1b3, 7: GATEWAY PATH UNAVAILABLE. */
const NO_PATH = 0x0a;
const PIECE_MS = 20;

function openGateway(random: () => number): Carrier {
  let share = 0;
  let link: TestLink | undefined;
  let asked: Adu = { transaction: 0, unit: 1, pdu: Buffer.of() };
  let earlier: Uint8Array | undefined;
  let held: Uint8Array | undefined;
  const pick = <Of>(list: readonly Of[]) => list[Math.floor(random() * list.length)];

  const carried = (reply: Uint8Array) =>
    adu({ transaction: asked.transaction, unit: reply[0] ?? 0, pdu: reply.subarray(1, -2) });

  function disturbed(reply: Buffer): Uint8Array | null {
    const before = held;
    held = undefined;
    const last = earlier;
    earlier = reply;
    switch (random() < share ? pick(MISCHIEF) : undefined) {
      case 'twice':
        return Buffer.concat([reply, reply]);
      case 'earlier':
        return last ?? null;
      case 'renumbered':
        reply.writeUInt16BE((asked.transaction + (random() < 0.5 ? 1 : 0xffff)) & 0xffff);
        return reply;
      case 'other unit':
        reply.writeUInt8(asked.unit + 1, 6);
        return reply;
      case 'in pieces': {
        const { clock, wire } = link ?? {};
        void clock?.sleep(PIECE_MS).then(() => wire?.deliver(reply.subarray(5)));
        return reply.subarray(0, 5);
      }
      case 'held':
        held = reply;
        return before ?? null;
      case 'hang-up':
        link?.wire.lose(new Error('ECONNRESET'));
        return null;
      default:
        return before ? Buffer.concat([before, reply]) : reply;
    }
  }

  return {
    options: { port: 'modbus-tcp://10.0.0.7:502' },
    carried,
    disturb(next) {
      share = next;
    },
    connect(next) {
      [link, earlier, held] = [next, undefined, undefined];
    },
    onWire(bytes, devices) {
      const [request] = aduReader()(bytes);
      if (!request) return null;
      asked = request;
      const { unit, pdu } = request;
      const reply = devices(framed(unit, [...pdu]));
      if (reply) return disturbed(carried(reply));
      // It says that it heard nothing, or says nothing.
      const code = pick([NO_ANSWER, NO_ANSWER, NO_PATH, undefined]);
      const functionCode = pdu[0] ?? 0;
      return code === undefined
        ? null
        : adu({ transaction: request.transaction, unit, pdu: Buffer.from(exception(functionCode, code)) });
    },
  };
}
