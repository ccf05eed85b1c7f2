/**
 * Rows that every request needs and that change seldom, kept in memory.
 *
 * Never stale, and this is why: this process alone writes to the database (src/cli/serve.ts holds its folder), and a transaction
 * begins, runs its jobs and ends within one turn of the event loop (commit.ts). The code that writes such a row forgets what
 * is kept in the same job; inside a transaction nothing is taken from here and nothing is added. So what is added later
 * was read after that transaction had ended, whichever way it ended.
 */
import type { Database } from './database.ts';

/** Then all are read again: far more than the tokens, templates and schedules of a site. */
const ROWS_MAX = 4_096;

export interface KeptRows<Row> {
  /** What `read` returns; undefined is asked for again each time, so that what never existed takes no room. */
  get(key: string): Row | undefined;
  /** Inside the job that writes any of the rows. */
  forget(): void;
}

export function keepRows<Row extends object>(
  database: Pick<Database, 'isInTransaction'>,
  read: (key: string) => Row | undefined,
): KeptRows<Row> {
  const rows = new Map<string, Row>();
  return {
    get(key) {
      if (database.isInTransaction()) return read(key);
      const kept = rows.get(key);
      if (kept) return kept;
      const row = read(key);
      if (rows.size >= ROWS_MAX) rows.clear();
      if (row) rows.set(key, row);
      return row;
    },
    forget: () => rows.clear(),
  };
}
