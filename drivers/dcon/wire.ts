/** Puts a question on the bus: frames around its text, and what is received read as an answer to it alone. */
import type { Exchange, Fault, Reading } from '../bus/exchange.ts';
import { decodeFrame, encodeFrame, type Framing, overhead } from './frame.ts';
import { cutLines } from './lines.ts';
import { HOST_OK, type Question } from './messages.ts';

export function exchangeOf<Reply>(question: Question<Reply>, framing: Framing): Exchange<Reply> {
  return {
    address: question.address,
    operation: question.operation,
    replyLength: question.answerLength + overhead(framing),
    anonymous: question.anonymous === true,
    request: () => encodeFrame(question.text, framing),
    read: (received) => readAnswer(question, received, framing),
  };
}

/** To all modules; nobody answers. */
export function hostOkExchange(framing: Framing): Exchange<null> {
  return {
    address: 0,
    operation: HOST_OK,
    replyLength: 0,
    request: () => encodeFrame(HOST_OK, framing),
    read: () => ({ kind: 'reply', reply: null }),
  };
}

export function readAnswer<Reply>(
  question: Question<Reply>,
  received: Uint8Array,
  framing: Framing,
): Reading<Reply> {
  const { lines, rest } = cutLines(received);
  let fault: Fault | undefined = rest === 'long' ? 'framing' : undefined;
  for (const line of lines) {
    const decoded = decodeFrame(line, framing);
    if (decoded.kind === 'fault') {
      fault = decoded.fault;
      continue;
    }
    const heard = question.hear(decoded.text);
    if (heard.kind !== 'foreign') return heard;
    fault = 'foreign';
  }
  return fault === undefined ? { kind: 'more' } : { kind: 'more', fault };
}
