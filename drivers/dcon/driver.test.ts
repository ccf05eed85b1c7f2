/** What a DCON driver reports, keeps and finds; what it switches is in safety.test.ts. */

import { describe, expect, it } from 'vitest';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { openTestDriver, SETTINGS } from '../../test/drivers/dcon/driver.ts';
import { busReport, probed } from '../contract/rs485.ts';
import { openDcon } from './driver.ts';

const I_7060 = { name: '7060', kind: 'host' } as const;
const ADAM_4055 = { name: '4055', kind: 'safety' } as const;

const apply = (settingsVersion: number, settings: object = {}, hwId = 'lobby-01') => ({
  hwId,
  settingsVersion,
  settings: { ...SETTINGS, ...settings },
});

describe('a module', () => {
  it('is reported by its address, with what it is and what its pins show', async () => {
    await using bench = await openTestDriver({ 1: { ...I_7060, inputs: 0b0101 } });
    await bench.clock.advance(1_000);
    expect(bench.report('lobby-01')).toMatchObject({
      connected: true,
      hwId: 'lobby-01',
      type: 'I-7060',
      profile: 'I-7060',
      platform: { version: 'B1.2' },
      address: 1,
      reportedSettingsVersion: 0,
      settings: null,
      levels: {
        input0: true,
        input1: false,
        input2: true,
        input3: false,
        output0: false,
        output3: false,
      },
    });
    expect(bench.report('lobby-01').levels).not.toHaveProperty('output4');
  });

  it('is reported as it leaves and comes back, and what comes back is asked again who it is', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(1_000);
    await bench.settled(bench.execute('applySettings', apply(7)));
    const module = bench.modules.module(1);
    module.dead = true;
    await bench.clock.advance(3_000);
    expect(bench.report('lobby-01')).toMatchObject({ connected: false, reportedSettingsVersion: 7 });
    module.dead = false;
    await bench.clock.advance(5_000);
    expect(bench.report('lobby-01')).toMatchObject({ connected: true, reportedSettingsVersion: 7 });
    module.dead = true;
    await bench.clock.advance(3_000);
    Object.assign(module, { dead: false, name: '7050' });
    await bench.clock.advance(5_000);
    // Another product: it never got any settings.
    expect(bench.report('lobby-01')).toMatchObject({
      connected: true,
      type: 'I-7050',
      reportedSettingsVersion: 0,
      settings: null,
    });
  });

  it('that is back shows no pins and no pulse until they are read', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(1_000);
    await bench.settled(bench.execute('pulse', { hwId: 'lobby-01', relay: 1, milliseconds: 60_000 }));
    const shown = { levels: { output1: true }, pulse: { relay: 1 } };
    expect(bench.report('lobby-01')).toMatchObject(shown);
    const { answer } = bench.site;
    bench.site.answer = () => null;
    await bench.clock.advance(3_000);
    expect(bench.report('lobby-01')).toMatchObject({ connected: false, levels: {}, pulse: null });
    expect(bench.report('lobby-01').levels).toEqual({});
    const isName = (request: Uint8Array) => Buffer.from(request).toString('latin1').startsWith('$01M');
    bench.site.answer = (request) => (isName(request) ? answer(request) : null);
    for (let ms = 0; ms < 6_000; ms += 50) {
      await bench.clock.advance(50);
      expect(bench.report('lobby-01')).toMatchObject({ pulse: null });
      expect(bench.report('lobby-01').levels).toEqual({});
    }
    bench.site.answer = answer;
    await bench.clock.advance(5_000);
    expect(bench.report('lobby-01')).toMatchObject({
      connected: true,
      levels: { output1: expect.any(Boolean) },
    });
  });

  it('that does not know a command is well all the same', async () => {
    await using bench = await openTestDriver({ 1: { ...ADAM_4055, unknown: /^\$01[F5]/ } });
    await bench.clock.advance(8_000);
    expect(bench.report('lobby-01')).toMatchObject({ connected: true, type: 'ADAM-4055', platform: null });
    // Nor is it asked for it again and again when it comes back.
    bench.modules.module(1).dead = true;
    await bench.clock.advance(1_500);
    expect(bench.report('lobby-01').levels).toEqual({});
    bench.modules.module(1).dead = false;
    await bench.clock.advance(2_500);
    expect(bench.report('lobby-01').levels).not.toEqual({});
  });

  it.each([
    ['$AAF', '$01F', I_7060],
    ['$AAX1', '$01X', ADAM_4055],
  ])('whose answers to %s are lost is not said to lack it', async (_, command, given) => {
    await using bench = await openTestDriver({ 1: given });
    await bench.clock.advance(3_000);
    const before = bench.report('lobby-01');
    let lost = 0;
    bench.site.answer = (request) => {
      const answer = bench.modules.answer(request);
      if (!Buffer.from(request).toString('latin1').startsWith(command) || lost >= 4) return answer;
      lost += 1;
      return null;
    };
    bench.modules.module(1).restart();
    await bench.clock.advance(20_000);
    expect(lost).toBe(4);
    const { platform, unsupported, watchdog } = bench.report('lobby-01');
    expect({ platform, unsupported, watchdog }).toEqual({
      platform: before.platform,
      unsupported: before.unsupported,
      watchdog: before.watchdog,
    });
    expect(bench.wire.complaints.join()).not.toMatch(/does not know/);
  });

  it('whose answer to a poll for a reset is lost is brought up again', async () => {
    await using bench = await openTestDriver({ 1: ADAM_4055 });
    await bench.clock.advance(3_000);
    const module = bench.modules.module(1);
    let isLost = false;
    bench.site.answer = (request) => {
      const answer = bench.modules.answer(request);
      const isAsked = Buffer.from(request).toString('latin1').startsWith('$015');
      if (!isAsked || isLost) return answer;
      isLost = true;
      return null;
    };
    module.restart();
    module.heard.length = 0;
    await bench.clock.advance(10_000);
    expect(isLost).toBe(true);
    expect(module.heard.some((text) => text.startsWith('$01X0'))).toBe(true);
    expect(bench.report('lobby-01')).toMatchObject({ connected: true });
  });

  it('that is not in the table is reported by its name, with a warning', async () => {
    await using bench = await openTestDriver({ 1: { name: '4017', kind: 'none' } });
    await bench.clock.advance(6_000);
    expect(bench.report('lobby-01')).toMatchObject({
      connected: true,
      type: '4017',
      profile: null,
      levels: {},
    });
    expect(messagesOf(busReport.parse(bench.bus())).join()).toMatch(/01 calls itself 4017/);
    bench.modules.module(1).name = '4055';
    await bench.clock.advance(1_000);
    expect(bench.report('lobby-01')).toMatchObject({ type: 'ADAM-4055' });
  });
});

describe('a start', () => {
  it('with a module that is dead warns once, and not of each that was not fed for its sake', async () => {
    await using bench = await openTestDriver({ 1: { ...I_7060, dead: true }, 2: I_7060, 3: I_7060 });
    await bench.clock.advance(30_000);
    expect(bench.wire.complaints).toEqual([expect.stringMatching(/no host watchdog is fed until/)]);
    expect(bench.report('lobby-03')).toMatchObject({ connected: true });
    // What comes of itself is reported.
    bench.modules.module(2).restart();
    await bench.clock.advance(10_000);
    expect(bench.wire.complaints.slice(1)).toEqual([expect.stringMatching(/brought up again: it was reset/)]);
  });
});

describe('settings', () => {
  it('are in force at once, and reported', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(1_000);
    await expect(bench.settled(bench.execute('applySettings', apply(3)))).resolves.toEqual({
      reportedSettingsVersion: 3,
    });
    expect(bench.report('lobby-01')).toMatchObject({
      reportedSettingsVersion: 3,
      settings: SETTINGS,
      effectiveUnlockMilliseconds: 5_000,
      unsupported: [],
    });
  });

  it('that a module cannot carry are reported, or refused', async () => {
    await using bench = await openTestDriver({ 1: ADAM_4055, 2: { name: '4050', kind: 'none' }, 3: I_7060 });
    await bench.clock.advance(2_000);
    const pins = { ...SETTINGS.ioPins, output7: true };
    await bench.settled(bench.execute('applySettings', apply(1, { ioPins: pins }, 'lobby-03')));
    expect(bench.report('lobby-03').unsupported).toEqual(['output7']);
    expect(bench.report('lobby-01').unsupported).toEqual(['useInputPinMemory']);
    expect(bench.report('lobby-03').carries).toMatchObject({ relays: 4, pinMemory: true });
    expect(bench.report('lobby-03').carries?.pins).not.toContain('output7');
    // Its outputs are there, and without a watchdog none is ever fired.
    expect(bench.report('lobby-02').carries).toMatchObject({ relays: 0, pinMemory: false });
    await bench.settled(bench.execute('applySettings', apply(1, {}, 'lobby-02')));
    expect(bench.report('lobby-02').unsupported).toContain('relayIndex');
    await bench.clock.advance(5_000);
    expect(messagesOf(busReport.parse(bench.bus())).join()).toMatch(/02 \(ADAM-4050\) has no watchdog/);
    await expect(
      bench.settled(bench.execute('applySettings', apply(2, { relayIndex: 4 }, 'lobby-03'))),
    ).rejects.toMatchObject({ code: 'REFUSED', message: expect.stringContaining('relays 0 to 3') });
  });

  it('are for a module that is there', async () => {
    await using bench = await openTestDriver({ 1: { ...I_7060, dead: true } });
    await bench.clock.advance(1_000);
    for (const hwId of ['lobby-01', 'lobby-09']) {
      await expect(bench.settled(bench.execute('applySettings', apply(1, {}, hwId)))).rejects.toMatchObject({
        code: 'DEVICE_OFFLINE',
      });
    }
  });
});

describe('an activation of an input', () => {
  it('is counted and reported once, unless the pin is not in use', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(1_000);
    await bench.settled(bench.execute('applySettings', apply(1)));
    const module = bench.modules.module(1);
    module.inputs = 0b1001;
    await bench.clock.advance(1_000);
    module.inputs = 0;
    await bench.clock.advance(1_000);
    module.inputs = 0b0001;
    await bench.clock.advance(1_000);
    expect(bench.events).toMatchObject(
      [1, 2].map((total) => ({
        kind: 'input',
        data: { hwId: 'lobby-01', input: 'input0', activations: 1, total },
      })),
    );
    expect(new Set(bench.events.map(({ id }) => id)).size).toBe(2);
    expect(bench.report('lobby-01').edges).toMatchObject({ input0: { total: 2 } });
  });

  it('is not held up by one that is being stored', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await using bench = await openTestDriver({ 1: I_7060 }, { emit: () => held });
    await bench.clock.advance(1_000);
    const module = bench.modules.module(1);
    for (const inputs of [1, 0, 1, 0, 1]) {
      module.inputs = inputs;
      await bench.clock.advance(500);
    }
    expect(bench.report('lobby-01').edges).toMatchObject({ input0: { total: 3 } });
    expect(bench.events).toEqual([]);
    release();
    await bench.clock.advance(100);
    expect(bench.events.map(({ data }) => data)).toMatchObject([
      { activations: 1 },
      { activations: 2, total: 3 },
    ]);
  });

  it('that is shorter than a poll is counted where the module remembers it', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(1_000);
    const module = bench.modules.module(1);
    module.latched = 0b1;
    await bench.settled(bench.execute('applySettings', apply(1, { useInputPinMemory: true })));
    await bench.clock.advance(2_000);
    // What it remembered before no one wanted to know.
    expect(bench.report('lobby-01').edges).toEqual({});
    module.latched = 0b10;
    await bench.clock.advance(2_000);
    expect(bench.report('lobby-01').edges).toMatchObject({ input1: { total: 1 } });
    // One that is seen by a poll too is not counted twice, though the latch remembers it as long as it lasts.
    module.inputs = 0b1;
    module.latched = 0b1;
    await bench.clock.advance(700);
    module.latched = 0b1;
    await bench.clock.advance(2_000);
    module.inputs = 0;
    await bench.clock.advance(2_000);
    expect(bench.report('lobby-01').edges).toMatchObject({ input0: { total: 1 }, input1: { total: 1 } });
  });
});

describe('a bus', () => {
  it('is watched where `watch` names it, and left alone where it is not any more', async () => {
    await using bench = await openTestDriver(
      { 1: I_7060, 2: I_7060 },
      { options: { devices: [{ address: 1 }] } },
    );
    await bench.clock.advance(1_000);
    expect(bench.modules.module(2).heard).toEqual([]);
    const both = [1, 2].map((address) => ({ address, hwId: `lobby-0${address}` }));
    await bench.settled(bench.execute('watch', { devices: both }));
    await bench.clock.advance(2_000);
    expect(bench.report('lobby-02')).toMatchObject({ connected: true });
    const pulse = { hwId: 'lobby-02', relay: 1, milliseconds: 60_000 };
    await bench.settled(bench.execute('pulse', pulse));
    await bench.settled(bench.execute('watch', { devices: [] }));
    await bench.clock.advance(1_000);
    expect(bench.modules.module(2).now().outputs).toBe(0);
    expect(bench.report('lobby-02')).toMatchObject({ connected: false });
    const heard = bench.modules.module(2).heard.length;
    await bench.clock.advance(2_000);
    expect(bench.modules.module(2).heard).toHaveLength(heard);
    await bench.settled(bench.execute('watch', { devices: both }));
    await bench.settled(bench.execute('watch', { devices: [] }));
    await bench.settled(bench.execute('watch', { devices: both }));
    await bench.clock.advance(2_000);
    expect(bench.report('lobby-02')).toMatchObject({ connected: true });
    expect(bench.report('lobby-01')).toMatchObject({ connected: true });
  });

  it('is probed for who is there', async () => {
    await using bench = await openTestDriver(
      { 1: I_7060, 17: { name: '4017', kind: 'none' } },
      { options: { devices: [] } },
    );
    const asked = bench.execute('probe', { addresses: [1, 2, 17], repeats: 5 });
    const { results } = probed.parse(await bench.settled(asked));
    expect(results).toMatchObject([
      {
        address: 1,
        identity: { hwId: 'lobby-01', type: 'I-7060', version: 'B1.2', profile: 'I-7060' },
        counters: { replies: 6, timeouts: 0 },
      },
      { address: 2, identity: null, counters: { replies: 0, timeouts: 2 }, turnaroundMs: null },
      { address: 17, identity: { hwId: 'lobby-11', type: '4017', profile: null } },
    ]);
    expect(results[0]?.turnaroundMs?.median).toBeCloseTo(1, 0);
  });

  it('is reported every few seconds', async () => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await bench.clock.advance(5_500);
    const report = busReport.parse(bench.bus());
    expect(report.devices).toMatchObject([{ address: 1, alive: true }]);
    expect(report.pollsPerSecond).toBeGreaterThan(4);
  });

  it.each([
    ['unlock', {}],
    ['pulse', { hwId: 'lobby-01', relay: 8, milliseconds: 1_000 }],
    ['pulse', { hwId: 'lobby-01', relay: 0, milliseconds: 99 }],
    ['probe', { addresses: [], repeats: 1 }],
    ['watch', { devices: [{ address: 256, hwId: 'x' }] }],
    ['applySettings', { hwId: 'lobby-01' }],
  ])('does not take the command %s with %j', async (kind, data) => {
    await using bench = await openTestDriver({ 1: I_7060 });
    await expect(bench.execute(kind, data)).rejects.toMatchObject({ code: 'INVALID_COMMAND' });
  });

  it('does not open with options that make no sense, and says which', async () => {
    const context = {
      linkId: 'lobby',
      clock: { now: () => 0, monotonic: () => 0, sleep: async () => {} },
      log: { debug() {}, info() {}, warn() {}, error() {} },
      report() {},
      async emit() {},
    };
    await expect(
      openDcon({ port: '/dev/null', hostWatchdogMs: 5 }, context, new AbortController().signal),
    ).rejects.toMatchObject({ code: 'INVALID_OPTIONS', message: expect.stringContaining('hostWatchdogMs') });
  });
});
