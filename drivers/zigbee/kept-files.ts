/**
 * The files of a network, each written whole, on a disk that may be full, read-only or broken. People stand at the doors of
 * a link, so it works without its disk: what cannot be stored is kept in memory, read from there, and stored when the disk
 * takes it. Only what a safety rule wants on the disk first is refused instead (`store`).
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { type Clock, DriverError, type DriverLog } from '../contract/driver.ts';
import { unlessAborted } from '../contract/waiting.ts';

const PRIVATE_FILE = 0o600;
/** Between two attempts: the daemon looks at its own disk as often. */
const AGAIN_MS = 5_000;

type Content = string | Uint8Array;

export interface KeptFile {
  readonly path: string;
  /** What was written last, on the disk or not; undefined: there is none. */
  read(): Buffer | undefined;
  /** On the disk now, or when it takes it. Never throws. */
  write(content: Content): void;
  /** On the disk when it returns. Throws REFUSED when the disk does not take it; the file is then as it was. */
  store(content: Content): void;
  /** Why what was written last is not on the disk; undefined: it is. */
  unstored(): string | undefined;
}

/**
 * By path. Of the process and not of the link, which goes on with it when it is opened again: a lock that joined while the
 * disk was full is in none of the files.
 */
const waiting = new Map<string, { content: Content; reason: string }>();

let storing: Promise<void> | undefined;

export function keptFile(path: string): KeptFile {
  const unstored = () => waiting.get(path)?.reason;
  return {
    path,
    unstored,
    read() {
      const kept = waiting.get(path);
      return kept ? Buffer.from(kept.content) : readFromDisk(path);
    },
    write: (content) => attempt(path, content),
    store(content) {
      const before = waiting.get(path);
      attempt(path, content);
      const reason = unstored();
      if (reason === undefined) return;
      if (before) waiting.set(path, before);
      else waiting.delete(path);
      throw new DriverError('REFUSED', `${path} cannot be stored: ${reason}`);
    },
  };
}

/** Stores what is waiting, as soon as the disk takes it. */
export async function storeWaiting(clock: Clock, log: DriverLog, signal: AbortSignal): Promise<never> {
  for (let isReported = false; ; ) {
    // One that hangs goes on when its link has ended.
    storing ??= storeAgain().finally(() => {
      storing = undefined;
    });
    await unlessAborted(storing, signal);
    const [first] = waiting;
    if (first && !isReported)
      log.warn(
        { file: first[0], reason: first[1].reason },
        'files of the network cannot be stored; they are kept in memory until the disk takes them',
      );
    if (!first && isReported) log.info({}, 'the files of the network are stored again');
    isReported = first !== undefined;
    await clock.sleep(AGAIN_MS, signal);
  }
}

/** Off this thread: a disk that fails may take seconds to say so, and somebody stands at a door. Never rejects. */
async function storeAgain(): Promise<void> {
  for (const [path, kept] of waiting)
    try {
      const unfinished = await disk.prepare(path, kept.content);
      // Else it was written once more meanwhile.
      if (waiting.get(path) !== kept) continue;
      renameSync(unfinished, path);
      waiting.delete(path);
    } catch {
      // It waits for the next attempt.
    }
}

/** The last attempt before a link is closed. */
export function storeNow(): void {
  for (const [path, { content }] of waiting) attempt(path, content);
}

function attempt(path: string, content: Content): void {
  try {
    disk.replace(path, content);
    waiting.delete(path);
  } catch (error) {
    waiting.set(path, { content, reason: error instanceof Error ? error.message : String(error) });
  }
}

/** Undefined: there is no such file. */
export function readFromDisk(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** What a test makes fail. */
export const disk = {
  /** Writes what may become the file. */
  async prepare(path: string, content: Content): Promise<string> {
    const unfinished = `${path}.later`;
    await writeFile(unfinished, content, { mode: PRIVATE_FILE, flush: true });
    return unfinished;
  },
  /** The whole file or none of it, also after a loss of power. */
  replace(path: string, content: Content): void {
    const unfinished = `${path}.new`;
    writeFileSync(unfinished, content, { mode: PRIVATE_FILE, flush: true });
    renameSync(unfinished, path);
  },
};
