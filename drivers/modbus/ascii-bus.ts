/** Modbus ASCII: the exchanges of RTU with other characters on the wire, which the bus hears and counts as they are. */
import type { Bus } from '../bus/bus.ts';
import type { Exchange, Reading } from '../bus/exchange.ts';
import { asciiLength, encodeAscii, rtuOf } from './ascii-frame.ts';
import { CRC_LENGTH } from './frame.ts';

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
