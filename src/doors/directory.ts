/**
 * What lists and counts ask of every door, in memory: at ten thousand doors a query that reads them all from the database
 * takes tens of milliseconds, in which nothing else is served.
 *
 * Never stale, as src/database/kept.ts has it: whoever writes such a row notes its id in the table, and what was noted is
 * read anew before the next use, which is never inside a transaction.
 */
import type { Database } from '../database/database.ts';
import { fold } from '../fold.ts';
import type { DoorTable, ListedRow } from './table.ts';

export interface Entry extends ListedRow {
  /** Id and name, folded. */
  text: string;
}

export interface Directory {
  /** In the order of access points. */
  entries(): readonly Entry[];
}

export interface DirectoryOptions {
  database: Pick<Database, 'isInTransaction'>;
  table: Pick<DoorTable, 'listed' | 'oneListed' | 'takeChanged'>;
}

/** Of so many changes at once all rows are read in one query. */
const READ_ALL_FROM = 500;

export function openDirectory({ database, table }: DirectoryOptions): Directory {
  const byId = new Map<string, Entry>();
  let sorted: Entry[] = [];

  function readAll(): void {
    table.takeChanged();
    byId.clear();
    for (const row of table.listed.all()) byId.set(row.id, entryOf(row));
    sorted = inOrder(byId);
  }

  function refresh(changed: readonly string[]): void {
    let isMoved = false;
    for (const id of changed) {
      const before = byId.get(id);
      const row = table.oneListed.get(id);
      if (before && row?.access_point_id === before.access_point_id) Object.assign(before, entryOf(row));
      else if (before || row) isMoved = true;
      if (!row) byId.delete(id);
      else if (!before || isMoved) byId.set(id, entryOf(row));
    }
    if (isMoved) sorted = inOrder(byId);
  }

  readAll();
  return {
    entries() {
      if (database.isInTransaction())
        throw new Error('the directory of doors was asked inside a transaction');
      const changed = table.takeChanged();
      if (changed.length > READ_ALL_FROM) readAll();
      else if (changed.length > 0) refresh(changed);
      return sorted;
    },
  };
}

function entryOf(row: ListedRow): Entry {
  return { ...row, text: fold(`${row.id}\n${row.name ?? ''}`) };
}

function inOrder(byId: ReadonlyMap<string, Entry>): Entry[] {
  return [...byId.values()].toSorted((a, b) => a.access_point_id - b.access_point_id);
}
