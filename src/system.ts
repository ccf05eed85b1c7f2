/** What this installation is: the system it serves, the database it writes, and how often it has started. */
import { randomUUID } from 'node:crypto';
import type { Clock } from './clock.ts';
import type { Database } from './database/database.ts';

export interface System {
  /** Lower-case UUID. */
  readonly systemId: string;
  /** Drawn when the database was made. */
  readonly databaseId: string;
  /**
   * Grows with each start (docs/encoder-protocol.md, Messages). At least the wall clock's seconds, so that a database
   * restored from a backup, whose count is behind, still says more than encoders have seen.
   */
  readonly epoch: number;
}

/** Reads the identity, or makes it at first start, and counts this start. Refuses a database of another system. */
export async function openSystem(
  database: Database,
  clock: Clock,
  configuredId: string | undefined,
): Promise<System> {
  const read = database.prepare<[], { system_id: string; database_id: string; epoch: number }>(
    'SELECT system_id, database_id, epoch FROM system WHERE id = 1',
  );
  const insert = database.prepare<[string, string, number]>(
    'INSERT INTO system (id, system_id, database_id, epoch, created_at) VALUES (1, ?, ?, 0, ?)',
  );
  const count = database.prepare<[number]>('UPDATE system SET epoch = max(epoch + 1, ?) WHERE id = 1');
  return database.commit(() => {
    if (!read.get()) insert.run(configuredId ?? randomUUID(), randomUUID(), clock.now());
    count.run(Math.floor(clock.now() / 1_000));
    const row = read.get();
    if (!row) throw new Error('the system row is missing');
    if (configuredId !== undefined && configuredId !== row.system_id) {
      throw new Error(
        `systemId in the configuration is ${configuredId}, but the database belongs to ${row.system_id}: correct the configuration, or use another dataDirectory`,
      );
    }
    return { systemId: row.system_id, databaseId: row.database_id, epoch: row.epoch };
  });
}
