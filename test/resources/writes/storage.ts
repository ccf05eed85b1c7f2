/** What a gateway of the simulation of writes has stored, and what a test asks of it. */
import { join } from 'node:path';
import { openConnection } from '../../../src/platform/database/connection.ts';
import { type Database, openDatabase, type Statement } from '../../../src/platform/database/database.ts';
import type { Vault } from '../../../src/platform/vault.ts';
import { temporaryFolder } from '../../temporary.ts';
import { openRecords } from './testbed.ts';

/** States in which an entry has ended. */
export const TERMINAL = ['written', 'failed', 'cancelled', 'expired', 'unknown'];

/** Sealing is tested elsewhere, and would take most of the time here. */
const openSafe: Vault = {
  seal: (plain) => Buffer.from(plain),
  open: (sealed) => Buffer.from(sealed),
  digest: (_purpose, content) => content,
  deriveKey: () => Buffer.alloc(32),
};

export interface Storage {
  prepare: Database['prepare'];
  commit<T>(job: () => T): T;
  insertEncoder(id: string): void;
  records: Pick<Awaited<ReturnType<typeof openRecords>>, 'events' | 'audit'>;
  vault: Vault;
  terminalEvents(encoderId: string): { key_id: string; status: string }[];
  entries(
    encoderId: string,
  ): { key_id: string; status: string; finished_at: number | null; sealed: number }[];
}

/** One file for all histories, without fsync: what is lost in a crash is decided by who kills the gateway, not by the disk. */
export async function openStorage(): Promise<Storage> {
  const folder = temporaryFolder();
  const file = join(folder, 'gatehouse.db');
  const migrated = await openDatabase({ file, monotonic: () => 0, failed: () => {} });
  await openRecords(migrated, []);
  await migrated[Symbol.asyncDispose]();
  const connection = openConnection(file);
  connection.exec('PRAGMA synchronous = OFF');
  connection.exec('PRAGMA locking_mode = EXCLUSIVE');
  const cache = new Map<string, Statement<never, unknown>>();
  const prepare = ((sql: string) => {
    const statement = cache.get(sql) ?? connection.prepare(sql);
    cache.set(sql, statement);
    return statement;
  }) as Database['prepare'];
  const commit = <T>(job: () => T): T => {
    connection.exec('BEGIN');
    try {
      const result = job();
      connection.exec('COMMIT');
      return result;
    } catch (error) {
      connection.exec('ROLLBACK');
      throw error;
    }
  };
  const records = await openRecords(
    { prepare, commit: async (job: () => void) => commit(job) } as Database,
    [],
  );
  return {
    prepare,
    commit,
    records: { events: records.events, audit: records.audit },
    vault: openSafe,
    insertEncoder: (id) =>
      void prepare<[string]>(
        `INSERT INTO encoder (id, generation, connected_changed_at, alarm_changed_at, created_at, created_by,
           updated_at, updated_by) VALUES (?, 1, 0, 0, 0, '', 0, '')`,
      ).run(id),
    terminalEvents(encoderId) {
      const rows = prepare<[], { body: string }>('SELECT body FROM test_event').all();
      prepare<[]>('DELETE FROM test_event').run();
      prepare<[]>('DELETE FROM test_audit').run();
      return rows
        .map(({ body }) => JSON.parse(body))
        .filter((event) => event.encoderId === encoderId && TERMINAL.includes(event.status))
        .map(({ keyId, status }) => ({ key_id: keyId, status }));
    },
    entries: (encoderId) =>
      prepare<[string], { key_id: string; status: string; finished_at: number | null; sealed: number }>(
        `SELECT key_id, write_entry.status, finished_at, sealed_blocks IS NOT NULL AS sealed FROM write_entry
         JOIN write_request USING (job_id) WHERE encoder_id = ?`,
      ).all(encoderId),
  };
}
