/** A module whose answers come after their time: none of them counts as the answer of another module. */
import { expect, it } from 'vitest';
import type { DriverError } from '../driver.ts';
import { openTestDriver } from './test-driver.ts';

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
