import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { openDatabase } from './database.ts';

/** Of one large commit, half of it in an index; four are more than the log holds before it is copied, and less than a commit copies itself. */
const LARGE_BYTES = 3_400_000;

async function setUp() {
  const file = join(temporaryFolder(), 'test.db');
  const database = await openDatabase({ file, monotonic: () => 0, failed: () => {} });
  onTestFinished(() => database[Symbol.asyncDispose]());
  const insert = database.prepare<[number]>(
    "INSERT INTO zigbee_event (link, id) VALUES ('gateway', printf('%d', random()) || hex(zeroblob(? / 4)))",
  );
  const log = database.prepare<[], { log: number; checkpointed: number }>('PRAGMA wal_checkpoint(NOOP)');
  return {
    async commit(times: number, bytes: number) {
      for (let index = 0; index < times; index += 1) await database.commit(() => insert.run(bytes));
    },
    log: () => log.get() ?? { log: -1, checkpointed: -1 },
  };
}

it('copies a long log into the file in a thread, time after time, so that no commit does it', async () => {
  const { commit, log } = await setUp();
  for (let round = 0; round < 2; round += 1) {
    await commit(4, LARGE_BYTES);
    const { log: pages, checkpointed } = log();
    expect(checkpointed).toBe(0);
    await commit(12, 1);
    await vi.waitFor(() => expect(log().checkpointed).toBe(log().log));
    expect(log().log).toBeGreaterThan(pages);
  }
  await commit(1, 1);
  expect(log().log).toBeLessThan(100);
});
