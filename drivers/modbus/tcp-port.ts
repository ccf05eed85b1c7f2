/**
 * Modbus TCP as a port of a bus: a request leaves with an MBAP header in the place of its CRC, and a reply comes back as it
 * would on a wire. A reply counts by its transaction alone, so that a late one is never taken for the answer to another
 * request. There is one connection to a gateway and one request in flight on it, which is what cheap ones have.
 */

import type { OpenPort } from '../bus/port.ts';
import { tcpPortTo } from '../bus/tcp-port.ts';
import { busWarning } from '../contract/bus-warnings.ts';
import { CRC_LENGTH, encodeTcp, openTcpFrames, type TcpFrame, wireFrame } from './frame.ts';

export const openGatewayPort: OpenPort = tcpPortTo({
  name: 'the Modbus TCP gateway',
  closedUnheard:
    'the gateway closed the connection and has answered nothing: it may have no connection left (some take one or two: close those of other programs), or it is a serial device server, whose port is named tcp://',
});

const NO_MODBUS_TCP =
  'what came is no Modbus TCP (an MBAP header was expected): a serial device server is named tcp:// and not modbus-tcp://';

const TRANSACTIONS = 0x1_0000;
/** A reply to an older request counts as one to none. */
const ASKED_MAX = 256;
const EXCEPTION = 0x80;
/** The gateway itself says that it has no way to the device, or heard nothing of it. */
const GATEWAY_EXCEPTIONS = [0x0a, 0x0b];

/** `openPort`: carries the bytes of the connection. */
export function modbusTcpOver(openPort: OpenPort): OpenPort {
  return async (options, listener, context, signal) => {
    const take = openTcpFrames();
    /** Those that were not answered, by transaction: unit id and function. */
    const asked = new Map<number, string>();
    let last = 0;
    let unasked = 0;

    function heard({ transaction, body }: TcpFrame): void {
      listener.spoke?.();
      if (asked.get(transaction) !== whatIn(body)) {
        // In the name of another unit, or to another question: it answers none, and its own answer may follow.
        if (transaction === last && asked.has(last)) listener.data(wireFrame(body));
        else unasked += 1;
        return;
      }
      asked.delete(transaction);
      if (transaction === last) listener.data(wireFrame(body));
      else if (!isOfGateway(body)) listener.late?.(wireFrame(body));
    }

    const port = await openPort(
      options,
      {
        data(bytes) {
          const frames = take(bytes);
          if (!frames) listener.lost(new Error(NO_MODBUS_TCP));
          for (const frame of frames ?? []) heard(frame);
        },
        lost: listener.lost,
      },
      context,
      signal,
    );
    return {
      name: port.name,
      get warnings() {
        return [
          ...port.warnings,
          ...(unasked > 0 ? [busWarning('UNASKED_REPLIES', { count: unasked })] : []),
        ];
      },
      paced: false,
      diesUnnoticed: true,
      numbersRequests: true,
      latencyMs: port.latencyMs,
      write(bytes) {
        last = (last + 1) % TRANSACTIONS;
        const body = bytes.subarray(0, -CRC_LENGTH);
        asked.set(last, whatIn(body));
        for (const oldest of asked.keys()) {
          if (asked.size <= ASKED_MAX) break;
          asked.delete(oldest);
        }
        port.write(encodeTcp({ transaction: last, body }));
      },
      [Symbol.asyncDispose]: () => port[Symbol.asyncDispose](),
    };
  };
}

/** Unit id and function, an exception being one of that function. */
function whatIn([unit, functionCode = 0]: Uint8Array): string {
  return `${unit} ${functionCode & ~EXCEPTION}`;
}

function isOfGateway([, functionCode = 0, code = 0]: Uint8Array): boolean {
  return (functionCode & EXCEPTION) !== 0 && GATEWAY_EXCEPTIONS.includes(code);
}
