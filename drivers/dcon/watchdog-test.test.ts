/** A watchdog is proved by silence: no command to the module, and no `~**` to all. On a manual clock, watchdog 10 s. */
import { expect, it } from 'vitest';
import { openTestDriver } from '../../test/drivers/dcon/driver.ts';

const I_7060 = { name: '7060', kind: 'host' } as const;
const ADAM_4068 = { name: '4068', kind: 'safety', safetyDigits: 4 } as const;
const TEST = { hwId: 'lobby-01', relay: 2 };
const PATIENCE_MS = 60_000;

it.each([I_7060, ADAM_4068])('of a $name is proved, and the module is used again', async (module) => {
  await using bench = await openTestDriver({ 1: module, 2: I_7060 });
  await bench.clock.advance(5_000);
  const tested = bench.execute('testWatchdog', TEST, { withinMs: PATIENCE_MS });
  await bench.clock.advance(2_000);
  expect(bench.modules.module(1).now().outputs).toBe(0b100);
  expect(bench.report('lobby-01')).toMatchObject({ connected: false });
  const heard = bench.modules.module(1).heard.length;
  const fed = bench.sentAt('~**').length;
  await bench.clock.advance(9_000);
  expect(bench.modules.module(1).now().outputs).toBe(0);
  expect(bench.modules.module(1).heard.length).toBe(heard);
  expect(bench.sentAt('~**').length).toBe(fed);
  await expect(bench.execute('probe', { addresses: [1], repeats: 1 })).rejects.toMatchObject({
    code: 'BUSY',
  });
  expect(await bench.settled(tested, PATIENCE_MS)).toEqual({
    relay: 2,
    waitedMilliseconds: 12_500,
    proof: bench.report('lobby-01').watchdog?.proof,
  });
  await bench.clock.advance(10_000);
  for (const hwId of ['lobby-01', 'lobby-02'])
    expect(bench.report(hwId)).toMatchObject({ connected: true, watchdog: { milliseconds: 10_000 } });
  expect(bench.modules.module(1).now()).toEqual({ outputs: 0, timedOut: false });
  const pulse = { hwId: 'lobby-01', relay: 2, milliseconds: 1_000 };
  expect(await bench.settled(bench.execute('pulse', pulse))).toMatchObject({ timedBy: 'gateway' });
});

it('is no watchdog when the output stays on, which is then switched off', async () => {
  await using bench = await openTestDriver({ 1: ADAM_4068 });
  await bench.clock.advance(5_000);
  const tested = bench.execute('testWatchdog', TEST, { withinMs: PATIENCE_MS });
  tested.catch(() => undefined);
  await bench.clock.advance(1_000);
  bench.modules.module(1).isUnguarded = true;
  await expect(bench.settled(tested, PATIENCE_MS)).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringMatching(/still on .* its watchdog opens nothing/),
  });
  expect(bench.modules.module(1).now().outputs).toBe(0);
});

it('that runs out once only is no proof', async () => {
  await using bench = await openTestDriver({ 1: ADAM_4068 });
  await bench.clock.advance(5_000);
  const tested = bench.execute('testWatchdog', TEST, { withinMs: PATIENCE_MS });
  tested.catch(() => undefined);
  await bench.clock.advance(11_000);
  expect(bench.modules.module(1).now().outputs).toBe(0);
  bench.modules.module(1).isUnguarded = true;
  await expect(bench.settled(tested, PATIENCE_MS)).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringMatching(/still on/),
  });
  expect(bench.modules.module(1).now().outputs).toBe(0);
});

it.each([I_7060, ADAM_4068])('of a $name that was without power meanwhile is no proof', async (module) => {
  await using bench = await openTestDriver({ 1: module });
  await bench.clock.advance(5_000);
  const tested = bench.execute('testWatchdog', TEST, { withinMs: PATIENCE_MS });
  tested.catch(() => undefined);
  await bench.clock.advance(3_000);
  bench.modules.module(1).restart();
  expect(bench.modules.module(1).now().outputs).toBe(0);
  await expect(bench.settled(tested, PATIENCE_MS)).rejects.toMatchObject({
    code: 'OUTCOME_UNKNOWN',
    message: expect.stringMatching(/is off, but .* Nothing is proven/),
  });
});

it('is not proved where the answer is lost that would report a restart', async () => {
  await using bench = await openTestDriver({ 1: ADAM_4068 });
  await bench.clock.advance(5_000);
  const tested = bench.execute('testWatchdog', TEST, { withinMs: PATIENCE_MS });
  tested.catch(() => undefined);
  await bench.clock.advance(3_000);
  bench.modules.module(1).restart();
  let isLost = false;
  bench.site.answer = (request) => {
    const answer = bench.modules.answer(request);
    const isFirst = !isLost && Buffer.from(request).toString('latin1').startsWith('$015');
    isLost ||= isFirst;
    return isFirst ? null : answer;
  };
  await expect(bench.settled(tested, PATIENCE_MS)).rejects.toMatchObject({
    code: 'OUTCOME_UNKNOWN',
    message: expect.stringMatching(/is off, but .* Nothing is proven/),
  });
});

it('is not tested while another module of the bus has an output on, and none is fired during the test', async () => {
  await using bench = await openTestDriver({ 1: I_7060, 2: I_7060 });
  await bench.clock.advance(5_000);
  const other = { hwId: 'lobby-02', relay: 1, milliseconds: 8_000 };
  await bench.settled(bench.execute('pulse', other));
  await expect(bench.settled(bench.execute('testWatchdog', TEST, { withinMs: 1_000 }))).rejects.toMatchObject(
    {
      code: 'BUSY',
      message: expect.stringMatching(/module 02 has an output on/),
    },
  );
  // Nothing of the refused test shortens it.
  await bench.clock.advance(6_000);
  expect(bench.modules.module(2).now().outputs).toBe(0b10);
  await bench.clock.advance(5_000);
  const tested = bench.execute('testWatchdog', TEST, { withinMs: PATIENCE_MS });
  await bench.clock.advance(2_000);
  await expect(bench.settled(bench.execute('pulse', other))).rejects.toMatchObject({ code: 'BUSY' });
  const second = bench.execute('testWatchdog', { hwId: 'lobby-02', relay: 1 });
  await expect(bench.settled(second)).rejects.toMatchObject({ code: 'BUSY' });
  expect(bench.modules.module(2).now().outputs).toBe(0);
  expect(await bench.settled(tested, PATIENCE_MS)).toMatchObject({ relay: 2 });
});
