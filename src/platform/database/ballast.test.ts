import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { openDiskSpace } from './space.ts';

/** Written in 24 pieces. */
const BALLAST_BYTES = 24 * 1024 * 1024;

it('a ballast that is given up while it is being made is none', async () => {
  const folder = temporaryFolder();
  const ballast = join(folder, 'ballast');
  const clock = manualClock();
  const space = openDiskSpace({
    databaseFile: join(folder, 'gatehouse.db'),
    ballastBytes: BALLAST_BYTES,
  });
  const stop = new AbortController();
  const kept = space.keep(clock, stop.signal).catch(() => undefined);
  while ((statSync(ballast, { throwIfNoEntry: false })?.size ?? 0) === 0)
    await new Promise((resolve) => setImmediate(resolve));
  space.release();
  while (clock.sleepers() === 0) await new Promise((resolve) => setImmediate(resolve));
  expect([existsSync(ballast), space.state().space]).toEqual([false, 'full']);
  stop.abort();
  await kept;
});
