/**
 * What a start expects to find: how many doors, devices and encoders there were is noted beside the database, after each start,
 * each hour and at the end. A database that has far fewer, and whose audit does not say who removed them, is an old copy or has
 * lost rows. To go on with it would close doors without a word, so the start stops and a person decides.
 */
import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Clock } from '../platform/clock.ts';
import type { Database } from '../platform/database/database.ts';
import { writeDurably } from '../platform/host/durable-file.ts';
import { reasonOf } from '../platform/host/regular-file.ts';
import type { Log } from '../platform/log.ts';

const NOTED_EVERY_MS = 3_600_000;
/** A smaller loss does not stop the start: rows, and a part of all. */
const [FEW, FEW_OF_ALL] = [3, 0.1];

/** By their words for a person: the table, and the action that the audit has for a removed row. A removed encoder keeps its row. */
const KINDS = {
  doors: { table: 'door', removal: 'door.retire' },
  'RS-485 devices': { table: 'rs485_device', removal: 'rs485.retire' },
  encoders: { table: 'encoder', removal: undefined },
} as const;
type Kind = keyof typeof KINDS;

const noteSchema = z.object({
  databaseId: z.string(),
  /** The newest entry of the audit. */
  audited: z.int(),
  at: z.iso.datetime(),
  counts: z.record(z.string(), z.int()),
});
type Note = z.infer<typeof noteSchema>;

export interface Inventory {
  /** Notes how many there are, each hour and at the end. */
  keep(signal: AbortSignal): Promise<never>;
}

export interface InventoryOptions {
  database: Database;
  databaseId: string;
  /** Where it is noted. */
  file: string;
  clock: Clock;
  log: Log;
}

/** Throws where the site is implausibly smaller than it was, with what to do. */
export function openInventory(options: InventoryOptions): Inventory {
  const { database, databaseId, file, clock, log } = options;
  const newest = database.prepare<[], { seq: number | null }>('SELECT max(seq) AS seq FROM audit');
  const removals = database.prepare<[number, string], { rows: number }>(
    "SELECT count(*) AS rows FROM audit WHERE seq > ? AND action = ? AND outcome = 'done'",
  );
  const counters = Object.entries(KINDS).map(([kind, { table }]) => ({
    kind: kind as Kind,
    read: database.prepare<[], { rows: number }>(`SELECT count(*) AS rows FROM ${table}`),
  }));
  const counts = () => counters.map(({ kind, read }) => [kind, read.get()?.rows ?? 0] as const);
  const removedSince = (audited: number, action: string | undefined) =>
    action === undefined ? 0 : (removals.get(audited, action)?.rows ?? 0);

  const note = readNote(file, log);
  // A restored database has another identity.
  if (note?.databaseId === databaseId) {
    for (const [kind, there] of counts()) {
      const before = note.counts[kind] ?? 0;
      const missing = before - there;
      // The audit is read only where that is needed: a start does not depend on how much is stored.
      if (!isImplausible(missing, before, there)) continue;
      const unexplained = missing - removedSince(note.audited, KINDS[kind].removal);
      if (isImplausible(unexplained, before, there))
        throw new Error(shrunk(kind, { before, there, note, file }));
    }
  }
  let noted = '';
  async function write(): Promise<void> {
    const state = { databaseId, audited: newest.get()?.seq ?? 0, counts: Object.fromEntries(counts()) };
    const text = JSON.stringify(state);
    if (text === noted) return;
    await writeDurably(file, JSON.stringify({ ...state, at: new Date(clock.now()).toISOString() }));
    noted = text;
  }
  return {
    async keep(signal) {
      try {
        for (;;) {
          await write();
          await clock.sleep(NOTED_EVERY_MS, signal);
        }
      } finally {
        // Where that fails an older note does: what was removed since is in the audit.
        await write().catch(() => {});
      }
    },
  };
}

function isImplausible(missing: number, before: number, there: number): boolean {
  if (missing <= 0) return false;
  return there === 0 || (missing >= FEW && missing > before * FEW_OF_ALL);
}

function shrunk(
  kind: Kind,
  { before, there, note, file }: { before: number; there: number; note: Note; file: string },
): string {
  return `the database has ${there} ${kind}, and had ${before} on ${note.at}; no one has removed so many: it is an old copy, or has lost some. Nothing is started. Bring back the newest backup (gatehouse restore FILE); or, if this is right, remove ${file} and start again`;
}

/**
 * Undefined: there is none. One that is damaged does not stop the doors of a site whose database is sound (its own checks say so,
 * losses.ts): the log says that nothing was compared.
 */
function readNote(file: string, log: Log): Note | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return noteSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === undefined ? 'it is damaged' : reasonOf(error);
    log.error(
      { file, reason },
      'the note of how many doors there were cannot be read, so that this start did not compare them: look whether all doors are there. It is written again within a minute',
    );
    return undefined;
  }
}
