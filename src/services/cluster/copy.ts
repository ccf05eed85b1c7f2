/**
 * The standby's copy of the database: a file that takes pages. What a message brings is written beside it first and synced, so that
 * a crash in the middle is made good at the next start: pages are whole, and to write one again changes nothing.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { syncPath } from '../../platform/database/migrate.ts';
import type { Written } from '../../platform/database/write-ahead-log.ts';
import { makeFolder } from '../../platform/host/durable-file.ts';
import { decodePages, encodePages } from './frames.ts';

const position = z.object({
  nuid: z.string(),
  epoch: z.int(),
  /** Messages of the epoch that it has. */
  number: z.int(),
  /** From there on it is whole. */
  wholeAt: z.int(),
  /** In the stream: of the next message. */
  next: z.int(),
  version: z.string(),
});
export type Position = z.output<typeof position>;

export interface Copy {
  readonly position: Position | undefined;
  /** It could be used. */
  readonly isWhole: boolean;
  /** Where a snapshot is fetched to, for `begin`. */
  readonly incoming: string;
  readonly file: string;
  begin(at: Position): void;
  apply(pages: Written, at: Position): void;
  /** What is not of use any more. */
  drop(): void;
}

export function openCopy(folder: string): Copy {
  makeFolder(folder);
  const path = (name: string) => join(folder, name);
  const [file, incoming, pending, positionFile] = ['copy.db', 'incoming.db', 'pending', 'position.json'].map(
    path,
  ) as [string, string, string, string];
  let current = existsSync(file) ? readPosition(positionFile) : undefined;
  if (current && existsSync(pending)) finishPending();

  function keepPosition(at: Position): void {
    replace(positionFile, `${JSON.stringify(at)}\n`);
    current = at;
  }

  function finishPending(): void {
    const found = readPending(pending);
    if (found) {
      writePages(file, found.pages);
      keepPosition(found.at);
    }
    rmSync(pending, { force: true });
  }

  return {
    file,
    incoming,
    get position() {
      return current;
    },
    get isWhole() {
      return current !== undefined && current.number >= current.wholeAt;
    },
    begin(at) {
      current = undefined;
      rmSync(positionFile, { force: true });
      rmSync(pending, { force: true });
      renameSync(incoming, file);
      syncPath(dirname(file));
      keepPosition(at);
    },
    apply(pages, at) {
      const head = Buffer.from(`${JSON.stringify(at)}\n`);
      replace(pending, Buffer.concat([head, encodePages(pages)]));
      finishPending();
    },
    drop() {
      current = undefined;
      for (const one of [positionFile, pending, incoming, file]) rmSync(one, { force: true });
    },
  };
}

/** Whole, or as before. */
function replace(file: string, content: string | Uint8Array): void {
  writeFileSync(`${file}.new`, content, { mode: 0o600, flush: true });
  renameSync(`${file}.new`, file);
  syncPath(dirname(file));
}

function readPosition(file: string): Position | undefined {
  try {
    return position.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    // Without it the copy is of no use, and starts again.
    return undefined;
  }
}

function readPending(file: string): { at: Position; pages: Written } | undefined {
  const bytes = readFileSync(file);
  const end = bytes.indexOf('\n');
  return {
    at: position.parse(JSON.parse(bytes.toString('utf8', 0, end))),
    pages: decodePages(bytes.subarray(end + 1)),
  };
}

function writePages(file: string, { pageBytes, pages, changed }: Written): void {
  const descriptor = openSync(file, 'r+');
  try {
    for (const { number, bytes } of changed)
      writeSync(descriptor, bytes, 0, bytes.length, (number - 1) * pageBytes);
    ftruncateSync(descriptor, pages * pageBytes);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
