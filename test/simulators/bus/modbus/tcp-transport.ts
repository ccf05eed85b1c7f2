/** A Modbus TCP gateway of one connection before a simulated bus. Damaged replies go no further, as a gateway checks them. */
import { openTcpTransport, type Receive, type Transport } from '../transport.ts';
import { crc16, framed } from './frame.ts';
import { type Adu, adu, aduReader } from './tcp-gateway.ts';

const SHORTEST = 5;
const EXCEPTION = 0x80;

export async function openGatewayTransport(receive: Receive): Promise<Transport> {
  let read = aduReader();
  let waiting: Adu[] = [];

  const transport = await openTcpTransport(
    (bytes) => {
      for (const request of read(bytes)) {
        waiting.push(request);
        receive(framed(request.unit, request.pdu));
      }
    },
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
      const [unit = 0, functionCode = 0] = reply;
      const isAnswered = (one: Adu) => one.unit === unit && one.pdu[0] === (functionCode & ~EXCEPTION);
      const request = waiting.find(isAnswered);
      if (!request) return;
      waiting = waiting.filter((one) => one !== request);
      transport.write(adu({ transaction: request.transaction, unit, pdu: reply.subarray(1, end) }));
    },
    readNow: transport.readNow,
    setReading: transport.setReading,
    hangUp: transport.hangUp,
    replug: transport.replug,
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
}
