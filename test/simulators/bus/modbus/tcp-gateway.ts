/**
 * A Modbus TCP gateway before the devices of a serial line: takes an MBAP header away and gives the request its check sum,
 * and back. Written from the Modbus Messaging on TCP/IP Implementation Guide 1.0b, 3.1.3 and 4.4, with nothing taken from
 * the driver's codec.
 */
import { exception, framed } from './frame.ts';

/** Transaction, protocol and length; unit id. */
const HEADER = 7;
export const NO_ANSWER = 0x0b;

export interface Adu {
  transaction: number;
  unit: number;
  pdu: Buffer;
}

export function adu({ transaction, unit, pdu }: { transaction: number; unit: number; pdu: Uint8Array }) {
  const head = Buffer.alloc(HEADER);
  head.writeUInt16BE(transaction & 0xffff, 0);
  head.writeUInt16BE(1 + pdu.length, 4);
  head.writeUInt8(unit, 6);
  return Buffer.concat([head, pdu]);
}

/** Takes what comes over one connection, in pieces; throws on what has no MBAP header, as such a server hangs up then. */
export function aduReader(): (bytes: Uint8Array) => Adu[] {
  let kept = Buffer.alloc(0);
  return (bytes) => {
    kept = Buffer.concat([kept, bytes]);
    const whole: Adu[] = [];
    while (kept.length > HEADER) {
      const [protocol, length] = [kept.readUInt16BE(2), kept.readUInt16BE(4)];
      if (protocol !== 0 || length < 2 || length > 254) throw new Error('no MBAP header');
      const end = HEADER - 1 + length;
      if (kept.length < end) break;
      const pdu = Buffer.from(kept.subarray(HEADER, end));
      whole.push({ transaction: kept.readUInt16BE(0), unit: kept[6] ?? 0, pdu });
      kept = kept.subarray(end);
    }
    return whole;
  };
}

/** What a gateway sends back for one request. `answer`: of the devices, as frames of a serial line. */
export function throughGateway(request: Adu, answer: (frame: Uint8Array) => Uint8Array | null): Buffer {
  const { transaction, unit, pdu } = request;
  const reply = answer(framed(unit, pdu));
  const answered = reply
    ? Buffer.from(reply.subarray(1, -2))
    : Buffer.from(exception(pdu[0] ?? 0, NO_ANSWER));
  return adu({ transaction, unit: reply?.[0] ?? unit, pdu: answered });
}
