/**
 * Bounds what a peer can make the MQTT parser hold: aedes has no maximum packet size (its parser would collect 256 MB)
 * and hands every packet of a chunk to its handlers at once. The guard stands between the socket and the parser, walks
 * the fixed headers (MQTT 3.1.1, 2.2) and lets through as many whole packets as the connection may have in hand; the
 * rest stays in the socket, where TCP slows down this peer and no one else.
 */
import type { Socket } from 'node:net';

export interface FrameBounds {
  /** Longest packet now, fixed header included. */
  packetBytes(): number;
  /** How many packets may be handed on now; at 0 nothing is read. */
  packets(): number;
  /** Sees what is about to be handed on; false when the connection ends instead. */
  passes(bytes: Uint8Array): boolean;
}

/** `isWhole`: what was taken ends with the end of a packet. */
export type FrameStep = { taken: number; packets: number; isWhole: boolean } | { refused: string };

/** How long a packet may pause midway: a few lost segments. Less than a keep-alive, which ends one that never ends. */
const PAUSE_MS = 10_000;

/** The remaining length has at most four bytes of seven bits (MQTT 3.1.1, 2.2.3). */
const LENGTH_BYTES_MAX = 4;

/** Where in a packet the last chunk ended. */
type Position =
  | { part: 'type' }
  | { part: 'length'; bytes: number; value: number }
  | { part: 'body'; left: number };

/**
 * A walk over a byte stream. Each step says how much of the chunk belongs to the packets that may pass; the caller
 * brings the bytes that were not taken again. `allows` says which control packet types may come (MQTT 3.1.1, 2.2.1).
 */
export function openFrameWalk(
  allows: (type: number) => boolean = () => true,
): (chunk: Uint8Array, packets: number, packetBytes: number) => FrameStep {
  let position: Position = { part: 'type' };
  return function walk(chunk, packets, packetBytes) {
    let taken = 0;
    let passed = 0;
    while (taken < chunk.length && passed < packets) {
      if (position.part === 'type') {
        const type = (chunk[taken] ?? 0) >> 4;
        if (!allows(type)) return { refused: `a packet of type ${type} is not expected` };
        position = { part: 'length', bytes: 0, value: 0 };
        taken += 1;
      } else if (position.part === 'length') {
        const byte = chunk[taken] ?? 0;
        const value: number = position.value + (byte & 0x7f) * 128 ** position.bytes;
        const bytes: number = position.bytes + 1;
        taken += 1;
        if (1 + bytes + value > packetBytes)
          return { refused: `a packet is longer than ${packetBytes} bytes` };
        const more = byte >= 0x80;
        if (more && bytes === LENGTH_BYTES_MAX) return { refused: 'a packet length is malformed' };
        position = more ? { part: 'length', bytes, value } : { part: 'body', left: value };
      } else {
        const step = Math.min(position.left, chunk.length - taken);
        position = { part: 'body', left: position.left - step };
        taken += step;
      }
      if (position.part === 'body' && position.left === 0) {
        position = { part: 'type' };
        passed += 1;
      }
    }
    return { taken, packets: passed, isWhole: position.part === 'type' };
  };
}

/**
 * Puts the guard on a stream whose only reader calls `read(null)`, as aedes does. `refuse` is given the reason why the peer broke a
 * bound and ends the connection.
 */
export function guardFrames(stream: Socket, bounds: FrameBounds, refuse: (reason: string) => void): void {
  const read = stream.read.bind(stream);
  const walk = openFrameWalk();
  stream.read = (size?: number) => {
    // read(0) is how streams start their own reading; it takes nothing.
    if (size === 0) return read(0);
    const packets = bounds.packets();
    if (packets <= 0) return null;
    // Not more than the longest packet, in which one ends for certain: a stream that has been emptied fetches the next
    // 64 KiB, and would grow by them each time that a few small packets are taken and the rest is put back.
    const packetBytes = bounds.packetBytes();
    const chunk: Buffer | null = stream.readableLength > packetBytes ? read(packetBytes) : read();
    if (chunk === null) return null;
    const step = walk(chunk, packets, packetBytes);
    if ('refused' in step) {
      refuse(step.refused);
      return null;
    }
    stream.setTimeout(step.isWhole ? 0 : PAUSE_MS);
    if (step.taken < chunk.length) stream.unshift(chunk.subarray(step.taken));
    const passed = chunk.subarray(0, step.taken);
    return bounds.passes(passed) ? passed : null;
  };
  stream.on('timeout', () => {
    // The rest may have come and wait for what came before it.
    if (stream.readableLength === 0) refuse(`a packet paused for ${PAUSE_MS} ms`);
    else stream.setTimeout(PAUSE_MS);
  });
}
