/** What a start opens first, and only as one piece: the vault's key, the database, the site CA. Looked at with its eyes. */
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isFirstStart, readSystem } from '../../app/system.ts';
import { openConnection } from '../../platform/database/connection.ts';
import { isWithoutSchema, oldestRunning, readMigrations } from '../../platform/database/migrate.ts';
import { openVault, type Vault } from '../../platform/vault.ts';
import { readSiteCa } from '../../services/pki/site-ca.ts';
import { type Diagnosis, hindranceOf, type Patient, refused } from './diagnosis.ts';

const FIRST_START = 'the first start makes it';
const RESTORE = 'systemctl stop gatehouse, then gatehouse restore FILE';

/** Each part as far as the others allow: `found` is what there is to say of it. */
interface Looked<Part> {
  found: Diagnosis;
  part?: Part;
}

export async function checkParts({ config }: Patient): Promise<Diagnosis[]> {
  const path = (...names: string[]) => join(config.dataDirectory, ...names);
  const databaseFile = path('gatehouse.db');
  const vaultFile = path('keys', 'vault.key');
  const pki = path('pki');
  const vault = lookAtVault(vaultFile, [databaseFile, pki]);
  const database = lookAtDatabase(databaseFile, pki);
  const found = [vault.found, database.found];
  if (vault.part && database.part) {
    const parts = { vault: vault.part, vaultFile, configuredId: config.systemId };
    const refusal = refusalOf(() => database.part?.assertOnePiece(parts));
    if (refusal) found.push(refused('system', refusal.error));
  }
  const knownRoot = database.part?.knownRoot ?? null;
  // Of a database that cannot be read no one knows whether there must be a CA.
  const mayBeNew = database.part !== undefined || database.found.severity === 'good';
  return [...found, ...(await lookAtSiteCa(pki, knownRoot, mayBeNew))];
}

function lookAtVault(file: string, others: readonly string[]): Looked<Vault> {
  const subject = 'vault key';
  try {
    if (![file, ...others].some(isThere)) return { found: { severity: 'good', subject, text: FIRST_START } };
    const part = openVault(file, { create: false });
    const text = `${file}; gatehouse backup has it in its archives`;
    return { part, found: { severity: 'good', subject, text } };
  } catch (error) {
    return { found: refused(subject, error) };
  }
}

/** Throws where this user may not look. */
function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function lookAtDatabase(file: string, pki: string): Looked<ReturnType<typeof readSystem>> {
  const subject = 'database';
  const bad = (text: string, remedy = RESTORE) => ({
    found: { severity: 'bad', subject, text, remedy } as const,
  });
  const first = refusalOf(() => isFirstStart(file, pki));
  if (first) {
    const { text, remedy } = refused(subject, first.error);
    return bad(text, hindranceOf(first.error) ?? `${RESTORE}; or ${remedy}`);
  }
  if (!isThere(file)) return { found: { severity: 'good', subject, text: FIRST_START } };
  try {
    // Opening would give an empty file a header, and so hide what has happened.
    if (statSync(file).size === 0) return bad(`${file}: it is empty`);
    using connection = openConnection(file);
    const verdict = isWithoutSchema(connection) ? 'it is empty' : connection.pragma('integrity_check(1)');
    if (verdict !== 'ok') return bad(`${file}: ${String(verdict)}`);
    const schema = Number(connection.pragma('user_version'));
    const known = readMigrations().length;
    if (oldestRunning(connection) > known)
      return bad(
        `${file} has schema ${schema}, this version knows ${known}`,
        `install the newer version again, or go back to before it: gatehouse restore ${dirname(file)}/backups/gatehouse.db.schema-N`,
      );
    const later = schema < known ? `, brought to ${known} at the next start` : '';
    const text = `${file} is sound, schema ${schema}${later}`;
    return { part: readSystem(connection), found: { severity: 'good', subject, text } };
  } catch (error) {
    return bad(`${file}: ${(error as Error).message}`, hindranceOf(error));
  }
}

async function lookAtSiteCa(pki: string, knownRoot: string | null, mayBeNew: boolean): Promise<Diagnosis[]> {
  const subject = 'site CA';
  try {
    const authority = await readSiteCa(pki, knownRoot);
    if (authority) return [{ severity: 'good', subject, text: `${pki} is whole` }];
    return mayBeNew ? [{ severity: 'good', subject, text: FIRST_START }] : [];
  } catch (error) {
    return [refused(subject, error)];
  }
}

function refusalOf(look: () => unknown): { error: unknown } | undefined {
  try {
    look();
    return undefined;
  } catch (error) {
    return { error };
  }
}
