/** What must be true of a database, a key and a site CA before they take the place of others; and what is only warned of. */
import { X509Certificate } from 'node:crypto';
import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readSystem } from '../app/system.ts';
import type { Clock } from '../platform/clock.ts';
import { type Database, DatabaseUnusable, openDatabase } from '../platform/database/database.ts';
import { SchemaRefused } from '../platform/database/migrate.ts';
import { silentLog } from '../platform/log.ts';
import { openVault } from '../platform/vault.ts';
import { type OpenAudit, openAudit } from '../services/audit/audit.ts';
import { CommandFailed, EXIT } from './shell.ts';

export interface SystemRow {
  system_id: string;
  database_id: string;
  epoch: number;
}

export const READ_SYSTEM = 'SELECT system_id, database_id, epoch FROM system WHERE id = 1';

/** What the manifest of an archive says of the database in it. */
interface Said {
  systemId: string;
  databaseId: string;
  schema: number;
}

interface Copy {
  /** As the person knows it. */
  name: string;
  /** The folder with its database; of an archive with all of its data. */
  data: string;
  /** Of an archive. */
  manifest: Said | undefined;
  configuredId: string | undefined;
}

/** The database of a copy that may take the place of another. Its parts belong together, and its manifest is true of it. */
export async function openCopy({ name, data, manifest, configuredId }: Copy): Promise<Database> {
  const draft = join(data, 'gatehouse.db');
  // Opening it brings it up to date.
  const schema = schemaOf(draft);
  await using opening = new AsyncDisposableStack();
  const database = opening.use(await openDraft(name, draft));
  const system = database.prepare<[], SystemRow>(READ_SYSTEM).get();
  if (!system) throw new CopyRefused(`${name} is the database of a gateway that never started.`);
  if (configuredId !== undefined && configuredId !== system.system_id) {
    throw new CopyRefused(
      `${name} belongs to system ${system.system_id}, the configuration to ${configuredId}: take another copy, or correct systemId.`,
    );
  }
  try {
    if (manifest) {
      assertTrue(manifest, system, schema);
      assertOnePiece(database, data, configuredId);
    }
  } catch (error) {
    const message = (error as Error).message.replaceAll(data, 'data');
    throw new CopyRefused(`${name} is not of one piece: ${message}`, EXIT.failed, { cause: error });
  }
  opening.move();
  return database;
}

/** Anyone who has the public key can make an archive with any manifest. */
function assertTrue({ systemId, databaseId, schema }: Said, system: SystemRow, found: number): void {
  const said = [
    ['the system', systemId, system.system_id],
    ['the database', databaseId, system.database_id],
    ['the schema', schema, found],
  ] as const;
  for (const [what, inManifest, inDatabase] of said)
    if (inManifest !== inDatabase)
      throw new Error(`its manifest names ${what} ${inManifest}, its database ${inDatabase}`);
}

/** The user version in the header of the file (https://www.sqlite.org/fileformat.html, 1.3). */
function schemaOf(draft: string): number {
  const file = openSync(draft, 'r');
  try {
    const version = Buffer.alloc(4);
    readSync(file, version, 0, version.length, 60);
    return version.readInt32BE();
  } finally {
    closeSync(file);
  }
}

/** All of it is checked, and its schema; an older schema is brought up to date. */
async function openDraft(copy: string, draft: string): Promise<Database> {
  try {
    return await openDatabase({ file: draft, fullCheck: true, monotonic: () => 0, failed: () => {} });
  } catch (error) {
    throw copyRefused(copy, draft, error);
  }
}

/** An archive or a copy that cannot be used. */
export class CopyRefused extends CommandFailed {}

export function copyRefused(copy: string, draft: string, cause: unknown): CopyRefused {
  return new CopyRefused(refusal(copy, draft, cause), EXIT.failed, { cause });
}

/** What the daemon advises about its own database would be none about a copy. */
function refusal(copy: string, draft: string, error: unknown): string {
  const { code, message, cause } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return `there is no file ${copy}: name an archive that gatehouse backup has made.`;
  if (code === 'EACCES') return `${copy}: you may not read it (try sudo).`;
  if (error instanceof DatabaseUnusable && isDamage(cause))
    return `${copy} is damaged or not a database (${(cause as Error).message}): restore another one that gatehouse backup has made.`;
  const text = message.replaceAll(draft, copy);
  if (!(error instanceof SchemaRefused)) return text;
  const [fact = ''] = text.split(/: (?:use|install) /);
  return `${fact}: restore one that this version or an older one has made, or install the version this one is of.`;
}

/** As against a fault of the disk it was copied to. */
function isDamage(cause: unknown): boolean {
  const { code } = cause as NodeJS.ErrnoException;
  return code === undefined || /^SQLITE_(CORRUPT|NOTADB)/.test(code);
}

/** The key and the site CA of an archive belong to its database. Throws what a start would. */
function assertOnePiece(database: Database, folder: string, configuredId: string | undefined): void {
  const vaultFile = join(folder, 'keys', 'vault.key');
  const system = readSystem(database);
  system.assertOnePiece({ vault: openVault(vaultFile, { create: false }), vaultFile, configuredId });
  const root = join(folder, 'pki', 'root.crt');
  if (!statSync(root, { throwIfNoEntry: false })) throw new Error('it holds no certificate authority (pki)');
  const { fingerprint256 } = new X509Certificate(readFileSync(root));
  if (system.knownRoot !== null && fingerprint256 !== system.knownRoot)
    throw new Error('its certificate authority (pki) is not that of its database');
}

/** Undefined without the vault's key: nothing would separate rows from forged ones. */
export function openAuditWith(database: Database, vaultFile: string, clock: Clock): OpenAudit | undefined {
  try {
    const vault = openVault(vaultFile, { create: false });
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

/** `key` is the file of the vault's key as the person knows it. */
export async function warningsOf(audit: OpenAudit | undefined, key: string): Promise<string[]> {
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
