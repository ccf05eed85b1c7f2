/** Modbus requests as exchanges of the bus (drivers/bus/exchange.ts). */
import type { Exchange, Reading } from '../bus/exchange.ts';
import { exceptionReading } from './exceptions.ts';
import { answerLength, isMbapAnswer, locate } from './frame.ts';
import { type Answer, decode, encode, type Request } from './messages.ts';

const MODBUS_TCP = {
  kind: 'unanswered',
  reason:
    'a Modbus TCP server answers (MBAP headers), where the bytes of a serial line are expected: set the port of the link to modbus-tcp://, or the server to raw TCP server mode',
} as const;

export function readBits(
  unit: number,
  from: { functionCode: 1 | 2; address: number; quantity: number },
): Exchange<boolean[]> {
  return exchange(unit, from, (answer) => (answer.kind === 'bits' ? answer.values : undefined));
}

export function readRegisters(
  unit: number,
  from: { functionCode: 3 | 4; address: number; quantity: number },
): Exchange<number[]> {
  return exchange(unit, from, (answer) => (answer.kind === 'registers' ? answer.values : undefined));
}

export function write(
  unit: number,
  request: Extract<Request, { functionCode: 5 | 6 | 15 | 16 }>,
): Exchange<null> {
  return exchange(unit, request, (answer) => (answer.kind === 'written' ? null : undefined));
}

export interface Identification {
  objects: ReadonlyMap<number, string>;
  next: number | undefined;
}

export function readIdentification(unit: number, object: number): Exchange<Identification> {
  return exchange(unit, { functionCode: 43, object }, (answer) =>
    answer.kind === 'identification' ? answer : undefined,
  );
}

function exchange<Reply>(
  unit: number,
  request: Request,
  replyOf: (answer: Answer) => Reply | undefined,
): Exchange<Reply> {
  const bytes = encode(unit, request);
  // Modbus over serial line 1.02, 2.1: all devices take it, and none answers.
  const isBroadcast = unit === 0;
  return {
    address: unit,
    operation: String(request.functionCode),
    replyLength: isBroadcast ? 0 : answerLength(bytes),
    request: () => bytes,
    read(received): Reading<Reply> {
      const unanswered = isBroadcast ? replyOf({ kind: 'written' }) : undefined;
      if (unanswered !== undefined) return { kind: 'reply', reply: unanswered };
      const located = locate(bytes, received);
      if (located.kind === 'more' && isMbapAnswer(bytes, received)) return MODBUS_TCP;
      if (located.kind === 'more') return located;
      const answer = decode(unit, request, located.frame);
      if (answer.kind === 'exception') return exceptionReading(answer.code, replyOf({ kind: 'written' }));
      const reply = replyOf(answer);
      return reply === undefined ? { kind: 'more', fault: 'framing' } : { kind: 'reply', reply };
    },
  };
}
