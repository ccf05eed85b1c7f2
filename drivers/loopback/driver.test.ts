import { describe, expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import type { Plain, StateReport } from '../contract/driver.ts';
import { DRIVERS } from '../index.ts';
import { openLoopback } from './driver.ts';

const never = new AbortController().signal;
const log = { debug() {}, info() {}, warn() {}, error() {} };

async function opened(options: Plain = {}) {
  const clock = manualClock();
  const reports: StateReport[] = [];
  const report = (one: StateReport) => void reports.push(one);
  const context = { linkId: 'desk', clock, log, report, emit: async () => {} };
  const driver = await openLoopback(options, context, never);
  const execute = (kind: string, data: Plain) =>
    driver.execute({ kind, data, deadline: clock.monotonic() + 1_000 }, never);
  return { clock, driver, reports, execute };
}

describe('a loopback link', () => {
  it('is in the table of drivers', async () => {
    expect(await DRIVERS.get('loopback')?.()).toBe(openLoopback);
  });

  it('reports at its interval until its signal fires', async () => {
    const { clock, driver, reports } = await opened({ reportEveryMs: 500 });
    const stop = new AbortController();
    const run = driver.run(stop.signal).catch((error: unknown) => error);
    await clock.advance(1_100);
    stop.abort(new Error('enough'));
    expect(await run).toMatchObject({ message: 'enough' });
    expect(reports).toEqual([1, 2, 3].map((count) => ({ subject: 'counter', state: { count } })));
    expect(clock.sleepers()).toBe(0);
  });

  it('echoes, and refuses every other command', async () => {
    const { execute } = await opened();
    expect(await execute('echo', { a: [1] })).toEqual({ a: [1] });
    await expect(execute('unlock', null)).rejects.toMatchObject({ code: 'INVALID_COMMAND' });
  });

  it.each([null, [], { reportEveryMs: 0 }, { reportEveryMs: '1s' }, { interval: 1_000 }])(
    'refuses the options %j',
    async (options) => {
      await expect(opened(options)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    },
  );
});
