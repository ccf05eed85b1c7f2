/**
 * `gatehouse backup`: one encrypted archive with all that makes this installation (docs/operations.md, Backup and
 * restore). It reads the database beside the daemon, which need not run. The daemon starts the same, by itself, as
 * `make-backup` (src/services/backup/schedule.ts).
 */
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { constants as osConstants, setPriority } from 'node:os';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { text as streamText } from 'node:stream/consumers';
import { VERSION } from '../app/version.ts';
import type { EncryptionKey } from '../platform/age.ts';
import { adminSocketOf, type Config } from '../platform/config/config.ts';
import { parseConfig, readConfig } from '../platform/config/config-file.ts';
import { syncPath } from '../platform/database/migrate.ts';
import { makeFolder } from '../platform/host/durable-file.ts';
import { FileError } from '../platform/yaml/yaml-file.ts';
import { type ArchiveContent, bytesOf, writeArchive } from '../services/backup/archive.ts';
import { configurationFiles, dataFiles } from '../services/backup/contents.ts';
import { DATABASE, newManifest } from '../services/backup/manifest.ts';
import { archiveName, draftOf, isDraft, type Made, removable } from '../services/backup/names.ts';
import { takeSnapshot } from '../services/backup/snapshot.ts';
import { type EncryptionOptions, encryptionKey } from './backup-key.ts';
import { configFile, openClient } from './client.ts';
import { asOwnerOf, linkAmong } from './folder-owner.ts';
import { MAKING, unfinishedBackups } from './leftovers.ts';
import { CommandFailed, EXIT, printJson, type Shell } from './shell.ts';

export interface BackupOptions extends EncryptionOptions {
  config?: string;
  /** A file with an ending, or a folder for a file named after the time. */
  to?: string;
  json?: boolean;
}

/** The path of the archive goes to standard output alone. */
export async function backUp(options: BackupOptions, shell: Shell): Promise<void> {
  const file = configFile(options.config, shell);
  const config = readConfig(file);
  if (options.to !== undefined) assertFolder(options.to);
  const key = await encryptionKey(options, config, shell);
  const name = archiveName(shell.clock.now());
  const to = options.to ?? folderOf(config);
  const target = resolve(options.to === undefined || isFolder(to) ? join(to, name) : to);
  const order = { config, file, target, key, now: shell.clock.now(), progress: onTerminal(shell) };
  const made = await makeArchive(order, shell);
  if (shell.stderr.isTTY) shell.stderr.write('\r      \r');
  await tellDaemon(made, config, shell);
  for (const path of made.leftOut)
    shell.stderr.write(`! ${path} is not in the archive, ${whyLeftOut(path)}: keep a copy of it yourself.\n`);
  if (options.json) return printJson(shell, made);
  shell.stdout.write(`${made.file}\n`);
  shell.stderr.write(
    `${made.bytes} bytes. It holds the secrets of this gateway, and opens only with the secret key or the passphrase, so keep that elsewhere.\n`,
  );
}

function whyLeftOut(path: string): string {
  return existsSync(path)
    ? 'which takes only files of the data directory and of the folder of the configuration'
    : 'for there is no such file here';
}

/** Called for each percent, and not with the last one: the archive is not in its place then. */
type Progress = (done: number, total: number) => void;

function onTerminal({ stderr }: Shell): Progress {
  return (done, total) => {
    if (stderr.isTTY) stderr.write(`\r${String(Math.floor((100 * done) / total)).padStart(3)} %`);
  };
}

/**
 * For the daemon: into the folder of the configuration, and removes what is too many there. Prints a line of JSON for each
 * percent, and at last what it made (src/services/backup/schedule.ts).
 */
export async function makeScheduledBackup(
  options: { config: string; at: string },
  shell: Shell,
): Promise<void> {
  giveWay();
  const { config, text } = await soundConfig(options.config, shell);
  const { backup } = config;
  if (!backup) throw new CommandFailed('The configuration has no backup.');
  const folder = folderOf(config);
  const now = Date.parse(options.at);
  const target = join(folder, archiveName(now));
  const { recipients, keep } = backup;
  const printLine = (value: object) => void shell.stdout.write(`${JSON.stringify(value)}\n`);
  const progress: Progress = (done, total) => printLine({ done, total });
  const order = { config, text, file: options.config, target, key: { recipients }, now, progress };
  const made = await makeArchive(order, shell);
  // Only now: an archive that could not be made takes no older one with it.
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files.map(({ name }) => name);
  const removed = removable(names, keep, basename(target));
  for (const name of removed) rmSync(join(folder, name));
  printLine({ ...made, removed, isEarlierConfiguration: text !== undefined });
}

/** A mistake that was made today must not cost tonight's backup: the daemon hands over what it runs by, which is then archived. */
async function soundConfig(file: string, { stdin }: Shell): Promise<{ config: Config; text?: string }> {
  try {
    return { config: readConfig(file) };
  } catch (error) {
    if (!(error instanceof FileError) || error.mistakes.length === 0) throw error;
    const text = await streamText(stdin);
    return { config: parseConfig(text, file), text };
  }
}

const folderOf = ({ backup, dataDirectory }: Config) => backup?.folder ?? join(dataDirectory, 'backups');

function giveWay(): void {
  try {
    setPriority(osConstants.priority.PRIORITY_LOW);
  } catch {
    // A sandbox that forbids it.
  }
}

interface Order {
  config: Config;
  /** Of the configuration. */
  file: string;
  /** In place of what is in it. */
  text?: string | undefined;
  target: string;
  key: EncryptionKey;
  now: number;
  progress: Progress;
}

/** Whole or not at all, also when a stick is pulled; readable by its owner alone. */
async function makeArchive(
  { config, text, file, target, key, now, progress }: Order,
  shell: Shell,
): Promise<Made> {
  const databaseFile = join(config.dataDirectory, 'gatehouse.db');
  if (!statSync(databaseFile, { throwIfNoEntry: false }))
    throw new CommandFailed(`There is nothing to back up: ${databaseFile} does not exist.`);
  try {
    using content = gathered({ config, text, file, databaseFile, now }, shell);
    using _user = asOwnerOf(dirname(target), shell);
    const bytes = await writeWhole(target, content, { key, progress }, shell);
    return { file: target, bytes, leftOut: content.manifest.leftOut };
  } catch (error) {
    throw new CommandFailed(`There is no backup: ${explained(error as Error, config, target)}`, EXIT.failed, {
      cause: error,
    });
  }
}

/** A write names no file in its error, so the folder of the archive and that of the draft copy are named here. */
function explained(error: NodeJS.ErrnoException, config: Config, target: string): string {
  const { code, message } = error;
  const { dataDirectory } = config;
  const link = linkAmong([error.path, join(dataDirectory, 'gatehouse.db'), join(dataDirectory, 'backups')]);
  if (link) return `${message}. ${link}`;
  if (code === 'EACCES') return `${message}. With sudo?`;
  if (code !== 'ENOSPC' && code !== 'EDQUOT' && code !== 'SQLITE_FULL') return message;
  const folders = new Set([dirname(target), join(config.dataDirectory, 'backups')]);
  return `the disk is full (${code}). It takes room for the archive in ${[...folders].join(', and for a copy of the database in ')}: make room there, or name another folder (--to, or backup.folder in the configuration).`;
}

/** All of it with the rights of those whose folders they are; then only descriptors and bytes are used. */
function gathered(
  {
    config,
    text,
    file,
    databaseFile,
    now,
  }: Pick<Order, 'config' | 'text' | 'file' | 'now'> & { databaseFile: string },
  shell: Shell,
): ArchiveContent & Disposable {
  const { snapshot, database, data } = ofDataDirectory(config.dataDirectory, databaseFile, shell);
  try {
    using _user = asOwnerOf(dirname(resolve(file)), shell);
    const configuration = configurationFiles(file, config, text);
    const [own, ...named] = configuration.files;
    if (!own) throw new Error('there is no configuration');
    const files = [own, { name: DATABASE, descriptor: database }, ...data.files, ...named];
    const manifest = newManifest({
      version: VERSION,
      createdAt: new Date(now).toISOString(),
      ...snapshot,
      files: files.map((each) => ({ name: each.name, bytes: bytesOf(each) })),
      configuration: own.name,
      leftOut: [...data.leftOut, ...configuration.leftOut],
    });
    return { manifest, files, [Symbol.dispose]: () => closeSync(database) };
  } catch (error) {
    closeSync(database);
    throw error;
  }
}

function ofDataDirectory(dataDirectory: string, databaseFile: string, shell: Shell) {
  using _user = asOwnerOf(dataDirectory, shell);
  const backups = join(dataDirectory, 'backups');
  makeFolder(backups);
  // Left by a process that was killed.
  for (const name of unfinishedBackups(backups))
    rmSync(join(backups, name), { recursive: true, force: true });
  const workshop = mkdtempSync(join(backups, MAKING));
  // What is open stays readable without its name.
  using _cleanUp = { [Symbol.dispose]: () => rmSync(workshop, { recursive: true, force: true }) };
  const copy = join(workshop, 'gatehouse.db');
  const snapshot = takeSnapshot(databaseFile, copy);
  const data = dataFiles(dataDirectory);
  return { snapshot, data, database: openSync(copy, constants.O_RDONLY | constants.O_NOFOLLOW) };
}

async function writeWhole(
  target: string,
  content: ArchiveContent,
  { key, progress }: Pick<Order, 'key' | 'progress'>,
  { stopping }: Shell,
): Promise<number> {
  const draft = draftOf(target);
  const folder = dirname(target);
  const left = readdirSync(folder).filter(isDraft);
  for (const each of [draft, ...left.map((name) => join(folder, name))]) rmSync(each, { force: true });
  // A link of that name is refused, as is any other file.
  const descriptor = openSync(draft, 'wx', 0o600);
  try {
    const total = Math.max(
      1,
      content.manifest.files.reduce((sum, { bytes }) => sum + bytes, 0),
    );
    let percent = 0;
    const bytes = await writeArchive(descriptor, content, key, (written) => {
      if (stopping.aborted) throw new Error('it was stopped');
      const reached = Math.floor((100 * written) / total);
      if (reached === percent || reached >= 100) return;
      percent = reached;
      progress(written, total);
    });
    fsyncSync(descriptor);
    renameSync(draft, target);
    syncPath(folder);
    return bytes;
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** For the audit and the status; a daemon that is stopped needs neither. */
async function tellDaemon(made: Made, config: Config, shell: Shell): Promise<void> {
  const { file, bytes } = made;
  try {
    await openClient({ socket: adminSocketOf(config) }, shell).call('POST', '/local/backups', {
      file,
      bytes,
    });
  } catch (error) {
    const isStopped = error instanceof CommandFailed && error.exitCode === EXIT.notRunning;
    if (!isStopped)
      shell.stderr.write(`! The audit has no entry of this backup: ${(error as Error).message}\n`);
  }
}

/** Before anything is made: a stick that is not mounted must not become a file of its name. */
function assertFolder(to: string): void {
  const isForFolder = to.endsWith('/') || extname(to) === '';
  const folder = isForFolder ? to : dirname(resolve(to));
  if (isFolder(folder)) return;
  throw new CommandFailed(
    `Nothing was copied: there is no folder ${folder}. Mount the stick, or make the folder (mkdir -p ${folder}). A file has an ending, such as copy.age.`,
    EXIT.usage,
  );
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch (error) {
    // What may not be looked at fails when it is written, and says so then.
    return (error as NodeJS.ErrnoException).code === 'EACCES';
  }
}
