/** Numbers that others remember: no restore, nor a start after it, may give one of them again. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { backUp, restore, rowsIn, shell, systemOf } from '../../test/cli/archives.ts';
import { openTestGateway, type TestGateway } from '../../test/gateway.ts';
import { openTestLog } from '../../test/services/events/log.ts';
import { EARLIEST_MS } from '../platform/known-time.ts';
import { countersFrom } from './restore-counters.ts';

vi.setConfig({ testTimeout: 240_000 });

const MINUTE_MS = 60_000;

/** Records events of the encoder as the daemon does, and returns the sequences of all that it has now. */
async function recorded({ dataDirectory }: TestGateway, encoderId: string, count: number) {
  {
    await using log = await openTestLog({ folder: dataDirectory });
    await log.record(1, count, encoderId);
  }
  return rowsIn<{ encoder_id: string; sequence: number }>(
    join(dataDirectory, 'gatehouse.db'),
    'SELECT encoder_id, sequence FROM event ORDER BY seq',
  ).flatMap((row) => (row.encoder_id === encoderId ? [row.sequence] : []));
}

/** The clock of the next restore. */
async function restoredAfter(minutes: number, gateway: TestGateway, archive: string) {
  using _later = vi.spyOn(shell.clock, 'now').mockReturnValue(Date.now() + minutes * MINUTE_MS);
  expect(await restore(gateway, archive), shell.written.stderr).toBe(0);
}

function lose(gateway: TestGateway, how: 'damaged' | 'missing'): void {
  const file = join(gateway.dataDirectory, 'gatehouse.db');
  for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true });
  rmSync(file);
  if (how === 'damaged') writeFileSync(file, 'rubbish '.repeat(1_000));
  expect(existsSync(file)).toBe(how === 'damaged');
}

it.each(['damaged', 'missing'] as const)(
  'gives no sequence again, nor after a second restore over a %s database',
  async (how) => {
    const gateway = await openTestGateway();
    await gateway.close();
    await recorded(gateway, 'known', 3);
    const archive = join(gateway.folder, 'copy.age');
    expect(await backUp(gateway, archive), shell.written.stderr).toBe(0);
    // One had no event in the copy.
    expect((await recorded(gateway, 'known', 4)).at(-1)).toBe(7);
    expect((await recorded(gateway, 'later', 2)).at(-1)).toBe(2);

    await restoredAfter(0, gateway, archive);
    const first = { known: await recorded(gateway, 'known', 2), later: await recorded(gateway, 'later', 2) };
    expect(first.known.slice(0, 3)).toEqual([1, 2, 3]);
    expect(first.known[3]).toBeGreaterThan(7);
    expect(first.later[0]).toBeGreaterThan(2);

    lose(gateway, how);
    await restoredAfter(1, gateway, archive);
    const second = { known: await recorded(gateway, 'known', 1), later: await recorded(gateway, 'later', 1) };
    expect(second.known.at(-1)).toBeGreaterThan(first.known.at(-1) ?? 0);
    expect(second.later[0]).toBeGreaterThan(first.later.at(-1) ?? 0);
    // A restored log goes on without leaving numbers out.
    expect((await recorded(gateway, 'later', 1)).at(-1)).toBe((second.later[0] ?? 0) + 1);
  },
);

it.each(['damaged', 'missing'] as const)(
  'starts above every start before it, also over a %s database',
  async (how) => {
    const gateway = await openTestGateway();
    const archive = join(gateway.folder, 'copy.age');
    expect(await backUp(gateway, archive), shell.written.stderr).toBe(0);
    await gateway.close();
    const started = async () => {
      const again = await openTestGateway({}, gateway.folder);
      await again.close();
      return systemOf(gateway).epoch;
    };
    await restoredAfter(0, gateway, archive);
    await started();
    const used = await started();
    lose(gateway, how);
    await restoredAfter(1, gateway, archive);
    expect(await started()).toBeGreaterThan(used);
  },
);

it('warns where the clock is behind the archive', async () => {
  const gateway = await openTestGateway();
  const archive = join(gateway.folder, 'copy.age');
  expect(await backUp(gateway, archive), shell.written.stderr).toBe(0);
  await gateway.close();
  await restoredAfter(-2, gateway, archive);
  expect(shell.written.stderr).toMatch(
    /^! The clock of this machine says .*, and the archive was made later: set it/,
  );
  await restoredAfter(0, gateway, archive);
  expect(shell.written.stderr).toBe('');
});

it('goes on above the database in place, which the clock may not reach', () => {
  const now = EARLIEST_MS + 365 * 86_400_000;
  const copy = { epoch: now / 1_000 - 500, sequence: 40 };
  const inPlace = { epoch: now / 1_000 + 5_000_000, sequence: now };
  expect(countersFrom(copy, inPlace, now)).toEqual({ epoch: inPlace.epoch + 1, sequence: now });
});

it('does not raise what an earlier restore gave beyond what the clock says', () => {
  const now = EARLIEST_MS + 365 * 86_400_000;
  const none = { epoch: 0, sequence: 0 };
  const early = countersFrom({ epoch: now / 1_000, sequence: 9 }, none, now);
  // The copy was made after that restore; it is restored ten seconds before the older one, on a blank machine.
  const late = countersFrom(early, none, now + 10_000);
  expect(countersFrom(none, none, now + 20_000).epoch).toBeGreaterThan(late.epoch);
  expect(late.epoch).toBeGreaterThan(early.epoch);
});

it('grows with each restore where the clock is behind what the copy has used', () => {
  const copy = { epoch: 2_500_000_000, sequence: 10 ** 12 / 2 };
  const none = { epoch: 0, sequence: 0 };
  const first = countersFrom(copy, none, EARLIEST_MS);
  const second = countersFrom(copy, none, EARLIEST_MS + MINUTE_MS);
  expect(first.epoch).toBeGreaterThan(copy.epoch);
  expect(second.epoch).toBeGreaterThan(first.epoch);
  expect(second.sequence).toBeGreaterThan(first.sequence);
});
