/**
 * What this installation is: the system it serves, the database it writes, how often it has started, and which key and
 * site CA belong to it. Its parts are of one piece: with one lost or exchanged it does not start, for encoders and
 * browsers would be locked out, or sealed values lost, without a word.
 */
import { randomUUID } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import type { Database, Prepare } from '../platform/database/database.ts';
import type { KnownTime } from '../platform/known-time.ts';
import type { Vault } from '../platform/vault.ts';

/** It only has to be newer than a certificate that a wrong clock made; a commit for each look at them would wear the disk. */
const TRUSTED_STORED_EVERY_MS = 3_600_000;

export interface System {
  /** Lower-case UUID. */
  readonly systemId: string;
  /** Drawn when the database was made. */
  readonly databaseId: string;
  /**
   * Grows with each start (docs/encoder-protocol.md, Messages). At least the known time's seconds, so that a database
   * restored from a backup, whose count is behind, still says more than encoders have seen.
   */
  readonly epoch: number;
  /** SHA-256 of the site CA's root as node:crypto writes it, AA:BB:…; null until there is one. */
  readonly rootFingerprint: string | null;
  /** From the next start on, only a site CA with this root is accepted. `begin` runs with it at the first start. */
  keepRoot(fingerprint: string, begin?: () => void): Promise<void>;
  /** The newest time at which the wall clock could be trusted, this moment included; epoch milliseconds, 0 if never. */
  trustedTime(): Promise<number>;
}

export interface SystemOptions {
  database: Database;
  time: Pick<KnownTime, 'now' | 'synchronised'>;
  vault: Pick<Vault, 'digest'>;
  /** For the message. */
  vaultFile: string;
  configuredId: string | undefined;
}

interface Row {
  system_id: string;
  database_id: string;
  epoch: number;
  vault_check: string;
  root_fingerprint: string | null;
  trusted_at: number;
}

/** Made before the key of the vault, and removed once there is a site CA: a first start that was cut short goes on. */
export const firstStartMark = (vaultFile: string) => `${vaultFile}.first-start`;

/**
 * True when there is no database. Throws when it was lost: the site CA, which is made after it, or the key of the vault,
 * which is made before it, is there.
 */
export function isFirstStart(databaseFile: string, pkiDirectory: string, vaultFile?: string): boolean {
  if (statSync(databaseFile, { throwIfNoEntry: false })) return false;
  if (statSync(pkiDirectory, { throwIfNoEntry: false }) && readdirSync(pkiDirectory).length > 0) {
    throw new Error(
      `${databaseFile} is missing, but ${pkiDirectory} is there: restore it from its backup, or move the whole dataDirectory away to begin again`,
    );
  }
  const isThere = (file: string) => statSync(file, { throwIfNoEntry: false }) !== undefined;
  if (vaultFile !== undefined && isThere(vaultFile) && !isThere(firstStartMark(vaultFile))) {
    throw new Error(
      `${databaseFile} and ${pkiDirectory} are missing, but ${vaultFile} is there: restore them from their backup, or move the whole dataDirectory away to begin again`,
    );
  }
  return true;
}

/**
 * Reads the identity, or makes it at first start, and counts this start. Refuses a database of another system, and one
 * that was written with another vault key.
 */
export async function openSystem(options: SystemOptions): Promise<System> {
  const { database, time } = options;
  const setRoot = database.prepare<[string]>('UPDATE system SET root_fingerprint = ? WHERE id = 1');
  const setTrusted = database.prepare<[number]>('UPDATE system SET trusted_at = ? WHERE id = 1');
  const row = await database.commit(() => countStart(options));
  let trustedAt = row.trusted_at;
  let storedAt = trustedAt;
  return {
    systemId: row.system_id,
    databaseId: row.database_id,
    epoch: row.epoch,
    rootFingerprint: row.root_fingerprint,
    async keepRoot(fingerprint, begin = () => {}) {
      if (fingerprint === row.root_fingerprint) return;
      await database.commit(() => {
        setRoot.run(fingerprint);
        begin();
      });
    },
    async trustedTime() {
      if (!time.synchronised()) return trustedAt;
      trustedAt = time.now();
      if (Math.abs(trustedAt - storedAt) >= TRUSTED_STORED_EVERY_MS) {
        await database.commit(() => setTrusted.run(trustedAt), 'urgent');
        storedAt = trustedAt;
      }
      return trustedAt;
    },
  };
}

const READ = 'SELECT * FROM system WHERE id = 1';

type Parts = Pick<SystemOptions, 'vault' | 'vaultFile' | 'configuredId'>;

/** What a start would refuse of a database it is given, and the root of the site CA it expects; changes nothing. */
export function readSystem(database: Prepare): {
  knownRoot: string | null;
  assertOnePiece(parts: Parts): void;
} {
  const row = database.prepare<[], Row>(READ).get();
  return {
    knownRoot: row?.root_fingerprint ?? null,
    assertOnePiece: (parts) => row && assertOnePiece(row, parts),
  };
}

function countStart({ database, time, vault, vaultFile, configuredId }: SystemOptions): Row {
  const read = database.prepare<[], Row>(READ);
  const insert = database.prepare<[string, string, string, number]>(
    'INSERT INTO system (id, system_id, database_id, epoch, vault_check, created_at) VALUES (1, ?, ?, 0, ?, ?)',
  );
  const count = database.prepare<[number]>('UPDATE system SET epoch = max(epoch + 1, ?) WHERE id = 1');
  if (!read.get()) insert.run(configuredId ?? randomUUID(), randomUUID(), checkOf(vault), time.now());
  count.run(Math.floor(time.now() / 1_000));
  const row = read.get();
  if (!row) throw new Error('the system row is missing');
  assertOnePiece(row, { vault, vaultFile, configuredId });
  return row;
}

const checkOf = (vault: SystemOptions['vault']) => vault.digest('check', 'gatehouse');

function assertOnePiece(row: Row, { vault, vaultFile, configuredId }: Parts): void {
  if (configuredId !== undefined && configuredId !== row.system_id) {
    throw new Error(
      `systemId in the configuration is ${configuredId}, but the database belongs to ${row.system_id}: correct the configuration, or use another dataDirectory`,
    );
  }
  if (row.vault_check !== checkOf(vault)) {
    throw new Error(
      `${vaultFile} is not the key this database was written with: restore it from its backup, or move the whole dataDirectory away to begin again`,
    );
  }
}
