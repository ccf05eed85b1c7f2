/** What must be true of a database, a key and a site CA before they take the place of others; and what is only warned of. */
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openAudit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import { type Database, DatabaseUnusable, openDatabase } from '../database/database.ts';
import { SchemaRefused } from '../database/migrate.ts';
import { silentLog } from '../log.ts';
import { readSystem } from '../system.ts';
import { openVault } from '../vault.ts';
import { CommandFailed, EXIT } from './shell.ts';

export type Reopened = ReturnType<typeof openAuditWith>;

/** All of it is checked, and its schema; an older schema is brought up to date. */
export async function openDraft(copy: string, draft: string): Promise<Database> {
  try {
    return await openDatabase({ file: draft, fullCheck: true, monotonic: () => 0, failed: () => {} });
  } catch (error) {
    throw notRestored(copy, draft, error);
  }
}

export function notRestored(copy: string, draft: string, cause: unknown): CommandFailed {
  return new CommandFailed(`Nothing was restored: ${refusal(copy, draft, cause)}`, EXIT.failed, { cause });
}

/** What the daemon advises about its own database would be none about a copy. */
function refusal(copy: string, draft: string, error: unknown): string {
  const { code, message, cause } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return `there is no file ${copy}: name an archive that gatehouse backup has made.`;
  if (error instanceof DatabaseUnusable && isDamage(cause))
    return `${copy} is damaged or not a database (${(cause as Error).message}): restore another one that gatehouse backup has made.`;
  const told = message.replaceAll(draft, copy);
  if (!(error instanceof SchemaRefused)) return told;
  const [fact = ''] = told.split(/: (?:use|install) /);
  return `${fact}: restore one that this version or an older one has made, or install the version this one is of.`;
}

/** As against a fault of the disk it was copied to. */
function isDamage(cause: unknown): boolean {
  const { code } = cause as NodeJS.ErrnoException;
  return code === undefined || /^SQLITE_(CORRUPT|NOTADB)/.test(code);
}

/** The key and the site CA of an archive belong to its database. Throws what a start would. */
export function assertOnePiece(database: Database, folder: string, configuredId: string | undefined): void {
  const vaultFile = join(folder, 'keys', 'vault.key');
  const system = readSystem(database);
  system.assertOnePiece({ vault: openVault(vaultFile, { create: false }), vaultFile, configuredId });
  const root = join(folder, 'pki', 'root.crt');
  if (!statSync(root, { throwIfNoEntry: false })) throw new Error('it holds no certificate authority (pki)');
  const { fingerprint256 } = new X509Certificate(readFileSync(root));
  if (system.knownRoot !== null && fingerprint256 !== system.knownRoot)
    throw new Error('its certificate authority (pki) is not that of its database');
}

/** Undefined without the vault's key: rows could not be told from forged ones. */
export function openAuditWith(database: Database, vaultFile: string, clock: Clock) {
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
export async function warningsOf(audit: Reopened, key: string): Promise<string[]> {
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
