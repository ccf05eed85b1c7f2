/** Receives files by osdp_FILETRANSFER, with every kind of flow control a device may ask for (SIA OSDP 2.2, 6.26). */
import type { Answer } from './wire.ts';

export interface FileOptions {
  /** Most bytes of a message that the device asks for in its replies; 0: it does not say. */
  messageMax?: number;
  delayMs?: number;
  /** So often it says that it is still at it after the last byte. */
  finishing?: number;
  /** Ends with this status: 1 done, 2 restarts. */
  endsWith?: 1 | 2;
  /** Refuses the file with this status when so many bytes are there. */
  refuses?: { status: number; at: number };
  /** Keeps what it has over a restart. */
  keeps?: boolean;
  /** Wants nothing but the file until it has it. */
  isExclusive?: boolean;
  /** Asks for the rest in clear text. */
  leavesSecureChannel?: boolean;
}

const HEADER_LENGTH = 11;
const NOT_ACCEPTABLE = -3;
const FINISHING = 3;

export function openFileStore(options: FileOptions) {
  const { messageMax = 0, delayMs = 0, finishing = 0, endsWith = 1, refuses, keeps = false } = options;
  let disturbances = 0;
  const done: { type: number; content: Buffer }[] = [];
  let current: { type: number; total: number; content: Buffer; finishing: number } | undefined;

  function status(value: number): Answer {
    const data = Buffer.alloc(7);
    data[0] = (options.isExclusive ? 0 : 1) | (options.leavesSecureChannel ? 2 : 0);
    data.writeUInt16LE(delayMs, 1);
    data.writeInt16LE(value, 3);
    data.writeUInt16LE(messageMax, 5);
    return { code: 0x7a, data };
  }

  return {
    receive(data: Buffer): Answer {
      if (data.length < HEADER_LENGTH || data.readUInt16LE(9) !== data.length - HEADER_LENGTH)
        return { code: 0x41, data: Buffer.from([2]) };
      const [type, total, offset] = [data.readUInt8(0), data.readUInt32LE(1), data.readUInt32LE(5)];
      const fragment = data.subarray(HEADER_LENGTH);
      const isNew = offset === 0 && fragment.length > 0;
      if (isNew) current = { type, total, content: Buffer.alloc(0), finishing };
      if (!current || current.type !== type || current.total !== total) return status(NOT_ACCEPTABLE);
      if (offset > current.content.length || offset + fragment.length > total) return status(NOT_ACCEPTABLE);
      current.content = Buffer.concat([
        current.content.subarray(0, fragment.length > 0 ? offset : undefined),
        fragment,
      ]);
      if (refuses && current.content.length >= refuses.at) {
        current = undefined;
        return status(refuses.status);
      }
      if (current.content.length < total) return status(0);
      current.finishing -= 1;
      if (current.finishing >= 0) return status(FINISHING);
      done.push({ type, content: current.content });
      current = undefined;
      return status(endsWith);
    },
    abort(): void {
      current = undefined;
    },
    restart(): void {
      if (!keeps) current = undefined;
    },
    /** Something else was said. */
    disturb(): void {
      if (options.isExclusive && current) disturbances += 1;
    },
    received: () => done,
    describe: () => ({
      files: done,
      transfer: current ? { offset: current.content.length, total: current.total } : null,
      disturbances,
    }),
  };
}
