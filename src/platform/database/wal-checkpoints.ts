/**
 * Copies the write-ahead log into the database file in a thread of its own: it takes some thousand writes and three fsyncs,
 * during which SQLite's own automatic checkpoint would hold up the event loop, and with it every encoder and request.
 *
 * Writers go on meanwhile (sqlite.org, Write-Ahead Logging, 2.2: a passive checkpoint waits for no one and no one for it).
 * It copies committed frames alone, so that what a failed commit has left is never copied. A thread that fails leaves the
 * log longer, until SQLite's own, whose limit is in connection.ts, runs in a commit after all.
 */
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Connection } from './connection.ts';

/** In the log, of pages: from there on it is copied. A page that many commits write is copied once. */
const COPIED_FROM_BYTES = 12 * 1024 * 1024;
/** Added by commits while it was copied: less is left to the next time. */
const LEFT_BYTES = 1024 * 1024;
/** Commits between two looks at the log, of up to some hundred pages each. */
const LOOK_EVERY = 16;
const THREAD = join(import.meta.dirname, 'wal-checkpoint-thread.js');
/** It holds no data beside SQLite's cache. */
const HEAP_LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 };

export interface WalCheckpoints extends AsyncDisposable {
  /** After each commit. */
  committed(): void;
}

export function openWalCheckpoints(connection: Connection): WalCheckpoints {
  let commits = 0;
  let thread: Worker | undefined;
  /** While the thread works. */
  let copying: PromiseWithResolvers<void> | undefined;

  function ended(): void {
    copying?.resolve();
    copying = undefined;
  }

  /** Kept from its first use on: to start one takes 40 ms of a processor. */
  function start(): Worker {
    const started = new Worker(THREAD, { execArgv: [], env: {}, resourceLimits: HEAP_LIMITS });
    started.unref();
    started.on('message', ended);
    // A full or failing disk, which the commits find for themselves.
    started.on('error', () => undefined);
    started.on('exit', () => {
      thread = undefined;
      ended();
    });
    return started;
  }

  return {
    committed() {
      commits += 1;
      if (commits % LOOK_EVERY > 0 || copying) return;
      try {
        if (!isDue(connection)) return;
        thread ??= start();
        thread.postMessage(connection.file);
        copying = Promise.withResolvers();
      } catch {
        // The commit itself is stored.
      }
    },
    async [Symbol.asyncDispose]() {
      await copying?.promise;
      await thread?.terminate();
    },
  };
}

function isDue(connection: Connection): boolean {
  const { bytes, copiedBytes } = connection.log();
  return bytes >= COPIED_FROM_BYTES && bytes - copiedBytes >= LEFT_BYTES;
}
