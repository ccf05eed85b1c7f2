/**
 * Cuts what was received into lines. The parser's own buffer has no bound and keeps half a line for the next reply, so
 * each reading has a parser of its own, and no more than a few frames go in.
 */
import { DelimiterParser } from '@serialport/parser-delimiter';
import { FRAME_MAX } from './frame.ts';

/** The newest bytes count: noise without end comes before a reply, never after it. */
const READ_MAX = 4 * FRAME_MAX;

export interface Lines {
  /** Whole ones, in order, without their CR. */
  lines: Uint8Array[];
  /** Something follows that has no CR yet: `long` when it can no more become a frame. */
  rest: 'none' | 'short' | 'long';
}

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
