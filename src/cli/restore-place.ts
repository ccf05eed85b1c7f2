/**
 * Puts what was checked in its place: all of it, or after an error nothing. What was there is kept. The database comes
 * last, by one rename: a machine that loses power before it has a key, a site CA and a database that do not belong
 * together, which no start accepts, and the restore is run again.
 */
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { syncPath } from '../platform/database/migrate.ts';
import { makeFolder } from '../platform/host/durable-file.ts';

/** Takes back what was done, the last first. */
export class Undo implements Disposable {
  #steps: (() => void)[] = [];
  #isComplete = true;
  /** False when something was not taken back: what is there may be of two systems. */
  get isComplete(): boolean {
    return this.#isComplete;
  }
  add(step: () => void): void {
    this.#steps.push(step);
  }
  /** All is done, and is not taken back any more. */
  keep(): void {
    this.#steps = [];
    this.#isComplete = false;
  }
  [Symbol.dispose](): void {
    for (const step of this.#steps.toReversed()) {
      try {
        step();
      } catch {
        // The next steps are taken back all the same.
        this.#isComplete = false;
      }
    }
  }
}

/** These replace what differs. Keys and site CA are of one piece with the database. */
const REPLACED = ['keys', 'pki'] as const;
/** These only fill a gap: what is there is newer than any archive. */
const FILLED = ['auth', 'zigbee'] as const;

/** The folders of the data directory that would be replaced. */
export function foldersToReplace(dataDirectory: string, staged: string): string[] {
  return REPLACED.filter((name) => {
    const [now, then] = [join(dataDirectory, name), join(staged, name)];
    try {
      return existsSync(then) && existsSync(now) && !isSame(now, then);
    } catch (cause) {
      throw new Error(`${now} cannot be read: ${(cause as Error).message}`, { cause });
    }
  });
}

/** Names and contents of the files in a folder. */
function isSame(one: string, other: string): boolean {
  const names = readdirSync(one).sort();
  return (
    names.join('/') === readdirSync(other).sort().join('/') &&
    names.every((name) => readFileSync(join(one, name)).equals(readFileSync(join(other, name))))
  );
}

/** Returns where what was there is kept, if anything was. */
export function placeData(
  dataDirectory: string,
  staged: string,
  day: string,
  undo: Undo,
): string | undefined {
  const keep = keeper(join(dataDirectory, 'backups'), day);
  const toReplace = foldersToReplace(dataDirectory, staged);
  for (const name of [...REPLACED, ...FILLED]) {
    const [target, source] = [join(dataDirectory, name), join(staged, name)];
    if (!existsSync(source)) continue;
    const isThere = lstatSync(target, { throwIfNoEntry: false }) !== undefined;
    if (isThere && !toReplace.some((each) => each === name)) continue;
    if (isThere) moved(target, join(keep(), name), undo);
    moved(source, target, undo);
  }
  const kept = placeDatabase(join(dataDirectory, 'gatehouse.db'), join(staged, 'gatehouse.db'), keep, undo);
  return kept ?? keep.folder();
}

function moved(from: string, to: string, undo: Undo): void {
  renameSync(from, to);
  undo.add(() => renameSync(to, from));
  syncPath(dirname(to));
}

type Keeper = (() => string) & { folder(): string | undefined };

/** Made when there is something to keep. */
function keeper(backups: string, day: string): Keeper {
  let folder: string | undefined;
  const keep = () => {
    if (folder === undefined) {
      makeFolder(backups);
      folder = mkdtempSync(join(backups, `replaced-${day}-`));
    }
    return folder;
  };
  return Object.assign(keep, { folder: () => folder });
}

/**
 * The log of the database that was there goes with it: beside the restored one it would be taken for a part of that. One
 * rename decides, so that a crash leaves the one or the other.
 */
function placeDatabase(current: string, draft: string, keep: Keeper, undo: Undo): string | undefined {
  const parts = ['', '-wal', '-shm'].filter((suffix) =>
    lstatSync(current + suffix, { throwIfNoEntry: false }),
  );
  if (parts.length > 0) {
    if (parts.includes('')) linkSync(current, join(keep(), 'gatehouse.db'));
    for (const log of parts.filter((part) => part !== ''))
      moved(current + log, join(keep(), `gatehouse.db${log}`), undo);
    syncPath(keep());
  }
  renameSync(draft, current);
  undo.keep();
  syncPath(dirname(current));
  return keep.folder();
}

export interface ConfigurationFile {
  /** Relative to the folder of the configuration. */
  path: string;
  content: Buffer;
}

/** Those that are not there, or are there with other contents. */
export function differing(folder: string, files: readonly ConfigurationFile[]) {
  const found = (path: string) => {
    try {
      return readFileSync(join(folder, path));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  };
  const states = files.map((file) => ({ file, now: found(file.path) }));
  return {
    missing: states.filter(({ now }) => now === undefined).map(({ file }) => file),
    changed: states.filter(({ file, now }) => now && !now.equals(file.content)).map(({ file }) => file),
  };
}

/** Whose the files are to be; undefined: of this user. */
export type Owner = { uid: number; gid: number } | undefined;

/**
 * Readable by the group of the folder, of which the service is a member. What was there is kept beside it. A file has its name once it
 * is whole and has its owner: one of root alone would keep the service, and the next restore, from going on.
 */
export function placeConfiguration(
  folder: string,
  files: readonly ConfigurationFile[],
  { day, owner, undo }: { day: string; owner: Owner; undo: Undo },
): void {
  for (const { path, content } of files) {
    const target = join(folder, path);
    const draft = `${target}.new`;
    makeFolders(dirname(target), owner);
    // A restore that was killed has left it.
    rmSync(draft, { force: true });
    const descriptor = openSync(draft, 'wx', 0o640);
    undo.add(() => rmSync(draft, { force: true }));
    try {
      writeFileSync(descriptor, content);
      if (owner) fchownSync(descriptor, owner.uid, owner.gid);
      fchmodSync(descriptor, 0o640);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    if (lstatSync(target, { throwIfNoEntry: false })) moved(target, `${target}.replaced-${day}`, undo);
    renameSync(draft, target);
    undo.add(() => rmSync(target));
    syncPath(dirname(target));
  }
}

function makeFolders(folder: string, owner: Owner): void {
  if (existsSync(folder)) return;
  makeFolders(dirname(folder), owner);
  mkdirSync(folder, { mode: 0o750 });
  if (!owner) return;
  const descriptor = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  fchownSync(descriptor, owner.uid, owner.gid);
  closeSync(descriptor);
}
