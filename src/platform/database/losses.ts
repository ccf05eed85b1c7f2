/**
 * What a damaged or lost write-ahead log takes away is found, kept aside and said. SQLite goes on without a word.
 *
 * `<file>-counters`, beside the database, says how many rows the counted tables have ever had. It is written after each
 * commit and never synced, so it may lag behind the database after a power cut and is never ahead of it.
 */
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Connection } from './connection.ts';
import { commitsLost } from './write-ahead-log.ts';

const FOLDER = 'damaged-';
/** One sector: written whole or not at all. */
const RECORD_BYTES = 512;

export interface Missing {
  table: string;
  from: number;
  to: number;
}

export interface DataLoss {
  /** Where the damaged files are kept. */
  folder: string;
  /** Commits that were in the log behind its damage, at least. */
  commits: number;
  /** Rows that were stored, as far as they were counted. */
  missing: Missing[];
}

interface Counters {
  databaseId: string;
  rows: Record<string, number>;
}

/** Before the database is opened: that rewrites the log. Returns how many commits are lost, and where the files are kept. */
export function keepDamagedLog(file: string): { folder: string; commits: number } | undefined {
  const commits = commitsLost(file);
  if (commits === 0) return undefined;
  const folder = makeFolder(file);
  for (const part of [file, `${file}-wal`]) copyFileSync(part, join(folder, basename(part)));
  return { folder, commits };
}

/** After the database was opened: what the counters know and it does not. */
export function lossOf(
  connection: Connection,
  kept: ReturnType<typeof keepDamagedLog>,
): DataLoss | undefined {
  const { file } = connection;
  const missing = missingRows(readCounters(countersFile(file)), countersOf(connection));
  if (!kept && missing.length === 0) return undefined;
  const loss = { folder: kept?.folder ?? makeFolder(file), commits: kept?.commits ?? 0, missing };
  if (!kept) copyFileSync(countersFile(file), join(loss.folder, basename(countersFile(file))));
  writeFileSync(join(loss.folder, 'missing.json'), `${JSON.stringify(loss)}\n`);
  return loss;
}

/** The folders of earlier losses, until somebody moves them away. */
export function keptLosses(file: string): string[] {
  const backups = join(dirname(file), 'backups');
  if (!existsSync(backups)) return [];
  const names = readdirSync(backups).filter((name) => name.startsWith(FOLDER));
  return names.sort().map((name) => join(backups, name));
}

export interface CounterFile extends Disposable {
  /** After a commit. */
  update(): void;
}

/** As well as the disk lets it: a commit that is stored does not fail for its counters. */
export function openCounters(connection: Connection): CounterFile {
  const read = connection.prepare<[], CounterRow>(READ_COUNTERS);
  let descriptor: number | undefined;
  let written = '';
  function update(): void {
    const { counters } = read.get() ?? NO_COUNTERS;
    if (counters === written) return;
    try {
      descriptor ??= openSync(countersFile(connection.file), 'w', 0o600);
      writeSync(descriptor, counters.padEnd(RECORD_BYTES), 0);
      written = counters;
    } catch {
      // A lower count than there is finds less, and says nothing wrong.
    }
  }
  update();
  return {
    update,
    [Symbol.dispose]() {
      if (descriptor !== undefined) closeSync(descriptor);
    },
  };
}

interface CounterRow {
  /** Counters, as JSON. */
  counters: string;
}
const NO_COUNTERS: CounterRow = { counters: '{"databaseId":"","rows":{}}' };

/** In one row, and made by SQLite: a caller that waits for a commit waits for this as well. */
const READ_COUNTERS = `SELECT json_object('databaseId', coalesce((SELECT database_id FROM system), ''),
  'rows', json_group_object(name, seq)) AS counters FROM sqlite_sequence`;

function countersOf(connection: Connection): Counters {
  const { counters } = connection.prepare<[], CounterRow>(READ_COUNTERS).get() ?? NO_COUNTERS;
  return JSON.parse(counters) as Counters;
}

/** Another database, such as a restored one, has counters of its own. */
function missingRows(known: Counters | undefined, found: Counters): Missing[] {
  if (!known) return [];
  if (found.databaseId !== '' && found.databaseId !== known.databaseId) return [];
  return Object.entries(known.rows)
    .map(([table, to]) => ({ table, from: (found.rows[table] ?? 0) + 1, to }))
    .filter(({ from, to }) => from <= to);
}

/** Undefined without a file, and when a power cut has left nothing that can be read. */
function readCounters(file: string): Counters | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Counters;
  } catch {
    return undefined;
  }
}

const countersFile = (file: string) => `${file}-counters`;

function makeFolder(file: string): string {
  const backups = join(dirname(file), 'backups');
  mkdirSync(backups, { recursive: true, mode: 0o700 });
  return mkdtempSync(join(backups, FOLDER));
}
