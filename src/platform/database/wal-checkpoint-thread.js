/**
 * The thread of wal-checkpoints.ts: for each message copies the write-ahead log into the database file of that name, on a
 * connection of its own, and answers. Plain JavaScript, for the reason that start.js gives; beside connection.ts the only importer of
 * better-sqlite3.
 */
import { parentPort } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';

/**
 * What is committed while a pass runs is for the next one, which is the shorter. The log begins again at its start once a
 * pass has found nothing left. Where each pass is overtaken, the limit of connection.ts ends it.
 */
const PASSES_MAX = 5;

parentPort?.on('message', (/** @type {string} */ file) => {
  const database = new Sqlite(file, { fileMustExist: true });
  try {
    database.pragma('synchronous = FULL');
    for (let pass = 0; pass < PASSES_MAX; pass += 1) {
      const [done] = /** @type {{ log: number, checkpointed: number }[]} */ (
        database.pragma('wal_checkpoint(PASSIVE)')
      );
      if (!done || done.checkpointed >= done.log) break;
    }
  } finally {
    database.close();
  }
  parentPort?.postMessage('copied');
});
