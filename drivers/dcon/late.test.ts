/** A module whose answers come after their time: none of them counts as the answer of another module. */
import { expect, it } from 'vitest';
import type { Answer } from '../../test/drivers/bus/port.ts';
import { openTestDriver } from '../../test/drivers/dcon/driver.ts';
import type { DriverError } from '../contract/driver.ts';
import { probed } from '../contract/rs485.ts';

const I_7060 = { name: '7060', kind: 'host' } as const;
const LATE_MS = [110, 130, 150, 175, 200, 240, 300, 400];

/** The answers of module 01 come so late; `swallow`: what module 02 does not hear. */
async function openWithLatecomer(lateMs: number, swallow: RegExp) {
  const bench = await openTestDriver({ 1: I_7060, 2: I_7060 });
  await bench.clock.advance(2_000);
  bench.site.answer = (request) => {
    const text = Buffer.from(request).toString('latin1');
    if (swallow.test(text)) return null;
    const bytes = bench.modules.answer(request);
    return bytes instanceof Uint8Array && text.slice(1, 3) === '01' ? { bytes, turnaroundMs: lateMs } : bytes;
  };
  const pulse = (address: number) =>
    bench
      .settled(bench.execute('pulse', { hwId: `lobby-0${address}`, relay: 0, milliseconds: 4_000 }), 20_000)
      .then(
        () => 'confirmed',
        (error: DriverError) => error.code,
      );
  return { bench, pulse };
}

it.each(LATE_MS)(
  'a pulse that a module did not hear is not confirmed by one that is %i ms late',
  async (lateMs) => {
    for (const waitMs of [0, 30, 70, 110, 160, 210]) {
      const { bench, pulse } = await openWithLatecomer(lateMs, /^#021001/);
      await using _ = bench;
      const other = pulse(1);
      await bench.clock.advance(waitMs);
      expect(await pulse(2)).not.toBe('confirmed');
      await other;
      expect(bench.modules.module(2).now().outputs).toBe(0);
    }
  },
);

it.each(LATE_MS)('a pulse that closed its relay is not denied by one that is %i ms late', async (lateMs) => {
  for (const waitMs of [0, 40, 90, 140, 190, 240]) {
    const { bench, pulse } = await openWithLatecomer(lateMs, /^never/);
    await using _ = bench;
    await bench.clock.advance(200 + waitMs);
    expect(await pulse(2)).toBe('confirmed');
    expect(bench.modules.module(2).now().outputs).toBe(1);
  }
});

it.each(LATE_MS)('what a module shows is its own, when another one is %i ms late', async (lateMs) => {
  const { bench } = await openWithLatecomer(lateMs, /^never/);
  await using _ = bench;
  bench.modules.module(1).inputs = 0b11;
  for (let time = 0; time < 600; time += 1) {
    await bench.clock.advance(10);
    expect(bench.report('lobby-02').levels).toMatchObject({ input0: false, input1: false });
  }
  expect(bench.events.filter(({ data }) => JSON.stringify(data).includes('lobby-02'))).toEqual([]);
});

it('a safety watchdog that ran out is not noted as fed by late answers of another module', async () => {
  const bench = await openTestDriver({ 1: I_7060, 2: { name: '4068', kind: 'safety' } });
  await using _ = bench;
  bench.modules.module(2).runsOutOnce = true;
  await bench.clock.advance(2_000);
  let isHeard = false;
  let isLate = false;
  let late: Answer = null;
  // Module 01 answers each other time so late that module 02 is asked meanwhile, which hears nothing.
  bench.site.answer = (request) => {
    const text = Buffer.from(request).toString('latin1');
    if (isHeard) return bench.modules.answer(request);
    if (text.startsWith('$026')) {
      const answer = late;
      late = null;
      return answer;
    }
    if (text.slice(1, 3) === '02') return null;
    isLate = text.startsWith('$016') && !isLate;
    if (!isLate) return bench.modules.answer(request);
    late = bench.modules.answer(request);
    return null;
  };
  await bench.clock.advance(15_000);
  isHeard = true;
  const pulse = { hwId: 'lobby-02', relay: 0, milliseconds: 4_000 };
  await bench.settled(bench.execute('pulse', pulse), 20_000).catch(() => undefined);
  bench.site.answer = () => null;
  await bench.clock.advance(30_000);
  expect(bench.modules.module(2).now().outputs).toBe(0);
});

it.each(LATE_MS)('a scan takes no pins that come %i ms late for a name', async (lateMs) => {
  const bench = await openTestDriver({ 1: I_7060 });
  await using _ = bench;
  Object.assign(bench.modules.module(1), { inputs: 0x22 });
  await bench.clock.advance(2_000);
  bench.site.answer = (request) => {
    const text = Buffer.from(request).toString('latin1');
    const bytes = bench.modules.answer(request);
    return bytes instanceof Uint8Array && text.startsWith('$016') ? { bytes, turnaroundMs: lateMs } : bytes;
  };
  for (let times = 0; times < 20; times += 1) {
    await bench.clock.advance(37);
    // The outputs are off: `!002200` begins with the address 00.
    const asked = bench.execute('probe', { addresses: [0], repeats: 2 });
    const { results } = probed.parse(await bench.settled(asked));
    expect(results).toMatchObject([{ address: 0, identity: null }]);
  }
});
