/** What is restored: an archive of `gatehouse backup`, or a database file, as the start before a migration keeps one. */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { AGE_HEADER, type DecryptionKey } from '../platform/age.ts';
import { writeFrom } from '../platform/host/durable-file.ts';
import { ArchiveRefused, peekArchive, piecesOf, unpackArchive } from '../services/backup/archive.ts';
import type { Manifest } from '../services/backup/manifest.ts';
import { copyRefused } from './restore-checks.ts';
import { CommandFailed, EXIT } from './shell.ts';

interface Opened extends Disposable {
  name: string;
  file: number;
}

export interface ArchiveSource extends Opened {
  kind: 'archive';
}

/** Its log: a raw copy of a data directory has one. */
export interface DatabaseSource extends Opened {
  kind: 'database';
  log: number | undefined;
}

/** With the rights of this user, who may be the only one to read it. */
export function openSource(name: string): ArchiveSource | DatabaseSource {
  using opening = new DisposableStack();
  const opened = (file: string) => opening.adopt(openSync(file, 'r'), closeSync);
  try {
    const file = opened(name);
    const start = Buffer.alloc(AGE_HEADER.length);
    readSync(file, start, 0, start.length, 0);
    const isArchive = start.toString('latin1') === AGE_HEADER;
    const log = !isArchive && existsSync(`${name}-wal`) ? opened(`${name}-wal`) : undefined;
    const held = opening.move();
    const common = { name, file, [Symbol.dispose]: () => held.dispose() };
    return isArchive ? { ...common, kind: 'archive' } : { ...common, kind: 'database', log };
  } catch (error) {
    throw copyRefused(name, name, error);
  }
}

/** The configuration of an archive, to know where its data belongs. */
export function peek(source: ArchiveSource, key: DecryptionKey) {
  return explained(source, () => peekArchive(piecesOf(source.file), key));
}

/** Into an empty folder. */
export function unpack(source: ArchiveSource, key: DecryptionKey, folder: string): Promise<Manifest> {
  return explained(source, () => unpackArchive(piecesOf(source.file), key, folder));
}

/** Into `folder` as the data of an archive would be. */
export function copyDatabase({ name, file, log }: DatabaseSource, folder: string): void {
  const draft = join(folder, 'gatehouse.db');
  try {
    writeFrom(file, draft);
    if (log !== undefined) writeFrom(log, `${draft}-wal`);
  } catch (error) {
    throw copyRefused(name, draft, error);
  }
}

async function explained<T>({ name }: Opened, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ArchiveRefused)) throw copyRefused(name, name, error);
    throw new CommandFailed(`${name} cannot be used: ${error.message}.`, EXIT.failed, { cause: error });
  }
}
