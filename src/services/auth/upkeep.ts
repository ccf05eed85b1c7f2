/** What is known at once and written later: collected at the start, once a minute, when asked and when closing, in one commit. */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';

/** A crash forgets no more than this. */
const WRITE_EVERY_MS = 60_000;

export interface Batch {
  /** Inside the commit. */
  write(): void;
  /** After it. */
  written(): void;
}

/** What there is to write now; undefined when there is nothing. `all`: also what could wait longer. */
export type Collect = (all: boolean) => Batch | undefined;

export interface Upkeep {
  /** Writes all now. Never rejects: what could not be stored is tried again in a minute. */
  write(): Promise<void>;
  close(): Promise<void>;
}

export interface UpkeepOptions {
  database: Database;
  clock: Clock;
  log: Log;
  collectors: readonly Collect[];
}

export function openUpkeep({ database, clock, log, collectors }: UpkeepOptions): Upkeep {
  const closing = new AbortController();

  async function write(all = true): Promise<void> {
    const batches = collectors.flatMap((collect) => collect(all) ?? []);
    if (batches.length === 0) return;
    try {
      await database.commit(() => {
        for (const batch of batches) batch.write();
      });
    } catch (error) {
      log.warn(
        { err: error },
        'uses and failures of credentials could not be stored; trying again in a minute',
      );
      return;
    }
    for (const batch of batches) batch.written();
  }

  async function run(): Promise<void> {
    try {
      await write();
      for (;;) {
        await clock.sleep(WRITE_EVERY_MS, closing.signal);
        await write(false);
      }
    } catch (error) {
      if (!closing.signal.aborted) throw error;
    }
    await write();
  }

  const running = run();
  return {
    write: () => write(),
    async close() {
      closing.abort();
      await running;
    },
  };
}
