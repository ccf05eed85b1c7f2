/**
 * The container inside an archive: POSIX.1-1988 tar (ustar) with regular files alone, so that `age --decrypt | tar x`
 * opens one without this program.
 */
const BLOCK = 512;
/** Twelve bytes, the last a NUL: octal digits (POSIX pax, ustar Interchange Format). */
const SIZE_DIGITS = 11;
const SIZE_MAX = 8 ** SIZE_DIGITS - 1;
const NAME_MAX = 100;

/** What is read is no such file, or ends early. */
export class TarFault extends Error {}

export interface TarEntry {
  name: string;
  bytes: number;
}

/** The header of a regular file of mode 0600, without an owner and a time. */
export function tarHeader({ name, bytes }: TarEntry): Buffer {
  const header = Buffer.alloc(BLOCK);
  if (Buffer.byteLength(name) > NAME_MAX) throw new RangeError(`${name} is longer than ${NAME_MAX} bytes`);
  if (bytes > SIZE_MAX) throw new RangeError(`${name} is larger than 8 GiB`);
  header.write(name, 0);
  header.write('0000600\0', 100);
  header.write('0000000\0', 108);
  header.write('0000000\0', 116);
  header.write(`${bytes.toString(8).padStart(SIZE_DIGITS, '0')}\0`, 124);
  header.write('00000000000\0', 136);
  header.write('0', 156);
  header.write('ustar\u000000', 257);
  header.write(`${sumOf(header).toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

/** Fills the last block of a file. */
export const tarPadding = (bytes: number): Buffer => Buffer.alloc((BLOCK - (bytes % BLOCK)) % BLOCK);

/** Two blocks of zeros. */
export const tarEnd = (): Buffer => Buffer.alloc(2 * BLOCK);

export interface TarReader {
  /** Undefined at the end of the archive, which is also the end of what is read. */
  next(): Promise<TarEntry | undefined>;
  /** Of the entry that came last: its content, in pieces. To be read to its end before the next. */
  content(): AsyncGenerator<Uint8Array>;
}

export function readTar(source: AsyncIterable<Uint8Array>): TarReader {
  const input = source[Symbol.asyncIterator]();
  let held: Uint8Array = new Uint8Array();
  let left = 0;

  /** At most so many bytes, and at least one. Undefined at the end. */
  async function some(limit: number): Promise<Uint8Array | undefined> {
    while (held.length === 0) {
      const { done, value } = await input.next();
      if (done) return undefined;
      held = value;
    }
    const piece = held.subarray(0, limit);
    held = held.subarray(piece.length);
    return piece;
  }

  async function* pieces(bytes: number): AsyncGenerator<Uint8Array> {
    for (let missing = bytes; missing > 0; ) {
      const piece = await some(missing);
      if (!piece) throw new TarFault('it ends early');
      missing -= piece.length;
      yield piece;
    }
  }
  const block = async () => whole(pieces(BLOCK));

  return {
    async next() {
      const header = await block();
      if (header.every((byte) => byte === 0)) {
        await block();
        // Read to the end: only there is it known that the archive is whole.
        if (await some(BLOCK)) throw new TarFault('something follows its end');
        return undefined;
      }
      const entry = entryOf(header);
      left = entry.bytes;
      return entry;
    },
    async *content() {
      const padding = tarPadding(left).length;
      yield* pieces(left);
      for await (const _ of pieces(padding));
      left = 0;
    },
  };
}

/** Of what is known to be small. */
export async function whole(pieces: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const held: Uint8Array[] = [];
  for await (const piece of pieces) held.push(piece);
  return Buffer.concat(held);
}

function entryOf(header: Buffer): TarEntry {
  const text = (from: number, length: number) => {
    const field = header.subarray(from, from + length);
    const end = field.indexOf(0);
    return field.subarray(0, end === -1 ? length : end).toString('utf8');
  };
  if (text(257, 6) !== 'ustar' || Number.parseInt(text(148, 8), 8) !== sumOf(header))
    throw new TarFault('it is no tar archive');
  if (text(156, 1) !== '0') throw new TarFault(`${text(0, NAME_MAX)} is no regular file`);
  const size = text(124, 12);
  if (!/^[0-7]{11}$/.test(size)) throw new TarFault(`the size of ${text(0, NAME_MAX)} is none`);
  return { name: text(0, NAME_MAX), bytes: Number.parseInt(size, 8) };
}

/** Of all bytes, those of the checksum itself taken for spaces. */
function sumOf(header: Buffer): number {
  return header.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0);
}
