/** What is reported of a pulse, and that it ends in time. On a manual clock. */
import { expect, it } from 'vitest';
import { openTestDriver } from '../../test/drivers/dcon/driver.ts';
import { sealed } from '../../test/drivers/dcon/modules.ts';

const I_7060 = { name: '7060', kind: 'host' } as const;
/** Less than an answer is waited for: an exchange that is on the wire, and the request. */
const OPENS_WITHIN_MS = 100;
/** So that a poll of each kind comes into the middle of a pulse. */
const PHASES = 80;
const pulse = (milliseconds: number, relay = 0) => ({ hwId: 'lobby-01', relay, milliseconds });

it('that was carried out and was opened by a power cut is unknown, and is not sent again', async () => {
  await using bench = await openTestDriver({ 1: I_7060 });
  await bench.clock.advance(2_000);
  const module = bench.modules.module(1);
  bench.site.answer = (request) => {
    const answer = bench.modules.answer(request);
    if (!Buffer.from(request).toString('latin1').startsWith('#011001')) return answer;
    module.restart();
    return null;
  };
  const failed = bench.execute('pulse', pulse(10_000)).catch((error: unknown) => error);
  module.heard.length = 0;
  expect(await bench.settled(failed)).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(module.now().outputs).toBe(0);
  await bench.clock.advance(3_000);
  expect(bench.sentAt('#011001')).toHaveLength(1);
  // A module reports once that it was restarted.
  expect(module.heard).toContain('~013164');
});

it('whose watchdog ran out after a lost answer is not sent again', async () => {
  await using bench = await openTestDriver({ 1: I_7060 });
  await bench.clock.advance(2_000);
  const module = bench.modules.module(1);
  let isOut = false;
  bench.site.answer = (request) => {
    const text = Buffer.from(request).toString('latin1');
    const answer = bench.modules.answer(request);
    if (text.startsWith('~01')) return isOut && text.startsWith('~010') ? sealed('!0104') : answer;
    if (!text.startsWith('#011001')) return answer;
    module.outputs = 0;
    isOut = true;
    return null;
  };
  const failed = bench.execute('pulse', pulse(10_000)).catch((error: unknown) => error);
  expect(await bench.settled(failed)).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(bench.sentAt('#011001')).toHaveLength(1);
});

it('is not sent again where a poll has taken what the module says of a restart', async () => {
  await using bench = await openTestDriver({ 1: I_7060, 2: I_7060 });
  await bench.clock.advance(2_000);
  const module = bench.modules.module(1);
  let asked = 0;
  bench.site.answer = (request) => {
    const text = Buffer.from(request).toString('latin1');
    const answer = bench.modules.answer(request);
    if (text.startsWith('$015')) asked += 1;
    if (!text.startsWith('#011001')) return answer;
    module.restart();
    return null;
  };
  for (let phase = 0; phase < PHASES; phase += 1) {
    await bench.clock.advance(2_000 + 10 * phase);
    const before = bench.sentAt('#011001').length;
    // Four orders in a row let a poll have its turn.
    const others = [0, 1, 2].map((relay) =>
      bench.execute('pulse', { ...pulse(300, relay), hwId: 'lobby-02' }).catch(() => undefined),
    );
    const failed = bench.execute('pulse', pulse(1_000)).catch((error: unknown) => error);
    expect(await bench.settled(failed)).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(bench.sentAt('#011001').length - before, `phase ${phase}`).toBe(1);
    for (const one of others) await bench.settled(one);
  }
  expect(asked).toBeGreaterThan(0);
});

it('that was never heard is sent again, and said not to be switched', async () => {
  await using bench = await openTestDriver({ 1: I_7060 });
  await bench.clock.advance(2_000);
  bench.site.answer = (request) =>
    Buffer.from(request).toString('latin1').startsWith('#011001') ? null : bench.modules.answer(request);
  const failed = bench.execute('pulse', pulse(10_000)).catch((error: unknown) => error);
  expect(await bench.settled(failed)).toMatchObject({ code: 'NO_REPLY' });
  expect(bench.sentAt('#011001')).toHaveLength(3);
});

it('is sent once to a module that does not report a restart', async () => {
  await using bench = await openTestDriver({ 1: { name: '4168', kind: 'safety' } });
  await bench.clock.advance(2_000);
  bench.site.answer = (request) =>
    Buffer.from(request).toString('latin1').startsWith('#011001') ? null : bench.modules.answer(request);
  const failed = bench.execute('pulse', pulse(10_000)).catch((error: unknown) => error);
  expect(await bench.settled(failed)).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(bench.sentAt('#011001')).toHaveLength(1);
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

it.each([
  ['the answer is lost', 1],
  ['the request is not heard and is repeated', 2],
])('lasts no longer when %s', async (_, requests) => {
  await using bench = await openTestDriver({ 1: I_7060 });
  await bench.clock.advance(2_000);
  const module = bench.modules.module(1);
  let askedAt: number | undefined;
  bench.site.answer = (request) => {
    const isFirst = Buffer.from(request).toString('latin1').startsWith('#011001') && askedAt === undefined;
    if (isFirst) askedAt = bench.clock.monotonic();
    const answer = isFirst && requests > 1 ? null : bench.modules.answer(request);
    return isFirst ? null : answer;
  };
  await bench.settled(bench.execute('pulse', pulse(2_000)));
  expect(bench.sentAt('#011001')).toHaveLength(requests);
  await bench.clock.advance((askedAt ?? 0) + 1_999 - bench.clock.monotonic());
  expect(module.now().outputs).toBe(1);
  await bench.clock.advance(OPENS_WITHIN_MS);
  expect(module.now().outputs).toBe(0);
});
