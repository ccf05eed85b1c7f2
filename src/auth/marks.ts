/** When tokens were used or seen expired: known at once, written in one commit a minute and when closing. */
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import type { Log } from '../log.ts';
import type { TokenRow, TokenTable } from './table.ts';

/** A crash forgets the marks of no more than this. */
const WRITE_EVERY_MS = 60_000;

export interface Marks {
  used(id: string): void;
  /** A use that is not written yet, epoch milliseconds. */
  lastUse(id: string): number | undefined;
  expired(row: TokenRow): void;
  /** Seen and not written yet. */
  seenExpired(id: string): boolean;
  close(): Promise<void>;
}

export interface MarksOptions {
  database: Database;
  table: TokenTable;
  clock: Clock;
  log: Log;
}

/** Holds one mark per token that exists at most: only valid secrets leave one. */
export function openMarks({ database, table, clock, log }: MarksOptions): Marks {
  const uses = new Map<string, number>();
  const expirations = new Map<string, number>();
  const closing = new AbortController();

  async function write(): Promise<void> {
    if (uses.size === 0 && expirations.size === 0) return;
    const [usesNow, expirationsNow] = [[...uses], [...expirations]];
    try {
      await database.commit(() => {
        for (const [id, at] of usesNow) table.used(id, at);
        for (const [id, at] of expirationsNow) table.expired(id, at);
      }, 'telemetry');
    } catch (error) {
      log.warn({ err: error }, 'the last use of tokens could not be stored; trying again in a minute');
      return;
    }
    // Only after the commit, so that a token is never unmarked in between; and only what has not changed since.
    for (const [id, at] of usesNow) if (uses.get(id) === at) uses.delete(id);
    for (const [id] of expirationsNow) expirations.delete(id);
  }

  async function run(): Promise<void> {
    try {
      for (;;) {
        await clock.sleep(WRITE_EVERY_MS, closing.signal);
        await write();
      }
    } catch (error) {
      if (!closing.signal.aborted) throw error;
    }
    await write();
  }

  const running = run();
  return {
    used(id) {
      uses.set(id, clock.now());
    },
    lastUse: (id) => uses.get(id),
    expired({ id, expired_at }) {
      if (expired_at === null) expirations.set(id, clock.now());
    },
    seenExpired: (id) => expirations.has(id),
    async close() {
      closing.abort();
      await running;
    },
  };
}
