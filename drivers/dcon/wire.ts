/** Puts a question on the bus: frames around its text, and what is received read as an answer to it alone. */
import { DelimiterParser } from '@serialport/parser-delimiter';
import type { Exchange, Fault, Reading } from '../bus/exchange.ts';
import { decodeFrame, encodeFrame, FRAME_MAX, type Framing, overhead } from './frame.ts';
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

/** Modules only start a timer again: what they take between a request and its reply is time enough. */
const HOST_OK_QUIET_MS = 5;

/** To all modules; no one answers. */
export function hostOkExchange(framing: Framing): Exchange<null> {
  return {
    address: 0,
    operation: HOST_OK,
    replyLength: 0,
    quietMs: HOST_OK_QUIET_MS,
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

/** The newest bytes count: noise without end comes before a reply, never after it. */
const READ_MAX = 4 * FRAME_MAX;

export interface Lines {
  /** Whole ones, in order, without their CR. */
  lines: Uint8Array[];
  /** Something follows that has no CR yet: `long` when it can no more become a frame. */
  rest: 'none' | 'short' | 'long';
}

/**
 * Cuts what was received into lines. The parser's own buffer has no bound and keeps half a line for the next reply, so
 * each reading has a parser of its own, and no more than a few frames go in.
 */
export function cutLines(received: Uint8Array): Lines {
  const cut = received.length > READ_MAX;
  const parser = new DelimiterParser({ delimiter: '\r', readableObjectMode: true });
  // A transform without listeners works while write() runs, and read() gives one line at a time.
  parser.write(received.subarray(-READ_MAX));
  const lines: Uint8Array[] = [];
  for (let line: Uint8Array | null = parser.read(); line !== null; line = parser.read()) lines.push(line);
  parser.destroy();
  const rest = received.length - 1 - received.lastIndexOf(0x0d);
  return {
    // What begins in the middle of a line is not a line.
    lines: (cut ? lines.slice(1) : lines).filter(({ length }) => length > 0),
    rest: rest === 0 ? 'none' : rest < FRAME_MAX ? 'short' : 'long',
  };
}
