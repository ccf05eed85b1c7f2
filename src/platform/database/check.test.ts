/** Damage of a large database: the start does not read all of it, the check in the background does. */
import { closeSync, fstatSync, openSync, statSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { silentLog } from '../log.ts';
import { type Checker, openChecker } from './checker.ts';
import { openDatabase } from './database.ts';

const LARGE_BYTES = 10_000_000;
const MINUTE_MS = 60_000;

const open = (file: string, fullCheck = false) =>
  openDatabase({ file, fullCheck, monotonic: () => 0, failed: () => {} });

async function largeFile(): Promise<string> {
  const file = join(temporaryFolder(), 'gatehouse.db');
  await using database = await open(file);
  const insert = database.prepare<[string]>(
    `INSERT INTO audit (at, actor_id, actor, action, object, outcome, detail, correlation_id, mac)
     VALUES (0, '', '', ?, '', '', '{}', '', x'00')`,
  );
  await database.commit(() => {
    for (let row = 0; row < LARGE_BYTES / 10_000; row += 1) insert.run('x'.repeat(10_000));
  });
  return file;
}

/** Some pages in the middle: of rows that are neither the oldest nor the newest. */
function damageMiddle(file: string): void {
  const descriptor = openSync(file, 'r+');
  const { size } = fstatSync(descriptor);
  writeSync(descriptor, Buffer.alloc(64 * 1_024, 0x5a), 0, 64 * 1_024, Math.floor(size / 2_048) * 1_024);
  closeSync(descriptor);
}

function openTestChecker(file: string, clock: ManualClock): Checker {
  return openChecker({ file, execPath: process.execPath, clock, log: silentLog });
}

/** Starts the checker, and returns its state once its first check has ended. */
async function checked(file: string) {
  const clock = manualClock();
  const checker = openTestChecker(file, clock);
  const stop = new AbortController();
  const kept = checker.keep(stop.signal).catch(() => undefined);
  expect(checker.state()).toEqual({ verdict: 'pending', endedAt: null, ageSeconds: null, findings: [] });
  await clock.advance(MINUTE_MS);
  await expect.poll(() => checker.state().verdict, { timeout: 30_000 }).not.toBe('pending');
  await clock.advance(MINUTE_MS);
  const state = checker.state();
  stop.abort();
  await kept;
  return state;
}

it('is not read at the start, and is found by the check in the background and before a restore', async () => {
  const file = await largeFile();
  expect(statSync(file).size).toBeGreaterThan(LARGE_BYTES);
  expect(await checked(file)).toEqual({
    verdict: 'sound',
    endedAt: expect.stringMatching(/Z$/),
    ageSeconds: 60,
    findings: [],
  });
  damageMiddle(file);
  await (await open(file))[Symbol.asyncDispose]();
  const { verdict, findings } = await checked(file);
  expect(verdict).toBe('damaged');
  expect(findings.length).toBeGreaterThan(0);
  await expect(open(file, true)).rejects.toThrow(/is damaged/);
});

it('is found at the start when the end of the file is gone', async () => {
  const file = await largeFile();
  const { size } = statSync(file);
  truncateSync(file, Math.floor(size / 2_048) * 1_024);
  await expect(open(file)).rejects.toThrow(/is damaged/);
});

it('is not said of a file that could not be checked', async () => {
  const state = await checked(join(temporaryFolder(), 'missing.db'));
  expect(state).toMatchObject({ verdict: 'failed', findings: [expect.stringContaining('cannot be read')] });
});
