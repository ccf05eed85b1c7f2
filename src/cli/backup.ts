/** `gatehouse backup`: a copy of the database, by the daemon while it works, else directly. */
import { closeSync, constants, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Config } from '../config/config.ts';
import { adminSocketOf } from '../config/config.ts';
import { readConfig } from '../config/config-file.ts';
import { backUpDatabase } from '../database/backup.ts';
import { openConnection } from '../database/connection.ts';
import { syncPath } from '../database/migrate.ts';
import { writeFrom } from '../host/durable-file.ts';
import { type Client, configFile, openClient, runJob } from './client.ts';
import { holdDataDirectory } from './data-directory.ts';
import { asOwnerOf } from './folder-owner.ts';
import { CommandFailed, EXIT, printJson, type Shell } from './shell.ts';

export interface BackupOptions {
  config?: string;
  /** A file, or a folder for a file named after the time. Without it the copy stays where the daemon keeps its own. */
  to?: string;
  json?: boolean;
}

interface Copy {
  file: string;
  bytes: number;
}

/** The path of the copy goes to standard output alone. */
export async function backUp(options: BackupOptions, shell: Shell): Promise<void> {
  const config = readConfig(configFile(options.config, shell));
  if (options.to !== undefined) assertFolder(options.to);
  const made = await makeCopy(config, openClient({ socket: adminSocketOf(config) }, shell), shell);
  const copy =
    options.to === undefined ? made : { ...made, file: exportTo(options.to, made.file, config, shell) };
  if (options.json) return printJson(shell, copy);
  shell.stdout.write(`${copy.file}\n`);
  const key = join(config.dataDirectory, 'keys', 'vault.key');
  shell.stderr.write(
    `${copy.bytes} bytes. Secrets in it open only with ${key}: keep a copy of that too, somewhere else.\n`,
  );
}

async function makeCopy(config: Config, client: Client, shell: Shell): Promise<Copy> {
  try {
    return await copyByDaemon(client, shell);
  } catch (error) {
    const notRunning = error instanceof CommandFailed && error.exitCode === EXIT.notRunning;
    if (!notRunning) throw error;
    return copyDirectly(config, shell);
  }
}

async function copyByDaemon(client: Client, shell: Shell): Promise<Copy> {
  const said = { cancelled: 'There is no backup: it was cancelled.', failed: 'There is no backup' };
  const result = await runJob({ path: '/local/backup', ...said }, client, shell);
  return result as Copy;
}

async function copyDirectly({ dataDirectory }: Config, shell: Shell): Promise<Copy> {
  const databaseFile = join(dataDirectory, 'gatehouse.db');
  if (!existsSync(databaseFile))
    throw new CommandFailed(`There is nothing to back up: ${databaseFile} does not exist.`);
  try {
    using _user = asOwnerOf(dataDirectory, shell);
    using _alone = holdDataDirectory(dataDirectory);
    using connection = openConnection(databaseFile);
    return await backUpDatabase({
      database: connection,
      databaseFile,
      progress: () => {},
      signal: shell.stopping,
    });
  } catch (error) {
    throw new CommandFailed(`There is no backup: ${(error as Error).message}`, EXIT.failed, { cause: error });
  }
}

/** Before anything is copied: a stick that is not mounted must not become a file of its name. */
function assertFolder(to: string): void {
  const folder = to.endsWith('/') ? to : dirname(resolve(to));
  if (isFolder(folder)) return;
  throw new CommandFailed(
    `Nothing was copied: there is no folder ${folder}. Mount the stick, or make the folder (mkdir -p ${folder}).`,
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

/** Whole or not at all, also when a stick is pulled; readable by its owner alone. */
function exportTo(to: string, file: string, { dataDirectory }: Config, shell: Shell): string {
  const name = `gatehouse-${new Date(shell.clock.now()).toISOString().replaceAll(/[-:]|\.\d+/g, '')}.db`;
  const target = resolve(isFolder(to) ? join(to, name) : to);
  let source: number | undefined;
  try {
    source = openCopy(file, dataDirectory, shell);
    using _user = asOwnerOf(dirname(target), shell);
    writeWhole(source, target);
    return target;
  } catch (error) {
    throw new CommandFailed(
      `The copy is made, as ${basename(file)} in ${resolve(file, '..')}, but not at ${target}: ${(error as Error).message}. With sudo?`,
      EXIT.failed,
      { cause: error },
    );
  } finally {
    if (source !== undefined) closeSync(source);
  }
}

function writeWhole(source: number, target: string): void {
  const draft = `${target}.new`;
  try {
    rmSync(draft, { force: true });
    writeFrom(source, draft);
    syncPath(draft);
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

/** With the rights of the folder's owner, who is the one that has put it there. */
function openCopy(file: string, dataDirectory: string, shell: Shell): number {
  using _user = asOwnerOf(dataDirectory, shell);
  return openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
}
