/** What commits have written, as it goes through the stream. Pure. */
import type { Written } from '../../platform/database/write-ahead-log.ts';

const HEADER_BYTES = 8;
const PAGES_HEADER_BYTES = 12;
const NUMBER_BYTES = 4;

export const frameContext = (epoch: number, number: number) => `cluster frames ${epoch} ${number}`;

/** Several commits as one: the last of each page. */
export function merged(commits: readonly Written[]): Written | undefined {
  const last = commits.at(-1);
  if (!last) return undefined;
  const changed = new Map(
    commits.flatMap(({ changed }) => changed.map((page) => [page.number, page] as const)),
  );
  return { ...last, changed: [...changed.values()] };
}

export function bytesOf({ pageBytes, changed }: Written): number {
  return changed.length * (pageBytes + NUMBER_BYTES);
}

export function encodePages({ pageBytes, pages, changed }: Written): Buffer {
  const header = Buffer.alloc(PAGES_HEADER_BYTES);
  header.writeUInt32BE(pageBytes, 0);
  header.writeUInt32BE(pages, 4);
  header.writeUInt32BE(changed.length, 8);
  return Buffer.concat([
    header,
    ...changed.flatMap(({ number, bytes }) => {
      const prefix = Buffer.alloc(NUMBER_BYTES);
      prefix.writeUInt32BE(number);
      return [prefix, bytes];
    }),
  ]);
}

/** Throws when it is none. */
export function decodePages(bytes: Buffer): Written {
  const pageBytes = bytes.readUInt32BE(0);
  const pages = bytes.readUInt32BE(4);
  const count = bytes.readUInt32BE(8);
  const each = NUMBER_BYTES + pageBytes;
  if (bytes.length !== PAGES_HEADER_BYTES + count * each) throw new RangeError('pages of another length');
  const changed = Array.from({ length: count }, (_, index) => {
    const at = PAGES_HEADER_BYTES + index * each;
    return { number: bytes.readUInt32BE(at), bytes: bytes.subarray(at + NUMBER_BYTES, at + each) };
  });
  return { pageBytes, pages, changed };
}

/**
 * One message in the stream. `number` counts the messages of an epoch, from 1: a gap shows. `sealed`: the pages, so that no one who reads
 * the stream reads the site.
 */
export function encodeMessage(epoch: number, number: number, sealed: Uint8Array): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(epoch, 0);
  header.writeUInt32BE(number, 4);
  return Buffer.concat([header, sealed]);
}

/** Undefined: it is none. */
export function decodeMessage(
  payload: Buffer,
): { epoch: number; number: number; sealed: Buffer } | undefined {
  if (payload.length <= HEADER_BYTES) return undefined;
  return {
    epoch: payload.readUInt32BE(0),
    number: payload.readUInt32BE(4),
    sealed: payload.subarray(HEADER_BYTES),
  };
}
