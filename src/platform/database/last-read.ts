/**
 * Rows that close doors: while the database cannot be read, such as when its file could not be opened again after a failed
 * commit, the row that was read last counts. Nothing can be stored meanwhile, so that it is seldom out of date.
 */
import { GatehouseError } from '../errors.ts';

/** The database could not be read, which has nothing to do with what was asked. Never inside a commit job (connection.ts). */
export function isUnreadable(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'STORAGE_UNAVAILABLE';
}

export function whenUnreadable<T>(read: () => T, otherwise: () => T): T {
  try {
    return read();
  } catch (error) {
    if (isUnreadable(error)) return otherwise();
    throw error;
  }
}

/** `known`: all rows that there are. Without it, what was never read throws while the database cannot be read. */
export function openLastRead<Row>(
  read: (key: string) => Row | undefined,
  known?: Iterable<readonly [string, Row]>,
): (key: string) => Row | undefined {
  const last = new Map(known);
  return (key) => {
    try {
      const row = read(key);
      if (row === undefined) last.delete(key);
      else last.set(key, row);
      return row;
    } catch (error) {
      if (!isUnreadable(error) || (known === undefined && !last.has(key))) throw error;
      return last.get(key);
    }
  };
}
