/** Outputs are switched off at their time, and what is shown while that fails. On a manual clock. */
import { expect, it } from 'vitest';
import { openTestDriver } from '../../test/drivers/dcon/driver.ts';
import { sealed } from '../../test/drivers/dcon/modules.ts';

const I_7060 = { name: '7060', kind: 'host' } as const;
/** At 1200 baud: the answer from which the time counts, an exchange without an answer that is under way, and the request. */
const OPENS_WITHIN_MS = 700;

const pulse = (milliseconds: number) => ({ hwId: 'lobby-01', relay: 0, milliseconds });
const textOf = (request: Uint8Array) => Buffer.from(request).toString('latin1').slice(0, -3);

it('an output is off when its stand-open has ended, though its module is being brought up', async () => {
  await using bench = await openTestDriver({ 1: I_7060, 2: I_7060 }, { options: { baudRate: 1_200 } });
  const { clock, modules } = bench;
  const module = modules.module(1);
  await clock.advance(20_000);
  await bench.settled(bench.execute('pulse', pulse(20_000)), 20_000);
  const endsAt = (bench.sentAt('#011001')[0] ?? 0) + 20_000;
  // It says at each poll that it was reset, and so is brought up again and again.
  bench.site.answer = (request) => (textOf(request) === '$015' ? sealed('!011') : modules.answer(request));
  module.heard.length = 0;
  for (let waited = 0; !module.heard.includes('$01F') && waited < 10_000; waited += 10)
    await clock.advance(10);
  const caller = new AbortController();
  const renewal = bench
    .execute('pulse', pulse(20_000), { signal: caller.signal, withinMs: 5_000 })
    .catch((error: unknown) => error);
  await clock.advance(300);
  caller.abort(new Error('it stands open no more'));
  await bench.settled(renewal);
  expect(module.heard).not.toContain('#011001');
  await clock.advance(endsAt - clock.monotonic() - 1);
  expect(module.now().outputs).toBe(1);
  await clock.advance(OPENS_WITHIN_MS);
  expect(module.now().outputs).toBe(0);
});

it('an output that stays on is shown as such until it is read off', async () => {
  await using bench = await openTestDriver({ 1: I_7060 });
  const { clock, modules } = bench;
  const fault = () => bench.report('lobby-01').relayFault;
  const alarms = () => bench.events.filter(({ kind }) => kind === 'alarm').map(({ data }) => data);
  await clock.advance(2_000);
  await bench.settled(bench.execute('pulse', pulse(1_000)));
  modules.module(1).stuck = 1;
  expect(fault()).toBeNull();
  await clock.advance(2_000);
  expect(fault()).toMatchObject({ relay: 0, fault: 'stillClosed' });
  expect(alarms()).toMatchObject([{ hwId: 'lobby-01', alarm: 'relay', raised: true }]);
  modules.module(1).stuck = 0;
  await clock.advance(2_000);
  expect(fault()).toBeNull();
  expect(alarms()).toMatchObject([{ raised: true }, { hwId: 'lobby-01', alarm: 'relay', raised: false }]);
});

it('an output that cannot be read after its pulse is shown as such', async () => {
  await using bench = await openTestDriver({ 1: I_7060 });
  const { clock, modules } = bench;
  const module = modules.module(1);
  await clock.advance(2_000);
  await bench.settled(bench.execute('pulse', pulse(1_000)));
  bench.site.answer = (request) => {
    const answer = modules.answer(request);
    return textOf(request) === '$016' ? null : answer;
  };
  await clock.advance(2_000);
  expect(module.now().outputs).toBe(0);
  expect(bench.report('lobby-01').relayFault).toMatchObject({ relay: 0, fault: 'notRead' });
  bench.site.answer = modules.answer;
  await clock.advance(5_000);
  expect(bench.report('lobby-01').relayFault).toBeNull();
});

it('an output that stays on is left to a watchdog that any request feeds', async () => {
  await using bench = await openTestDriver({ 1: { name: '4068', kind: 'safety' }, 2: I_7060 });
  const { clock, modules } = bench;
  const module = modules.module(1);
  await clock.advance(2_000);
  await bench.settled(bench.execute('pulse', pulse(1_000)));
  module.stuck = 1;
  await clock.advance(4_000);
  expect(bench.report('lobby-01')).toMatchObject({ connected: false, relayFault: { fault: 'stillClosed' } });
  const asked = module.heard.length;
  const refused = { pulse: pulse(1_000), probe: { addresses: [1], repeats: 1 } };
  for (const [kind, data] of Object.entries(refused))
    await expect(bench.settled(bench.execute(kind, data))).rejects.toMatchObject({
      code: kind === 'pulse' ? 'DEVICE_OFFLINE' : 'BUSY',
    });
  await clock.advance(8_000);
  expect(module.heard).toHaveLength(asked);
  module.stuck = 0;
  await clock.advance(4_000);
  expect(module.now().outputs).toBe(0);
  expect(module.heard.length).toBeGreaterThan(asked);
  expect(bench.report('lobby-01')).toMatchObject({ connected: true, relayFault: null });
  await bench.settled(bench.execute('pulse', pulse(1_000)));
});
