/** The driver on a real pty, against devices that another hand wrote from the maps (test/simulators/bus). */

import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { ordered } from '../../test/drivers/bus/pulse.ts';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { profileNamed, settingsWith } from '../../test/drivers/modbus/link.ts';
import { openSimulatedBus, type SimulatedBus } from '../../test/simulators/bus/bus.ts';
import type { DriverError, DriverEvent, Plain } from '../contract/driver.ts';
import { busReport, probed } from '../contract/rs485.ts';
import { rs485Report } from '../contract/settings.ts';
import { openModbus } from './driver.ts';

const never = new AbortController().signal;
const patience = { timeout: 20_000, interval: 20 };
const BAUD = { baudRate: 38_400, parity: 'even', stopBits: 1 } as const;
const DEVICES = [
  { address: 1, kind: 'gatehouse-io', hwId: 'GIO-0001' },
  { address: 2, kind: 'gatehouse-io', hwId: 'GIO-0002' },
  { address: 3, kind: 'waveshare-relay-8' },
  { address: 4, kind: 'waveshare-io-8' },
] as const;
const NAMES = ['GIO-0001', 'GIO-0002', 'floor-3', 'floor-4'];

function simulated(): Promise<SimulatedBus> {
  return openSimulatedBus({ ...BAUD, protocol: 'modbus', pacing: 'cheap', devices: [...DEVICES] });
}

async function drive(port: string, options: Record<string, Plain> = {}) {
  const reports = new Map<string, Plain>();
  const events: DriverEvent[] = [];
  const profiles = Object.fromEntries(
    ['gatehouse-io', 'waveshare-relay-8', 'waveshare-io-8'].map((name) => [name, profileNamed(name)]),
  );
  const driver = await openModbus(
    {
      ...BAUD,
      port,
      pollEveryMs: 20,
      profiles,
      devices: DEVICES.map(({ address, kind }) => ({ unitId: address, profile: kind })),
      ...options,
    },
    {
      linkId: 'floor',
      clock: systemClock,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      report: ({ subject, state }) => reports.set(subject, state),
      emit: async (event) => void events.push(event),
    },
    never,
  );
  const stop = new AbortController();
  const run = driver.run(stop.signal).catch((error: unknown) => error);
  const report = (hwId: string) => rs485Report.parse(reports.get(`device:${hwId}`));
  return {
    run,
    events,
    report,
    bus: () => busReport.parse(reports.get('bus')),
    execute: (kind: string, data: Plain) =>
      driver.execute(
        { kind, data: ordered(kind, data, report), deadline: systemClock.monotonic() + 5_000 },
        never,
      ),
    ready: () =>
      vi.waitFor(() => {
        for (const name of NAMES) expect(report(name).connected).toBe(true);
      }, patience),
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the test is over'));
      await run;
      await driver[Symbol.asyncDispose]();
    },
  };
}

it('meets devices of three products, carries settings, reports inputs, and fires relays', async () => {
  await using bus = await simulated();
  await using link = await drive(bus.port);
  await link.ready();
  const settings = settingsWith({ pins: ['input1'] });
  await link.execute('applySettings', { hwId: 'GIO-0001', settingsVersion: 3, settings });
  expect(await bus.state(1)).toMatchObject({ settings: { relayIndex: 2, settingsVersion: 3 } });
  await bus.set(1, { pulseInput: { input: 'input1', milliseconds: 1 } });
  await bus.set(4, { inputs: { input2: true } });
  await vi.waitFor(
    () =>
      expect(link.events.map(({ data }) => data)).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ hwId: 'GIO-0001', input: 'input1', activations: 1 }),
          expect.objectContaining({ hwId: 'floor-4', input: 'input2', activations: 1 }),
        ]),
      ),
    patience,
  );
  for (const [address, hwId] of [
    [1, 'GIO-0001'],
    [3, 'floor-3'],
    [4, 'floor-4'],
  ] as const) {
    await link.execute('pulse', { hwId, relay: 2, milliseconds: 200 });
    const { history } = await bus.state(address);
    expect(history[0]).toMatchObject({ output: 2, on: true });
    await vi.waitFor(async () => expect((await bus.state(address)).history).toHaveLength(2), patience);
  }
  const found = probed.parse(await link.execute('probe', { addresses: [2, 9], repeats: 3 }));
  expect(found.results).toMatchObject([
    { identity: { hwId: 'GIO-0002', profile: 'gatehouse-io' } },
    { identity: null, counters: { replies: 0 } },
  ]);
});

it('brings a restarted and a swapped device to light, and goes on without a dead one', async () => {
  await using bus = await simulated();
  await using link = await drive(bus.port);
  await link.ready();
  const settings = settingsWith();
  await link.execute('applySettings', { hwId: 'GIO-0001', settingsVersion: 3, settings });
  await bus.set(1, { restart: true });
  await vi.waitFor(async () => expect(await bus.state(1)).toMatchObject({ bootCount: 2 }), patience);
  await vi.waitFor(
    () => expect(link.report('GIO-0001')).toMatchObject({ connected: true, settings }),
    patience,
  );
  await bus.set(1, { swap: { hwId: 'GIO-0009' } });
  await bus.set(2, { faults: { dead: true } });
  await vi.waitFor(() => {
    expect(link.report('GIO-0009')).toMatchObject({ connected: true, reportedSettingsVersion: 0 });
    expect(link.report('GIO-0001').connected).toBe(false);
    expect(link.report('GIO-0002').connected).toBe(false);
  }, patience);
  await expect(
    link.execute('pulse', { hwId: 'GIO-0002', relay: 0, milliseconds: 200 }),
  ).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
  // Long enough to be read several times: replies were missed a moment ago.
  await link.execute('pulse', { hwId: 'GIO-0009', relay: 0, milliseconds: 1_500 });
  await bus.set(2, { faults: null });
  await vi.waitFor(() => expect(link.report('GIO-0002').connected).toBe(true), patience);
});

it.each([
  ['noise before replies', { noise: '00ff01' }],
  ['replies that are lost', { loss: { share: 0.1, seed: 7 } }],
] as const)('is not troubled by %s', async (_, faults) => {
  await using bus = await simulated();
  for (const { address } of DEVICES) await bus.set(address, { faults });
  await using link = await drive(bus.port);
  await link.ready();
  await link.execute('pulse', { hwId: 'GIO-0001', relay: 1, milliseconds: 1_500 });
  expect((await bus.state(1)).history.filter(({ on }) => on)).toHaveLength(1);
});

it('says of no order what is not so where replies come late and in another order', async () => {
  await using bus = await simulated();
  await using link = await drive(bus.port);
  await link.ready();
  await bus.setBus({ outOfOrder: { share: 0.3, fromMs: 110, toMs: 500, seed: 5 } });
  const pulses = [0, 1, 2].flatMap((relay) => DEVICES.map((_, index) => ({ relay, index })));
  const outcomes = await Promise.all(
    pulses.map(async ({ relay, index }) => {
      const pulse = { hwId: NAMES[index] ?? '', relay, milliseconds: 20_000 };
      return await link.execute('pulse', pulse).then(
        () => 'confirmed',
        ({ code }: DriverError) => code,
      );
    }),
  );
  for (const [turn, { relay, index }] of pulses.entries()) {
    const { history } = await bus.state(index + 1);
    const closings = history.filter(({ on, output }) => on && output === relay).length;
    const code = outcomes[turn] ?? '';
    const possible = code === 'confirmed' ? [1] : code === 'OUTCOME_UNKNOWN' ? [0, 1] : [0];
    expect(possible, `${NAMES[index]} output${relay}: ${code}`).toContain(closings);
  }
});

it.each([
  ['a wrong check sum', { corrupt: true }],
  ['missing bytes', { truncate: 2 }],
  ['the name of another', { wrongAddress: 7 }],
] as const)('believes nothing with %s', async (_, faults) => {
  await using bus = await simulated();
  await bus.set(2, { faults });
  await using link = await drive(bus.port);
  await vi.waitFor(() => expect(link.report('GIO-0001').connected).toBe(true), patience);
  await vi.waitFor(async () => expect((await bus.state(2)).requests).toBeGreaterThan(3), patience);
  expect(() => link.report('GIO-0002')).toThrow();
});

it('ends when the adapter is pulled', async () => {
  await using bus = await simulated();
  await using link = await drive(bus.port);
  await link.ready();
  await bus.hangUp();
  expect(await link.run).toMatchObject({ code: 'LINK_LOST' });
});

it('says where two devices have one address, whether one speaks behind the other or into it', async () => {
  await using bus = await simulated();
  await using link = await drive(bus.port);
  await link.ready();
  // It takes a share of damaged replies here and of sound ones elsewhere: 5 s on a free machine, 25 s on a busy one.
  const patient = { ...patience, timeout: 60_000 };
  for (const turnaroundMs of [2, 25]) {
    await bus.set(2, { faults: { twin: { turnaroundMs } } });
    await vi.waitFor(() => expect(messagesOf(link.bus()).join()).toMatch(/^address 2: /), patient);
    await bus.set(2, { faults: null });
    await vi.waitFor(() => expect(messagesOf(link.bus())).toEqual([]), patient);
  }
}, 270_000);

/** Nearly as long as it may: slow-devices.test.ts, where a busy machine adds nothing. */
it('misses no device that takes a hundred times as long as usual, now and then', async () => {
  await using bus = await simulated();
  await using link = await drive(bus.port, { turnaroundMaxMs: 5_000 });
  await link.ready();
  const slow = { share: 0.2, fromMs: 150, toMs: 200, seed: 7 };
  const now = () => link.bus().devices.find(({ address }) => address === 2)?.counters;
  const before = await vi.waitFor(now, patience);
  await bus.set(2, { faults: { unsteady: slow } });
  await vi.waitFor(() => expect(now()?.replies).toBeGreaterThan((before?.replies ?? 0) + 60), {
    ...patience,
    timeout: 60_000,
  });
  expect(now()).toMatchObject({ timeouts: before?.timeouts, late: 0, collisions: 0 });
}, 90_000);
