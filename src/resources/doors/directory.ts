/**
 * What lists and counts ask of every door, in memory: at ten thousand doors a query that reads them all from the database
 * takes tens of milliseconds, in which nothing else is served.
 *
 * Never stale, as src/platform/database/kept.ts has it: the code that writes such a row notes its id in the table, and what was noted is
 * read again before the next use, which is never inside a transaction.
 */
import { whenUnreadable } from '../../platform/database/last-read.ts';
import { fold } from '../../platform/fold.ts';
import type { DoorContext } from './context.ts';
import type { ListedRow } from './table.ts';

export interface Entry extends ListedRow {
  /** Id and name, folded. */
  text: string;
}

export interface Directory {
  /** In the order of access points. */
  entries(): readonly Entry[];
  /** After each of many commits, so that the next use need not read what all of them have changed. */
  refresh(): void;
}

/** Of so many changes at once all rows are read in one query. */
const READ_ALL_FROM = 500;

export function openDirectory({ database, table }: DoorContext): Directory {
  const byId = new Map<string, Entry>();
  let sorted: Entry[] = [];

  /** Noted and not read so far: a read may fail, and is tried again at the next use. */
  const unread = new Set<string>();

  function readAll(): void {
    const rows = table.listed.all();
    byId.clear();
    for (const row of rows) byId.set(row.id, entryOf(row));
    sorted = [...byId.values()].toSorted((a, b) => a.access_point_id - b.access_point_id);
  }

  function readUnread(): void {
    // All are read before the first one is changed.
    const rows = [...unread].map((id) => [id, table.oneListed.get(id)] as const);
    for (const [id, row] of rows) {
      const before = byId.get(id);
      if (before && row?.access_point_id === before.access_point_id) {
        Object.assign(before, entryOf(row));
        continue;
      }
      byId.delete(id);
      if (before) sorted.splice(sorted.indexOf(before), 1);
      if (!row) continue;
      const entry = entryOf(row);
      byId.set(id, entry);
      sorted.splice(placeOf(entry, sorted), 0, entry);
    }
  }

  function entries(): readonly Entry[] {
    if (database.isInTransaction()) throw new Error('the directory of doors was asked inside a transaction');
    for (const id of table.takeChanged()) unread.add(id);
    if (unread.size > READ_ALL_FROM) readAll();
    else if (unread.size > 0) readUnread();
    unread.clear();
    return sorted;
  }

  table.takeChanged();
  readAll();
  return { entries, refresh: () => void whenUnreadable(entries, () => sorted) };
}

function entryOf(row: ListedRow): Entry {
  return { ...row, text: fold(`${row.id}\n${row.name ?? ''}`) };
}

/** Of the first one whose access point is not before this one's. */
function placeOf({ access_point_id }: Entry, sorted: readonly Entry[]): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((sorted[middle]?.access_point_id ?? 0) < access_point_id) from = middle + 1;
    else to = middle;
  }
  return from;
}
