/**
 * The byte stream between the daemon and a host, both ends: frames of a length (4 bytes, big endian) and a value in
 * V8's structured-clone format, which keeps bytes as bytes.
 *
 * Not Node's own IPC channel: there, bytes that are no message throw inside Node as an uncaught exception of the
 * reader, the length is not bounded, and so a broken host could take the daemon down.
 */
import type { Duplex } from 'node:stream';
import { deserialize, serialize } from 'node:v8';

/** Bytes of a value: four times the largest plain data (ipc.ts), so that only a defect or a forgery exceeds it. */
export const FRAME_MAX_BYTES = 1024 * 1024;
/** Where a host finds the stream: the first descriptor after the standard three. */
export const DAEMON_DESCRIPTOR = 3;
const HEADER_BYTES = 4;

export interface Channel<Outgoing> {
  /**
   * Resolves when the kernel has taken the message, or the channel is closed; never rejects. A sender that produces without
   * bound awaits this, and is thus held back by a slow reader.
   */
  send(message: Outgoing): Promise<void>;
  close(): void;
  /** Resolves when the channel has closed: with the reason when the peer spoke nonsense, else with undefined. */
  readonly closed: Promise<Error | undefined>;
}

/** `receive` is called for each message in order; it throws, or `parse` does, on nonsense, which closes the channel. */
export function openChannel<Incoming, Outgoing>(
  stream: Duplex,
  parse: (value: unknown) => Incoming,
  receive: (message: Incoming) => void,
): Channel<Outgoing> {
  let unread: Buffer = Buffer.alloc(0);
  let nonsense: Error | undefined;
  const { promise: closed, resolve } = Promise.withResolvers<Error | undefined>();
  stream.on('data', (chunk: Buffer) => {
    if (nonsense) return;
    unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
    try {
      unread = readFrames(unread, (frame) => receive(parse(deserialize(frame))));
    } catch (error) {
      nonsense = error instanceof Error ? error : new Error(String(error));
      stream.destroy();
    }
  });
  // The peer has gone (EPIPE, ECONNRESET): `close` follows and says so.
  stream.on('error', () => undefined);
  stream.on('end', () => stream.destroy());
  stream.on('close', () => resolve(nonsense));
  return {
    send(message) {
      const body = serialize(message);
      if (body.length > FRAME_MAX_BYTES)
        throw new RangeError(`a message of ${body.length} bytes is too long`);
      const frame = Buffer.allocUnsafe(HEADER_BYTES + body.length);
      frame.writeUInt32BE(body.length);
      body.copy(frame, HEADER_BYTES);
      return new Promise((written) => {
        if (stream.destroyed) written();
        else stream.write(frame, () => written());
      });
    },
    close: () => {
      stream.destroy();
    },
    closed,
  };
}

/** Hands every whole frame to `take`; returns the bytes of the one that is not whole yet. */
export function readFrames(bytes: Buffer, take: (frame: Buffer) => void): Buffer {
  let at = 0;
  while (bytes.length - at >= HEADER_BYTES) {
    const length = bytes.readUInt32BE(at);
    if (length > FRAME_MAX_BYTES) throw new RangeError(`a message of ${length} bytes is too long`);
    if (bytes.length - at - HEADER_BYTES < length) break;
    const start = at + HEADER_BYTES;
    at = start + length;
    take(bytes.subarray(start, at));
  }
  return bytes.subarray(at);
}
