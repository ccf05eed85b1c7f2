/**
 * `gatehouse restore`: puts a copy in the place of the database, while no daemon runs. Everything is checked on a copy
 * of the copy; the database that was there is kept; keys are not touched.
 *
 * A restored database goes back in time, and others remember what it has forgotten. So it gets a new identity (readers
 * of live events start anew; the audit says so in a row of its own) and an epoch far beyond any that was used since the
 * copy (encoders ignore messages of an epoch lower than the highest they know: docs/encoder-protocol.md, Messages).
 */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { openAudit } from '../audit/audit.ts';
import type { Config } from '../config/config.ts';
import { readConfig } from '../config/config-file.ts';
import { openConnection } from '../database/connection.ts';
import { type Database, DatabaseUnusable, openDatabase } from '../database/database.ts';
import { SchemaRefused, syncPath } from '../database/migrate.ts';
import { writeFrom } from '../host/durable-file.ts';
import { silentLog } from '../log.ts';
import { LOCAL_ADMINISTRATOR } from '../principal.ts';
import { openVault } from '../vault.ts';
import { configFile } from './client.ts';
import { holdDataDirectory } from './data-directory.ts';
import { asOwnerOf } from './folder-owner.ts';
import { askFirst, CommandFailed, EXIT, printJson, type Shell } from './shell.ts';

/** More starts than there can have been since any copy was made. */
const EPOCH_LEAP = 1_000_000;

export interface RestoreOptions {
  config?: string;
  yes?: boolean;
  json?: boolean;
}

interface SystemRow {
  system_id: string;
  database_id: string;
  epoch: number;
}

const READ_SYSTEM = 'SELECT system_id, database_id, epoch FROM system WHERE id = 1';

export async function restore(copy: string, options: RestoreOptions, shell: Shell): Promise<void> {
  const config = readConfig(configFile(options.config, shell));
  const { dataDirectory } = config;
  // With the rights of this user, who may be the only one to read it.
  using source = openSource(copy);
  using _user = asOwnerOf(dataDirectory, shell);
  using _alone = held(dataDirectory);
  const workshop = join(dataDirectory, 'restoring');
  rmSync(workshop, { recursive: true, force: true });
  mkdirSync(workshop, { mode: 0o700 });
  using _cleanUp = { [Symbol.dispose]: () => rmSync(workshop, { recursive: true, force: true }) };
  const draft = join(workshop, 'gatehouse.db');
  const current = join(dataDirectory, 'gatehouse.db');

  const prepared = await prepare({ copy, source, draft, current, config, shell, options });
  const replaced = replace(current, draft, shell);
  if (options.json) return printJson(shell, { ...prepared, replaced });
  shell.stdout.write(`${copy} is restored.\n`);
  if (replaced) shell.stdout.write(`The database it replaces is kept in ${replaced}.\n`);
  shell.stdout.write(
    'What was revoked or changed after the copy was made is as it was before: look through gatehouse token list.\nStart the daemon with: systemctl start gatehouse\n',
  );
}

function held(dataDirectory: string): Disposable {
  try {
    return holdDataDirectory(dataDirectory);
  } catch (error) {
    throw new CommandFailed((error as Error).message, EXIT.failed, { cause: error });
  }
}

interface Preparation {
  copy: string;
  source: Source;
  draft: string;
  current: string;
  config: Config;
  shell: Shell;
  options: RestoreOptions;
}

/** Checks the copy, asks, and gives it its new identity. */
async function prepare({ copy, source, draft, current, config, shell, options }: Preparation) {
  await using database = await openDraft(copy, source, draft);
  const system = database.prepare<[], SystemRow>(READ_SYSTEM).get();
  if (!system) throw new CommandFailed(`${copy} is the database of a gateway that never started.`);
  const { system_id: systemId, database_id: previousId } = system;
  if (config.systemId !== undefined && config.systemId !== systemId) {
    throw new CommandFailed(
      `${copy} belongs to system ${systemId}, the configuration to ${config.systemId}: take another copy, or correct systemId.`,
    );
  }
  const audit = openAuditWith(database, config, shell);
  const warnings = await warningsOf(audit, config);
  for (const warning of warnings) shell.stderr.write(`! ${warning}\n`);
  const question = `Put ${copy} (system ${systemId}) in the place of ${current}?`;
  await askFirst(shell, options.yes, question, 'Nothing was restored.');

  const databaseId = randomUUID();
  const epoch = Math.max(system.epoch, epochOf(current)) + EPOCH_LEAP;
  const rename = database.prepare<[string, number]>(
    'UPDATE system SET database_id = ?, epoch = ? WHERE id = 1',
  );
  await database.commit(() => {
    rename.run(databaseId, epoch);
    audit?.record({
      principal: LOCAL_ADMINISTRATOR,
      action: 'database.restore',
      object: `database/${databaseId}`,
      outcome: 'done',
      detail: { copy: basename(copy), previousId, epoch },
      correlationId: randomUUID(),
    });
  });
  return { systemId, databaseId, epoch, warnings };
}

/** Descriptors of the copy, and of its log: a raw copy of a data directory has one, a backup has none. */
interface Source extends Disposable {
  file: number;
  log: number | undefined;
}

function openSource(copy: string): Source {
  try {
    const file = openSync(copy, 'r');
    const log = existsSync(`${copy}-wal`) ? openSync(`${copy}-wal`, 'r') : undefined;
    return {
      file,
      log,
      [Symbol.dispose]() {
        closeSync(file);
        if (log !== undefined) closeSync(log);
      },
    };
  } catch (error) {
    throw notRestored(copy, copy, error);
  }
}

/** All of it is checked, and its schema; an older schema is brought up to date. */
async function openDraft(copy: string, { file, log }: Source, draft: string): Promise<Database> {
  try {
    writeFrom(file, draft);
    if (log !== undefined) writeFrom(log, `${draft}-wal`);
    return await openDatabase({ file: draft, fullCheck: true, monotonic: () => 0, failed: () => {} });
  } catch (error) {
    throw notRestored(copy, draft, error);
  }
}

function notRestored(copy: string, draft: string, cause: unknown): CommandFailed {
  return new CommandFailed(`Nothing was restored: ${refusal(copy, draft, cause)}`, EXIT.failed, { cause });
}

/** What the daemon advises about its own database would be none about a copy. */
function refusal(copy: string, draft: string, error: unknown): string {
  const { code, message, cause } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return `there is no file ${copy}: name a copy that gatehouse backup has made.`;
  if (error instanceof DatabaseUnusable && isDamage(cause))
    return `${copy} is damaged or not a database (${(cause as Error).message}): restore another copy that gatehouse backup has made.`;
  const told = message.replaceAll(draft, copy);
  if (!(error instanceof SchemaRefused)) return told;
  const [fact = ''] = told.split(/: (?:use|install) /);
  return `${fact}: restore a copy that this version or an older one has made, or install the version this one is of.`;
}

/** As against a fault of the disk it was copied to. */
function isDamage(cause: unknown): boolean {
  const { code } = cause as NodeJS.ErrnoException;
  return code === undefined || /^SQLITE_(CORRUPT|NOTADB)/.test(code);
}

/** Undefined without the vault's key: rows could not be told from forged ones. */
function openAuditWith(database: Database, { dataDirectory }: Config, { clock }: Shell) {
  try {
    const vault = openVault(join(dataDirectory, 'keys', 'vault.key'), { create: false });
    const unsigned = () => Promise.reject(new Error('a restore signs nothing'));
    return openAudit({
      database,
      clock,
      log: silentLog,
      macKey: vault.deriveKey('audit'),
      sign: unsigned,
      verifySignature: undefined,
    });
  } catch {
    return undefined;
  }
}

async function warningsOf(
  audit: ReturnType<typeof openAuditWith>,
  { dataDirectory }: Config,
): Promise<string[]> {
  const key = join(dataDirectory, 'keys', 'vault.key');
  if (!audit) {
    return [
      `${key} is missing or unusable: key data of open write requests is lost. Put its copy back first if you can.`,
    ];
  }
  const verdict = await audit.verify();
  if (verdict.intact) return [];
  return verdict.firstBad === 1 && verdict.reason === 'changed'
    ? [
        `${key} is not the key this copy was made with: key data of open write requests is lost, and its audit cannot be verified.`,
      ]
    : [
        `The audit in the copy is not as it was written, from row ${verdict.firstBad} on (${verdict.reason}).`,
      ];
}

function epochOf(file: string): number {
  try {
    using connection = openConnection(file);
    return connection.prepare<[], SystemRow>(READ_SYSTEM).get()?.epoch ?? 0;
  } catch {
    // Missing or damaged, which is why there is a restore.
    return 0;
  }
}

/**
 * Returns where the database that was there is kept, if there was one. Its log goes with it: beside the restored one it
 * would be taken for a part of that. One rename decides, so that a crash leaves the one or the other.
 */
function replace(current: string, draft: string, { clock }: Shell): string | undefined {
  const folder = join(current, '..');
  const backups = join(folder, 'backups');
  const parts = ['', '-wal', '-shm'].filter((suffix) =>
    lstatSync(current + suffix, { throwIfNoEntry: false }),
  );
  let kept: string | undefined;
  try {
    if (parts.length > 0) {
      mkdirSync(backups, { recursive: true, mode: 0o700 });
      const day = new Date(clock.now()).toISOString().slice(0, 10);
      kept = mkdtempSync(join(backups, `replaced-${day}-`));
      if (parts.includes('')) linkSync(current, join(kept, 'gatehouse.db'));
      for (const log of parts.filter((part) => part !== '')) {
        renameSync(current + log, join(kept, `gatehouse.db${log}`));
      }
      syncPath(kept);
    }
    renameSync(draft, current);
    syncPath(folder);
    return kept;
  } catch (error) {
    const where = kept === undefined ? '' : `; what was there is in ${kept}`;
    throw new CommandFailed(`Nothing was restored: ${(error as Error).message}${where}`, EXIT.failed, {
      cause: error,
    });
  }
}
