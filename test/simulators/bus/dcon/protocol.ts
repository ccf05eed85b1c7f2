/** DCON on a simulated bus. */
import type { Protocol } from '../protocol.ts';
import { framed, hex, read } from './frame.ts';
import { type Line, openModule } from './module.ts';

export function dcon(line: Line): Protocol {
  return {
    // A carriage return ends a frame; nothing waits for silence.
    silenceMs: () => 0,
    read: (received) => read(received, line.checksum),
    openDevice: (plan, now) => openModule(plan, line, now),
    // `#AA1cdd`, `#AA00dd`: outputs.
    isWrite: ([lead]) => lead === 0x23,
    refusal: (request) => framed(`?${Buffer.from(request.subarray(1, 3)).toString('latin1')}`, line.checksum),
    corrupted(reply) {
      const bytes = Buffer.from(reply);
      bytes[0] = (bytes[0] ?? 0) ^ 0x02;
      return bytes;
    },
    readdressed(reply, address) {
      const text = Buffer.from(reply.subarray(0, line.checksum ? -3 : -1)).toString('latin1');
      // Only these name their sender, and `$AA6` looks like them: the protocol cannot separate the two.
      return /^[!?][0-9A-F]{2}/.test(text)
        ? framed(`${text[0]}${hex(address)}${text.slice(3)}`, line.checksum)
        : Buffer.from(reply);
    },
  };
}
