/**
 * A copy of the database for an archive: one read transaction of its own connection, so the daemon goes on writing. The
 * key data of write requests stays behind: no archive holds what is on a card (docs/operations.md, Backup and restore).
 */
import { chmodSync } from 'node:fs';
import { openConnection, openReader } from '../../platform/database/connection.ts';

export interface Snapshot {
  systemId: string;
  databaseId: string;
  schema: number;
}

/** `target` does not exist yet. Throws when the file is not the database of a gateway that has started once. */
export function takeSnapshot(databaseFile: string, target: string): Snapshot {
  {
    using reader = openReader(databaseFile);
    reader.prepare<[string]>('VACUUM INTO ?').run(target);
  }
  chmodSync(target, 0o600);
  using copy = openConnection(target);
  const system = copy
    .prepare<[], { system_id: string; database_id: string }>('SELECT system_id, database_id FROM system')
    .get();
  if (!system) throw new Error(`${databaseFile} is the database of a gateway that never started`);
  for (const sql of LEAVE_KEY_DATA_OUT) copy.exec(sql);
  return {
    systemId: system.system_id,
    databaseId: system.database_id,
    schema: Number(copy.pragma('user_version')),
  };
}

/**
 * Nothing is sent of a request whose key data does not open. One that was not sent yet may be carried out after the
 * copy was made, so it counts as sent, to a journal that no encoder has: a gateway restored from the copy ends its
 * keys as unknown and never as failed (src/resources/writes/machine.ts). Of one that was sent, the encoder still reports the outcome.
 */
export const LEAVE_KEY_DATA_OUT = [
  "UPDATE write_entry SET sealed_blocks = x'' WHERE sealed_blocks IS NOT NULL",
  "UPDATE write_request SET sent_journal = 'not in the backup' WHERE finished_at IS NULL AND sent_journal IS NULL",
] as const;
