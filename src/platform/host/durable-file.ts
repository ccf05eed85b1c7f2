/** Small files that a power cut leaves whole: the old one or the new one. (The database sees to its own.) */
import { closeSync, mkdirSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Mode 0600. On the disk when it resolves. */
export async function writeDurably(file: string, text: string): Promise<void> {
  const unfinished = `${file}.new`;
  await rm(unfinished, { force: true });
  const handle = await open(unfinished, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(unfinished, file);
  await syncFolder(dirname(file));
}

/** Puts the names in a folder on the disk. */
export async function syncFolder(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Makes a folder (0700) and those above it. Not by `recursive`: where a folder that is there answers ENOENT, as /proc
 * does, that tries again for ever.
 */
export function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(folder) !== folder) makeFolder(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}

const COPY_BYTES = 1024 * 1024;

/** Copies what a descriptor reads into a new file (0600); a link of that name is refused, as is any other file. */
export function writeFrom(source: number, file: string): void {
  const target = openSync(file, 'wx', 0o600);
  try {
    const chunk = Buffer.alloc(COPY_BYTES);
    for (let bytes = 0; ; ) {
      bytes = readSync(source, chunk, 0, COPY_BYTES, null);
      if (bytes === 0) return;
      for (let written = 0; written < bytes; ) written += writeSync(target, chunk, written, bytes - written);
    }
  } finally {
    closeSync(target);
  }
}
