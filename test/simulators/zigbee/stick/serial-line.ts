/** What a serial line of 115,200 baud takes: a start bit, eight bits and a stop bit for each byte, one after the other. */
import type { Time } from '../time.ts';

const BYTE_MS = 10_000 / 115_200;

/** `pace`: the share of that time which it takes here at present; 0: none. */
export function openSerialLine(
  time: Time,
  pace: () => number,
  arrive: (bytes: Uint8Array) => void,
): (bytes: Uint8Array) => void {
  const waiting: { bytes: Uint8Array; at: number }[] = [];
  let free = 0;
  function next(): void {
    const [first] = waiting;
    if (!first) return;
    time.after(Math.ceil(Math.max(0, first.at - time.now())), () => {
      waiting.shift();
      arrive(first.bytes);
      next();
    });
  }
  return (bytes) => {
    if (pace() === 0 && waiting.length === 0) return arrive(bytes);
    free = Math.max(free, time.now()) + bytes.length * BYTE_MS * pace();
    waiting.push({ bytes: Buffer.from(bytes), at: free });
    if (waiting.length === 1) next();
  };
}
