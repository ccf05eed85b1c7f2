/** What a pulse is told to have come to, and that it ends in time. On a manual clock. */
import { expect, it } from 'vitest';
import { openTestDriver } from './test-driver.ts';

const I_7060 = { name: '7060', kind: 'host' } as const;
/** Less than an answer is waited for: an exchange that is on the wire, and the request. */
const OPENS_WITHIN_MS = 100;
const pulse = (milliseconds: number, relay = 0) => ({ hwId: 'lobby-01', relay, milliseconds });

it.each([
  ['was carried out and was opened by a power cut', /^#01100[01]/, 'OUTCOME_UNKNOWN'],
  ['was not heard', /^never/, 'NO_REPLY'],
])('that %s is told so', async (_, heard, code) => {
  await using bench = await openTestDriver({ 1: I_7060 });
  await bench.clock.advance(2_000);
  const module = bench.modules.module(1);
  bench.site.answer = (request) => {
    const text = Buffer.from(request).toString('latin1');
    if (!text.startsWith('#011001')) return bench.modules.answer(request);
    if (!heard.test(text)) return null;
    bench.modules.answer(request);
    module.restart();
    return null;
  };
  const failed = bench.execute('pulse', pulse(10_000)).catch((error: unknown) => error);
  module.heard.length = 0;
  expect(await bench.settled(failed)).toMatchObject({ code });
  expect(module.now().outputs).toBe(0);
  await bench.clock.advance(3_000);
  // A module tells once that it was restarted.
  expect(module.heard).toContain('~013164');
});

it('ends in time while another output of its module does not answer', async () => {
  await using bench = await openTestDriver({ 1: I_7060 });
  await bench.clock.advance(2_000);
  await bench.settled(bench.execute('pulse', pulse(1_000)));
  const endsAt = bench.clock.monotonic() + 1_000;
  const module = bench.modules.module(1);
  bench.site.answer = (request) =>
    Buffer.from(request).toString('latin1').startsWith('#011101') ? null : bench.modules.answer(request);
  await bench.clock.advance(850);
  const other = bench.execute('pulse', pulse(1_000, 1)).catch(() => undefined);
  await bench.clock.advance(endsAt + 150 - bench.clock.monotonic());
  expect(module.now().outputs).toBe(0);
  await bench.settled(other);
});

it('lasts no longer when the answer is lost and the request is repeated', async () => {
  await using bench = await openTestDriver({ 1: I_7060 });
  await bench.clock.advance(2_000);
  const module = bench.modules.module(1);
  let onAt: number | undefined;
  bench.site.answer = (request) => {
    const answer = bench.modules.answer(request);
    const isFirst = Buffer.from(request).toString('latin1').startsWith('#011001') && onAt === undefined;
    if (isFirst) onAt = bench.clock.monotonic();
    return isFirst ? null : answer;
  };
  await bench.settled(bench.execute('pulse', pulse(2_000)));
  expect(bench.toldAt('#011001').length).toBeGreaterThan(1);
  await bench.clock.advance((onAt ?? 0) + 1_999 - bench.clock.monotonic());
  expect(module.now().outputs).toBe(1);
  await bench.clock.advance(OPENS_WITHIN_MS);
  expect(module.now().outputs).toBe(0);
});
