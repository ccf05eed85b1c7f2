/**
 * `gatehouse restore`: puts an archive, or a copy of the database alone, in the place of what is there, while no daemon
 * runs. Everything is checked in a folder beside it first; what is replaced is kept.
 *
 * A restored database goes back in time, and others remember what it has forgotten. So it gets a new identity (readers
 * of live events start again; the audit says so in a row of its own), an epoch far beyond any that was used since the
 * copy (encoders ignore messages of an epoch lower than the highest they know: docs/encoder-protocol.md, Messages), and
 * sequence numbers of events that were never used (docs/interface.md, Events upstream).
 */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { DecryptionKey } from '../platform/age.ts';
import type { Config } from '../platform/config/config.ts';
import { parseConfig, readConfig } from '../platform/config/config-file.ts';
import type { Database } from '../platform/database/database.ts';
import { makeFolder } from '../platform/host/durable-file.ts';
import { LOCAL_ADMINISTRATOR } from '../platform/principal.ts';
import { openClosingsAfter } from '../resources/doors/closings-after-loss.ts';
import { openLockMemoryDoubt } from '../resources/doors/lock-memory-table.ts';
import type { OpenAudit } from '../services/audit/audit.ts';
import type { Manifest } from '../services/backup/manifest.ts';
import { type DecryptionOptions, decryptionKey } from './backup-key.ts';
import { configFile, SITE_CONFIG } from './client.ts';
import { holdDataDirectory } from './data-directory.ts';
import { asOwnerOf } from './folder-owner.ts';
import { isUnfinished, markFinished, markUnfinished, RESTORING } from './leftovers.ts';
import {
  CopyRefused,
  openAuditWith,
  openCopy,
  READ_SYSTEM,
  type SystemRow,
  warningsOf,
} from './restore-checks.ts';
import { countersFrom, countersIn, countersOf, openSequenceFloor } from './restore-counters.ts';
import { dutiesInPlace, systemInPlace } from './restore-duties.ts';
import {
  type ConfigurationFile,
  differing,
  foldersToReplace,
  placeConfiguration,
  placeData,
  Undo,
} from './restore-place.ts';
import {
  type ArchiveSource,
  copyDatabase,
  type DatabaseSource,
  openSource,
  peek,
  unpack,
} from './restore-source.ts';
import { askFirst, CommandFailed, EXIT, printJson, type Shell } from './shell.ts';
import { printable } from './terminal-text.ts';
import { UPDATE_KEY } from './update/incoming.ts';

export interface RestoreOptions extends DecryptionOptions {
  config?: string;
  /** The configuration of the archive replaces one that is there. */
  configuration?: boolean;
  yes?: boolean;
  json?: boolean;
}

/** What is to be restored, and where to. */
interface Plan {
  copy: string;
  source: ArchiveSource | DatabaseSource;
  key: DecryptionKey | undefined;
  /** The configuration file, there or to be made. */
  file: string;
  config: Config;
  options: RestoreOptions;
  shell: Shell;
}

export async function restore(copy: string, options: RestoreOptions, shell: Shell): Promise<void> {
  try {
    using source = openSource(copy);
    await restoreFrom(await planOf(copy, source, options, shell));
  } catch (error) {
    throw withAssurance(error);
  }
}

async function restoreFrom(plan: Plan): Promise<void> {
  const { shell } = plan;
  const { dataDirectory } = plan.config;
  using _alone = asUserOf(dataDirectory, shell, () => held(dataDirectory));
  const folder = asUserOf(dataDirectory, shell, () => makeWorkshop(dataDirectory));
  try {
    const prepared = await prepareAsUser(plan, folder);
    report(plan, prepared, place(plan, prepared, folder));
  } finally {
    asUserOf(dataDirectory, shell, () => rmSync(folder, { recursive: true, force: true }));
  }
}

function asUserOf<T>(folder: string, shell: Shell, work: () => T): T {
  using _user = asOwnerOf(folder, shell);
  return work();
}

/** A copy that is refused, and what is there and cannot be read, are for a person to mend; a fault of this program shows as it is. */
function withAssurance(error: unknown): unknown {
  const { message, cause } = error as Error;
  const { syscall } = (cause ?? error) as NodeJS.ErrnoException;
  const isRefused = error instanceof CopyRefused;
  if (!isRefused && (error instanceof CommandFailed || syscall === undefined)) return error;
  return new CommandFailed(`Nothing was restored: ${message}`, EXIT.failed, { cause: error });
}

function held(dataDirectory: string): Disposable {
  try {
    return holdDataDirectory(dataDirectory);
  } catch (error) {
    throw new CommandFailed((error as Error).message, EXIT.failed, { cause: error });
  }
}

function makeWorkshop(dataDirectory: string): string {
  const folder = join(dataDirectory, RESTORING);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  return folder;
}

/** Where everything belongs: the configuration that is there decides, else that of the archive. */
async function planOf(
  copy: string,
  source: Plan['source'],
  options: RestoreOptions,
  shell: Shell,
): Promise<Plan> {
  if (source.kind === 'database') {
    const file = configFile(options.config, shell);
    return { copy, source, key: undefined, file, config: readConfig(file), options, shell };
  }
  const key = await decryptionKey(options, shell);
  const file = resolve(options.config ?? shell.env.GATEHOUSE_CONFIG ?? SITE_CONFIG);
  const isThere = statSync(file, { throwIfNoEntry: false }) !== undefined;
  if (isThere && !options.configuration)
    return { copy, source, key, file, config: readConfig(file), options, shell };
  const { configuration } = await peek(source, key);
  return { copy, source, key, file, config: parseConfig(configuration, file), options, shell };
}

interface Prepared {
  systemId: string;
  databaseId: string;
  epoch: number;
  /** Locks that the next start locks. */
  toLock: number;
  warnings: string[];
  /** To be put in place. */
  configuration: ConfigurationFile[];
}

async function prepareAsUser(plan: Plan, folder: string): Promise<Prepared> {
  using _user = asOwnerOf(plan.config.dataDirectory, plan.shell);
  // Awaited here: the rights end with this function.
  return await prepare(plan, folder);
}

/** Checks everything, asks, and gives the database its new identity. */
async function prepare(plan: Plan, folder: string): Promise<Prepared> {
  const { copy, source, key, config, shell, options } = plan;
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  const manifest = source.kind === 'archive' && key ? await unpack(source, key, folder) : undefined;
  if (source.kind === 'database') copyDatabase(source, data);
  const current = join(config.dataDirectory, 'gatehouse.db');
  await using database = await openCopy({ name: copy, data, manifest, configuredId: config.systemId });
  const system = systemOf(database);
  // The key beside a copy of the database alone is the one that stays.
  const vaultFile = join(manifest ? data : config.dataDirectory, 'keys', 'vault.key');
  const audit = openAuditWith(database, vaultFile, shell.clock);
  const { configuration, notes } = configurationOf(plan, manifest, folder);
  const warnings = [
    ...(await warningsOf(audit, manifest ? 'the key in the archive' : vaultFile)),
    ...notes,
    ...clockBehind(manifest, shell.clock.now()),
    ...otherSystem(current, system.system_id, config.dataDirectory),
  ];
  for (const warning of warnings) shell.stderr.write(`! ${printable(warning)}\n`);
  const replaced = [
    ...(existsSync(current) ? [current] : []),
    ...(manifest
      ? foldersToReplace(config.dataDirectory, data).map((name) => join(config.dataDirectory, name))
      : []),
  ];
  const what =
    replaced.length === 0 ? `into ${config.dataDirectory}` : `in the place of ${replaced.join(', ')}`;
  const of = manifest ? `${manifest.createdAt}, system ${system.system_id}` : `system ${system.system_id}`;
  await askFirst(shell, options.yes, `Put ${copy} (${of}) ${what}?`, 'Nothing was restored.');
  const renewed = await renew(database, audit, { copy, current, manifest, now: shell.clock.now() });
  return { systemId: system.system_id, ...renewed, warnings, configuration };
}

/** The clock says how far the numbers go that others remember (restore-counters.ts). */
function clockBehind(manifest: Manifest | undefined, now: number): string[] {
  if (!manifest || now >= Date.parse(manifest.createdAt)) return [];
  return [
    `The clock of this machine says ${new Date(now).toISOString()}, and the archive was made later: set it (timedatectl) before the restore, or encoders may ignore the gateway until it is right.`,
  ];
}

/** A controller of another site, or the archive of one. */
function otherSystem(current: string, systemId: string, dataDirectory: string): string[] {
  const there = systemInPlace(current);
  if (there === undefined || there === systemId) return [];
  return [
    `${dataDirectory} has the data of another system (${there}), which its encoders and locks belong to: is this the right archive, and the right machine?`,
  ];
}

/** What of the configuration is put in place, and what the person must know of the rest. */
function configurationOf(plan: Plan, manifest: Manifest | undefined, folder: string) {
  if (!manifest) return { configuration: [], notes: [] };
  const key = basename(UPDATE_KEY);
  const files = manifest.files.flatMap(({ name }) => {
    if (!name.startsWith('config/')) return [];
    const path = name === manifest.configuration ? basename(plan.file) : name.slice('config/'.length);
    // The recipient of an archive is public, so that anyone can make one.
    return path === key ? [] : [{ path, content: readFileSync(join(folder, name)) }];
  });
  const { missing, changed } = differing(dirname(plan.file), files);
  const notes = manifest.leftOut.map(
    (path) => `${path} was not put into the archive: bring it back by hand.`,
  );
  if (plan.options.configuration) return { configuration: [...missing, ...changed], notes };
  for (const { path } of changed)
    notes.push(
      `${join(dirname(plan.file), path)} differs from that in the archive and stays; --configuration replaces it.`,
    );
  return { configuration: missing, notes };
}

interface Renewal {
  copy: string;
  current: string;
  manifest: Manifest | undefined;
  now: number;
}

function systemOf(database: Database): SystemRow {
  const system = database.prepare<[], SystemRow>(READ_SYSTEM).get();
  if (!system) throw new Error('the system row is missing');
  return system;
}

async function renew(
  database: Database,
  audit: OpenAudit | undefined,
  { copy, current, manifest, now }: Renewal,
) {
  const system = systemOf(database);
  const databaseId = randomUUID();
  // First: to open a database with a damaged log cuts that.
  const known = dutiesInPlace(current, system.system_id);
  const { epoch, sequence } = countersFrom(countersOf(database), countersIn(current), now);
  const rename = database.prepare<[string, number]>(
    'UPDATE system SET database_id = ?, epoch = ? WHERE id = 1',
  );
  const setSequenceFloor = openSequenceFloor(database);
  const doubtLocks = openLockMemoryDoubt(database);
  const storeClosings = openClosingsAfter(database);
  const principal = LOCAL_ADMINISTRATOR;
  const reason = known ? CARRIED : UNKNOWN_SINCE;
  const toLock = await database.commit(() => {
    rename.run(databaseId, epoch);
    setSequenceFloor(sequence);
    doubtLocks();
    const locks = storeClosings({ known, reason, now, principal, audit });
    audit?.record({
      principal,
      action: 'database.restore',
      object: `database/${databaseId}`,
      outcome: 'done',
      detail: {
        copy: basename(copy),
        previousId: system.database_id,
        epoch,
        toLock: locks,
        ...(manifest && { madeAt: manifest.createdAt, version: manifest.version }),
      },
      correlationId: randomUUID(),
    });
    return locks;
  });
  return { databaseId, epoch, toLock };
}

const CARRIED = 'the database was restored, and the lock was open, or may have been';
const UNKNOWN_SINCE =
  'the database was restored, and it is not known what was open: every lock is locked once, also one that a hand has unlocked';

/** All of it, or nothing. Returns where what was there is kept. No start comes between (leftovers.ts). */
function place(plan: Plan, prepared: Prepared, folder: string): string | undefined {
  const { copy, file, shell } = plan;
  const { dataDirectory } = plan.config;
  const asOwner = <T>(work: () => T) => asUserOf(dataDirectory, shell, work);
  const isSecondAttempt = asOwner(() => isUnfinished(dataDirectory));
  asOwner(() => markUnfinished(dataDirectory, resolve(copy)));
  const undo = { configuration: new Undo(), data: new Undo() };
  try {
    const replaced = placeAll(plan, prepared, folder, undo);
    asOwner(() => markFinished(dataDirectory));
    return replaced;
  } catch (error) {
    asOwner(() => undo.data[Symbol.dispose]());
    asUserOf(dirname(file), shell, () => undo.configuration[Symbol.dispose]());
    const isTakenBack = undo.data.isComplete && undo.configuration.isComplete;
    if (isTakenBack && !isSecondAttempt) asOwner(() => markFinished(dataDirectory));
    const outcome = isTakenBack
      ? 'Nothing was restored'
      : 'The restore was cut short, and what it had put in place could not all be taken back. Mend the cause and run it again; until then the daemon does not start';
    throw new CommandFailed(`${outcome}: ${(error as Error).message}`, EXIT.failed, { cause: error });
  }
}

function placeAll(
  { config, file, shell }: Plan,
  { configuration }: Prepared,
  folder: string,
  undo: { configuration: Undo; data: Undo },
): string | undefined {
  const day = new Date(shell.clock.now()).toISOString().slice(0, 10);
  const to = dirname(file);
  asUserOf(to, shell, () => {
    makeFolder(to);
    const { uid, gid } = statSync(to);
    const owner = shell.become && { uid, gid };
    placeConfiguration(to, configuration, { day, owner, undo: undo.configuration });
  });
  return asUserOf(config.dataDirectory, shell, () =>
    placeData(config.dataDirectory, join(folder, 'data'), day, undo.data),
  );
}

function report(
  { copy, file, options, shell }: Plan,
  prepared: Prepared,
  replaced: string | undefined,
): void {
  const { configuration, ...shown } = prepared;
  const files = configuration.map(({ path }) => join(dirname(file), path));
  if (options.json) {
    printJson(shell, { ...shown, configuration: files, replaced });
    return;
  }
  shell.stdout.write(`${copy} is restored.\n`);
  if (files.length > 0)
    shell.stdout.write(`The configuration is restored: ${printable(files.join(', '))}.\n`);
  if (replaced) shell.stdout.write(`What was there is kept in ${replaced}.\n`);
  if (prepared.toLock > 0)
    shell.stdout.write(
      `Locks that the start locks, until each was seen locked: ${prepared.toLock}. No door stands open by the copy.\n`,
    );
  shell.stdout.write(
    'What was revoked or changed after the copy was made is as it was before: look through gatehouse token list.\nStart the daemon with: systemctl start gatehouse\n',
  );
}
