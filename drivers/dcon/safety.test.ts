/** What opens a door, and what closes it again no matter which process dies. On a manual clock, 9600 baud, watchdog 10 s. */
import { describe, expect, it } from 'vitest';
import { openTestDriver } from '../../test/drivers/dcon/driver.ts';

const WATCHDOG_MS = 10_000;
const I_7060 = { name: '7060', kind: 'host' } as const;
const ADAM_4068 = { name: '4068', kind: 'safety' } as const;
const ADAM_4050 = { name: '4050', kind: 'none' } as const;

const pulse = (milliseconds: number, relay = 0, hwId = 'lobby-01') => ({ hwId, relay, milliseconds });

describe('a driver that starts', () => {
  it('switches off what was left on, sees it off, and only then feeds the watchdog', async () => {
    await using bench = await openTestDriver({ 1: { ...I_7060, outputs: 0b101, armedTenths: 100 } });
    await bench.clock.advance(WATCHDOG_MS);
    expect(bench.modules.module(1).now()).toEqual({ outputs: 0, timedOut: false });
    const sent = bench.sent();
    const off = sent.indexOf('#010000');
    const seen = sent.indexOf('$016', off);
    expect(off).toBeGreaterThan(0);
    expect(seen).toBeGreaterThan(off);
    expect(sent.indexOf('~013164')).toBeGreaterThan(seen);
    expect(sent.indexOf('~**')).toBeGreaterThan(seen);
    expect(bench.sentAt('~**').length).toBeGreaterThan(1);
  });

  it('is fed without holding the bus up', async () => {
    await using bench = await openTestDriver({ 1: I_7060 }, { options: { pollEveryMs: 0 } });
    await bench.clock.advance(10_000);
    const [fedAt = 0] = bench.sentAt('~**');
    const next = bench.wire.sent.find(({ at }) => at > fedAt);
    // Seven characters of 10 bits at 9600 baud, and a little for modules to start their timers.
    expect((next?.at ?? 0) - fedAt).toBeLessThan(15);
  });

  it('feeds no one while a module keeps on what it was ordered to switch off, until its watchdog has run out', async () => {
    await using bench = await openTestDriver({
      1: { ...I_7060, outputs: 1, armedTenths: 100 },
      2: I_7060,
    });
    bench.modules.module(1).stuck = 1;
    await bench.clock.advance(WATCHDOG_MS);
    expect(bench.sent()).not.toContain('~**');
    await bench.clock.advance(WATCHDOG_MS);
    expect(bench.modules.module(1).now().outputs).toBe(0);
    expect(bench.sent()).toContain('~**');
  });

  it('does not wait for ever for a module that is not there', async () => {
    await using bench = await openTestDriver({ 1: I_7060, 2: { ...I_7060, dead: true } });
    await bench.clock.advance(WATCHDOG_MS);
    expect(bench.sent()).not.toContain('~**');
    await bench.clock.advance(WATCHDOG_MS);
    const [first = 0] = bench.sentAt('~**');
    expect(first).toBeGreaterThan(WATCHDOG_MS * 1.2);
    await bench.clock.advance(WATCHDOG_MS);
    expect(bench.sentAt('~**').length).toBeGreaterThan(3);
    expect(bench.modules.module(1).now().timedOut).toBe(false);
  });

  it('makes off the value after a power cut and after silence, with outputs off, and not more often than it must', async () => {
    await using bench = await openTestDriver({
      1: { ...I_7060, safe: 3, powerOn: 1, outputs: 1 },
      2: I_7060,
    });
    await bench.clock.advance(2_000);
    const sent = bench.sent();
    expect(sent.indexOf('~015S')).toBeGreaterThan(sent.indexOf('#010000'));
    expect(sent).toContain('~015P');
    expect(sent).not.toContain('~025S');
    expect(sent).not.toContain('~025P');
  });

  it('clears a watchdog that had run out, and switches its safe value off', async () => {
    await using bench = await openTestDriver({ 1: { ...I_7060, safe: 3, outputs: 3, armedTenths: 0 } });
    await bench.clock.advance(2_000);
    expect(bench.modules.module(1).now()).toEqual({ outputs: 0, timedOut: false });
    expect(bench.report('lobby-01')).toMatchObject({ connected: true });
  });
});

describe('a pulse', () => {
  it('is on, seen on, and off after its time, seen off', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    await expect(bench.settled(bench.execute('pulse', pulse(3_000, 2)))).resolves.toEqual({
      relay: 2,
      milliseconds: 3_000,
      timedBy: 'gateway',
    });
    expect(bench.modules.module(1).now().outputs).toBe(0b100);
    expect(bench.report('lobby-01').pulse).toMatchObject({ relay: 2 });
    await bench.clock.advance(4_000);
    expect(bench.modules.module(1).now().outputs).toBe(0);
    const [on = 0] = bench.sentAt('#011201');
    const [off = 0] = bench.sentAt('#010000');
    expect(off - on).toBeGreaterThanOrEqual(3_000);
    expect(off - on).toBeLessThan(3_150);
    expect(bench.sent().lastIndexOf('$016')).toBeGreaterThan(bench.sent().indexOf('#010000'));
    expect(bench.report('lobby-01')).toMatchObject({ pulse: null, levels: { output2: false } });
  });

  it('is made longer by the next one, never shorter', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    await bench.settled(bench.execute('pulse', pulse(3_000)));
    await bench.clock.advance(1_000);
    await bench.settled(bench.execute('pulse', pulse(500)));
    await bench.clock.advance(1_500);
    expect(bench.modules.module(1).now().outputs).toBe(1);
    await bench.settled(bench.execute('pulse', pulse(3_000)));
    await bench.clock.advance(2_500);
    expect(bench.modules.module(1).now().outputs).toBe(1);
    await bench.clock.advance(1_000);
    expect(bench.modules.module(1).now().outputs).toBe(0);
    expect(bench.sentAt('#011000')).toHaveLength(0);
    expect(bench.sentAt('#010000')).toHaveLength(1);
  });

  it('outlives the watchdog, which is fed', async () => {
    await using bench = await openTestDriver(
      { 1: I_7060, 2: ADAM_4068 },
      { options: { pollEveryMs: 60_000 } },
    );
    await bench.clock.advance(61_000);
    await bench.settled(bench.execute('pulse', pulse(3 * WATCHDOG_MS)));
    await bench.settled(bench.execute('pulse', pulse(3 * WATCHDOG_MS, 7, 'lobby-02')));
    await bench.clock.advance(3 * WATCHDOG_MS - 500);
    expect(bench.modules.module(1).now()).toEqual({ outputs: 1, timedOut: false });
    expect(bench.modules.module(2).now().outputs).toBe(0x80);
    await bench.clock.advance(1_000);
    expect(bench.modules.module(1).now().outputs).toBe(0);
    expect(bench.modules.module(2).now().outputs).toBe(0);
  });

  it.each([
    ['host', I_7060],
    ['safety', ADAM_4068],
  ])('is ended by the %s watchdog of the module when the gateway dies', async (_, given) => {
    await using bench = await openTestDriver({ 1: given });
    await bench.clock.advance(2_000);
    await bench.settled(bench.execute('pulse', pulse(600_000)));
    bench.wire.lose();
    await bench.settled(bench.run);
    const sent = bench.sent().length;
    await bench.clock.advance(WATCHDOG_MS - 5_000);
    expect(bench.modules.module(1).now().outputs).toBe(1);
    await bench.clock.advance(5_000);
    expect(bench.modules.module(1).now().outputs).toBe(0);
    expect(bench.sent()).toHaveLength(sent);
    expect(await bench.run).toMatchObject({ code: 'LINK_LOST' });
    expect(bench.wire.complaints.join()).toMatch(/the watchdog of the module ends it/);
  });

  it.each([
    ['the pulse', 0],
    ['a poll', 2_000],
  ])('is guarded after a pause as long as the safety time: %s has the watchdog armed', async (_, waitMs) => {
    await using bench = await openTestDriver({ 1: ADAM_4068 });
    await bench.clock.advance(2_000);
    const module = bench.modules.module(1);
    module.runsOutOnce = true;
    module.heard.length = 0;
    bench.clock.hold(WATCHDOG_MS + 1_000);
    await bench.clock.advance(waitMs);
    await bench.settled(bench.execute('pulse', pulse(600_000)));
    const arms = module.heard.findIndex((text) => text.startsWith('$01X0'));
    expect(arms).toBeGreaterThanOrEqual(0);
    expect(arms).toBeLessThan(module.heard.findIndex((text) => text.startsWith('#0110')));
    bench.wire.lose();
    await bench.settled(bench.run);
    await bench.clock.advance(WATCHDOG_MS);
    expect(module.now().outputs).toBe(0);
  });

  it('is switched off again and again until it is seen off, and no one is fed meanwhile', async () => {
    await using bench = await openTestDriver({ 1: I_7060, 2: I_7060 });
    await bench.clock.advance(2_000);
    await bench.settled(bench.execute('pulse', pulse(1_000)));
    bench.modules.module(1).stuck = 1;
    await bench.clock.advance(1_500);
    const fed = bench.sentAt('~**').length;
    // Until its watchdog has run out.
    await bench.clock.advance(WATCHDOG_MS - 4_000);
    expect(bench.sentAt('#010000').length).toBeGreaterThan(10);
    expect(bench.sentAt('~**')).toHaveLength(fed);
    bench.modules.module(1).stuck = 0;
    await bench.clock.advance(5_000);
    expect(bench.modules.module(1).now().outputs).toBe(0);
    expect(bench.sentAt('~**').length).toBeGreaterThan(fed);
  });

  it('is ended by the watchdog of a module that is cut off, for it is not fed', async () => {
    await using bench = await openTestDriver({ 1: I_7060, 2: I_7060 });
    await bench.clock.advance(2_000);
    await bench.settled(bench.execute('pulse', pulse(2_000)));
    const module = bench.modules.module(1);
    // It hears, and its answers are lost.
    module.mute = Number.POSITIVE_INFINITY;
    module.stuck = 1;
    await bench.clock.advance(2_000 + 1.3 * WATCHDOG_MS);
    expect(module.now()).toEqual({ outputs: 0, timedOut: true });
    // The others are fed again, and what they lost meanwhile is brought back.
    await bench.clock.advance(WATCHDOG_MS);
    expect(bench.modules.module(2).now().timedOut).toBe(false);
  });

  it('goes on where an answer was lost but the output is seen on', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    const pending = bench.execute('pulse', pulse(1_000));
    bench.modules.module(1).mute = 1;
    await expect(bench.settled(pending)).resolves.toMatchObject({ relay: 0 });
  });

  it('whose end no one knows is switched off at once, and said to be unknown', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    const module = bench.modules.module(1);
    const pending = bench.execute('pulse', pulse(60_000), { withinMs: 500 }).catch((error: unknown) => error);
    module.mute = Number.POSITIVE_INFINITY;
    expect(await bench.settled(pending)).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    module.mute = 0;
    await bench.clock.advance(2_000);
    expect(module.now().outputs).toBe(0);
  });

  it('whose caller has gone is switched off', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    const module = bench.modules.module(1);
    const gone = new AbortController();
    const pending = bench
      .execute('pulse', pulse(60_000), { signal: gone.signal })
      .catch((error: unknown) => error);
    await bench.clock.advance(30);
    expect(module.now().outputs).toBe(1);
    gone.abort(new Error('the caller has gone'));
    expect(await bench.settled(pending)).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await bench.clock.advance(1_000);
    expect(module.now().outputs).toBe(0);
  });

  it('is not switched on after its deadline, nor at a module that is away', async () => {
    await using bench = await openTestDriver({ 1: I_7060, 2: { ...I_7060, dead: true } });
    await bench.clock.advance(2_000);
    const late = bench.execute('pulse', pulse(1_000), { withinMs: -1 }).catch((error: unknown) => error);
    expect(await bench.settled(late)).toMatchObject({ code: 'DEADLINE_PASSED' });
    const away = bench.execute('pulse', pulse(1_000, 0, 'lobby-02')).catch((error: unknown) => error);
    expect(await bench.settled(away)).toMatchObject({
      code: expect.stringMatching(/DEVICE_OFFLINE|NO_REPLY/),
    });
    await bench.clock.advance(2_000);
    // Nor is anything switched off, which would keep the watchdogs waiting for food.
    expect(bench.sent().filter((text) => text.startsWith('#'))).toEqual([]);
  });

  it('that is not seen on is reported as failed, and switched off', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    const module = bench.modules.module(1);
    module.stuck = 1;
    const failed = bench.execute('pulse', pulse(1_000)).catch((error: unknown) => error);
    expect(await bench.settled(failed)).toMatchObject({ code: 'NO_REPLY' });
    expect(bench.report('lobby-01').pulse).toBeNull();
  });

  it('is over when somebody else ends it, and does not come back', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    await bench.settled(bench.execute('pulse', pulse(60_000)));
    const module = bench.modules.module(1);
    module.outputs = 0;
    await bench.clock.advance(1_000);
    expect(bench.report('lobby-01').pulse).toBeNull();
    module.outputs = 1;
    await bench.clock.advance(1_000);
    expect(module.now().outputs).toBe(0);
  });

  it('clears a watchdog that has run out, and is repeated', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    const module = bench.modules.module(1);
    module.heard.length = 0;
    // As if the broadcasts had not reached it.
    const stolen = bench.modules.answer(Buffer.from('~013101EC\r'));
    expect(stolen).not.toBeNull();
    await bench.clock.advance(150);
    expect(module.now().timedOut).toBe(true);
    await bench.settled(bench.execute('pulse', pulse(1_000)));
    expect(module.now()).toEqual({ outputs: 1, timedOut: false });
    const sent = module.heard;
    expect(sent.indexOf('~011')).toBeGreaterThan(sent.indexOf('#011001'));
    expect(sent.indexOf('~013164')).toBeGreaterThan(sent.indexOf('~011'));
    expect(sent.lastIndexOf('#011001')).toBeGreaterThan(sent.indexOf('~013164'));
  });

  it('is refused where no one would end it if the gateway died', async () => {
    await using bench = await openTestDriver({
      1: { ...ADAM_4050, outputs: 1 },
      2: { name: '4060', kind: 'safety', unknown: /^\$02X/ },
      3: { name: '4017', kind: 'none' },
    });
    await bench.clock.advance(3_000);
    expect(bench.modules.module(1).now().outputs).toBe(0);
    for (const hwId of ['lobby-01', 'lobby-02', 'lobby-03']) {
      const refused = bench.execute('pulse', pulse(1_000, 0, hwId)).catch((error: unknown) => error);
      expect(await bench.settled(refused)).toMatchObject({
        code: 'REFUSED',
        message: expect.stringMatching(/watchdog|not in the table/),
      });
      expect(bench.report(hwId)).toMatchObject({
        connected: true,
        unsupported: expect.arrayContaining(['relayIndex']),
      });
    }
    expect(bench.sent().filter((text) => /^#..1.01$/.test(text))).toEqual([]);
    // Silence may have been noise: it is asked again.
    bench.modules.module(2).unknown = /^never$/;
    await bench.clock.advance(60_000);
    await expect(bench.settled(bench.execute('pulse', pulse(1_000, 0, 'lobby-02')))).resolves.toMatchObject({
      timedBy: 'gateway',
    });
  });

  it('is refused for a relay that the module does not have', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    const refused = bench.execute('pulse', pulse(1_000, 4)).catch((error: unknown) => error);
    expect(await bench.settled(refused)).toMatchObject({ code: 'REFUSED', message: 'I-7060 has no relay 4' });
  });

  it('is ended when the driver is stopped', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    await bench.settled(bench.execute('pulse', pulse(60_000)));
    bench.stop.abort(new Error('the gateway stops'));
    expect(await bench.settled(bench.run)).toMatchObject({ message: 'the gateway stops' });
    expect(bench.modules.module(1).now().outputs).toBe(0);
  });

  it('survives a short silence of the module, and ends on time', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    await bench.settled(bench.execute('pulse', pulse(6_000)));
    const module = bench.modules.module(1);
    module.dead = true;
    await bench.clock.advance(2_000);
    expect(bench.report('lobby-01').connected).toBe(false);
    module.dead = false;
    await bench.clock.advance(2_000);
    expect(bench.report('lobby-01')).toMatchObject({ connected: true, pulse: { relay: 0 } });
    expect(module.now().outputs).toBe(1);
    await bench.clock.advance(2_500);
    expect(module.now().outputs).toBe(0);
  });
});

describe('a module', () => {
  it('whose watchdog ran out during a pulse has it armed again when the pulse is over', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    await bench.settled(bench.execute('pulse', pulse(500)));
    const module = bench.modules.module(1);
    module.heard.length = 0;
    // The flag is set, and no poll has seen it, when the output is to be switched off.
    bench.modules.answer(Buffer.from('~013101EC\r'));
    await bench.clock.advance(1_500);
    expect(module.now()).toEqual({ outputs: 0, timedOut: false });
    expect(module.heard).toContain('~013164');
  });

  it('that was reset has its outputs off and its watchdog armed again', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    await bench.settled(bench.execute('pulse', pulse(60_000)));
    const module = bench.modules.module(1);
    module.heard.length = 0;
    module.restart();
    await bench.clock.advance(5_000);
    expect(module.heard).toContain('~013164');
    expect(bench.report('lobby-01')).toMatchObject({ connected: true, pulse: null });
  });

  it('whose output somebody else switched on has it switched off', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(2_000);
    bench.modules.module(1).outputs = 0b1000;
    await bench.clock.advance(1_000);
    expect(bench.modules.module(1).now().outputs).toBe(0);
    expect(bench.wire.complaints.join()).toMatch(/somebody else switched an output on/);
  });
});
