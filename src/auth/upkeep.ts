/** What is known at once and written later: collected once a minute and when closing, in one commit. */
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import type { Log } from '../log.ts';

/** A crash forgets no more than this. */
const WRITE_EVERY_MS = 60_000;

export interface Batch {
  /** Inside the commit. */
  write(): void;
  /** After it. */
  written(): void;
}

/** What there is to write now; undefined when there is nothing. */
export type Collect = (closing: boolean) => Batch | undefined;

export interface UpkeepOptions {
  database: Database;
  clock: Clock;
  log: Log;
  collectors: readonly Collect[];
}

export function openUpkeep({ database, clock, log, collectors }: UpkeepOptions): { close(): Promise<void> } {
  const closing = new AbortController();

  async function write(): Promise<void> {
    const batches = collectors.flatMap((collect) => collect(closing.signal.aborted) ?? []);
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
    async close() {
      closing.abort();
      await running;
    },
  };
}
