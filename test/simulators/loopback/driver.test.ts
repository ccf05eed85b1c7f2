import { describe, expect, it } from 'vitest';
import type { DriverEvent, Plain, StateReport } from '../../../drivers/contract/driver.ts';
import { manualClock } from '../../manual-clock.ts';
import { openSimulatedLink } from './driver.ts';

const never = new AbortController().signal;
const log = { debug() {}, info() {}, warn() {}, error() {} };

async function opened(options: Plain = {}) {
  const clock = manualClock();
  const reports: StateReport[] = [];
  const events: DriverEvent[] = [];
  const driver = await openSimulatedLink(
    options,
    {
      linkId: 'desk',
      clock,
      log,
      report: (report) => reports.push(report),
      emit: async (event) => void events.push(event),
    },
    never,
  );
  const execute = (kind: string, data: Plain, signal = never) =>
    driver.execute({ kind, data, deadline: clock.monotonic() + 1_000 }, signal);
  return { clock, driver, reports, events, execute };
}

describe('a simulated link', () => {
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

  it('breaks on command, as a pulled cable would', async () => {
    const { driver, execute } = await opened();
    const run = driver.run(never).catch((error: unknown) => error);
    expect(await execute('break', null)).toBe(null);
    expect(await run).toMatchObject({ code: 'LINK_LOST' });
  });

  it('echoes, emits and fails on command', async () => {
    const { events, execute } = await opened();
    expect(await execute('echo', { a: [1] })).toEqual({ a: [1] });
    expect(await execute('emit', { prefix: 'p', count: 2 })).toEqual({ count: 2 });
    expect(events).toEqual([0, 1].map((index) => ({ id: `p-${index}`, kind: 'emitted', data: { index } })));
    await expect(execute('fail', { code: 'REFUSED' })).rejects.toMatchObject({ code: 'REFUSED' });
  });

  it('hangs until its signal fires, also when it has fired before', async () => {
    const { execute } = await opened();
    await expect(execute('hang', null, AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough');
    const stop = new AbortController();
    const hanging = execute('hang', null, stop.signal);
    stop.abort(new Error('later'));
    await expect(hanging).rejects.toThrow('later');
  });

  it.each([
    ['fail', {}],
    ['fail', { code: 'LINK_LOST' }],
    ['emit', { prefix: '', count: 1 }],
    ['emit', { prefix: 'p', count: 10_001 }],
    ['emit', null],
    ['unlock', null],
  ])('refuses the command %s with %j', async (kind, data) => {
    const { execute } = await opened();
    await expect(execute(kind, data)).rejects.toMatchObject({ code: 'INVALID_COMMAND' });
  });

  it.each([null, [], { reportEveryMs: 0 }, { reportEveryMs: '1s' }, { interval: 1_000 }])(
    'refuses the options %j',
    async (options) => {
      await expect(opened(options)).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
    },
  );
});
