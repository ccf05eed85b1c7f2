/** An fsync that fails: what was answered as not stored is not there after a restart, or the answer says that no one knows. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../src/platform/database/database.ts';
import { FOREVER, failingDisk, HAS_COMPILER } from './faults/failing-disk.ts';
import { temporaryFolder } from './temporary.ts';

interface Outcome {
  stored: boolean;
  code?: string;
  message?: string;
  details?: { code: string }[];
  outcomeUnknown: number;
}

/** A process that commits lines, on a disk whose fsync of the log fails as often as it is set to. */
async function writer() {
  const folder = temporaryFolder();
  const { environment, fail } = failingDisk(folder);
  const file = join(folder, 'data', 'gatehouse.db');
  const child = spawn(process.execPath, [join(import.meta.dirname, 'faults/line-writer.ts'), file], {
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  await lines.next();
  return {
    fail,
    async commit(text: string): Promise<Outcome> {
      child.stdin.write(`${text}\n`);
      return JSON.parse((await lines.next()).value as string) as Outcome;
    },
    /** Kills the process, and returns what the next one finds. */
    async restart(): Promise<string[]> {
      const closed = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGKILL');
      await closed;
      await using database = await openDatabase({ file, monotonic: () => 0, failed: () => {} });
      const rows = database.prepare<[], { action: string }>('SELECT action FROM audit ORDER BY seq').all();
      return rows.map(({ action }) => action);
    },
  };
}

describe.skipIf(!HAS_COMPILER)('a commit whose fsync fails', () => {
  it('leaves nothing that a later start could find, before it is refused', async () => {
    const { fail, commit, restart } = await writer();
    expect(await commit('kept')).toMatchObject({ stored: true });
    fail(1);
    expect(await commit('refused')).toMatchObject({
      stored: false,
      code: 'STORAGE_UNAVAILABLE',
      message: expect.stringContaining('nothing was changed'),
      outcomeUnknown: 0,
    });
    expect(await restart()).toEqual(['kept']);
  });

  it('says that the outcome is unknown while the disk takes no removal either, and decides it later', async () => {
    const { fail, commit, restart } = await writer();
    expect(await commit('kept')).toMatchObject({ stored: true });
    fail(FOREVER);
    expect(await commit('doubtful')).toMatchObject({
      stored: false,
      details: [{ code: 'OUTCOME_UNKNOWN' }],
      outcomeUnknown: 1,
    });
    // Nothing is tried while it is unknown.
    expect(await commit('refused')).toMatchObject({
      stored: false,
      message: expect.stringContaining('nothing was changed'),
      outcomeUnknown: 1,
    });
    fail(0);
    expect(await commit('later')).toMatchObject({ stored: true, outcomeUnknown: 0 });
    expect(await restart()).toEqual(['kept', 'later']);
  });
});
