/**
 * A Modbus TCP gateway of one connection before a simulated bus. It asks its wire one thing at a time and gives a device as
 * long as such products do; then it answers for it. Damaged replies go no further, as a gateway checks them.
 */
import { openTcpTransport, type Receive, type Transport } from '../transport.ts';
import { crc16, exception, framed } from './frame.ts';
import { type Adu, adu, aduReader, NO_ANSWER } from './tcp-gateway.ts';

const SHORTEST = 5;
const EXCEPTION = 0x80;
/** A setting of products; less than the driver waits for. */
const TIMEOUT_MS = 80;

export async function openGatewayTransport(receive: Receive, port: number): Promise<Transport> {
  let read = aduReader();
  let waiting: Adu[] = [];
  let asked: Adu | undefined;
  let timer: NodeJS.Timeout | undefined;

  function next(): void {
    clearTimeout(timer);
    asked = waiting.shift();
    if (!asked) return;
    const { unit, pdu } = asked;
    timer = setTimeout(() => answer(exception(pdu[0] ?? 0, NO_ANSWER)), TIMEOUT_MS).unref();
    receive(framed(unit, pdu));
  }

  function answer(pdu: Uint8Array | number[]): void {
    if (asked)
      transport.write(adu({ transaction: asked.transaction, unit: asked.unit, pdu: Buffer.from(pdu) }));
    next();
  }

  const transport = await openTcpTransport(
    (bytes) => {
      waiting.push(...read(bytes));
      if (!asked) next();
    },
    port,
    () => {
      read = aduReader();
      waiting = [];
    },
  );
  return {
    get port() {
      return transport.port.replace(/^tcp:/, 'modbus-tcp:');
    },
    write(bytes) {
      const reply = Buffer.from(bytes);
      const end = reply.length - 2;
      if (reply.length < SHORTEST || reply.readUInt16LE(end) !== crc16(reply.subarray(0, end))) return;
      // A wire has no transactions: a late reply may be taken for the next one of the same kind.
      const isAnswer = reply[0] === asked?.unit && ((reply[1] ?? 0) & ~EXCEPTION) === asked?.pdu[0];
      if (isAnswer) answer(reply.subarray(1, end));
    },
    readNow: transport.readNow,
    setReading: transport.setReading,
    hangUp: transport.hangUp,
    replug: transport.replug,
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}
