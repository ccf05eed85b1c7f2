/** The driver on a real pty, against modules that were written from the manuals by another hand (test/simulators/bus). */
import { expect, it, vi } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { ordered } from '../../test/drivers/bus/pulse.ts';
import { SETTINGS } from '../../test/drivers/dcon/driver.ts';
import { openSimulatedBus, type SimulatedBus } from '../../test/simulators/bus/bus.ts';
import type { Clock, DriverError, DriverEvent, Plain } from '../contract/driver.ts';
import { probed } from '../contract/rs485.ts';
import { rs485Report } from '../contract/settings.ts';
import { openDcon } from './driver.ts';

const never = new AbortController().signal;
const clock: Clock = systemClock;
/** Longer than a busy machine holds this process up; a relay falls open then. */
const WATCHDOG_MS = 20_000;
const SHORT_WATCHDOG_MS = 2_000;
const patience = { timeout: 40_000, interval: 20 };

const MODULES = [
  { address: 1, kind: 'i-7060' },
  { address: 2, kind: 'i-7050' },
  { address: 3, kind: 'adam-4055' },
  { address: 4, kind: 'adam-4068' },
] as const;

function simulated(): Promise<SimulatedBus> {
  return openSimulatedBus({
    protocol: 'dcon',
    baudRate: 115_200,
    parity: 'none',
    stopBits: 1,
    pacing: 'cheap',
    devices: [...MODULES],
  });
}

async function drive(port: string, options: Record<string, Plain> = {}) {
  const reports = new Map<string, Plain>();
  const events: DriverEvent[] = [];
  const driver = await openDcon(
    {
      port,
      baudRate: 115_200,
      pollEveryMs: 50,
      hostWatchdogMs: WATCHDOG_MS,
      devices: MODULES.map(({ address }) => ({ address })),
      ...options,
    },
    {
      linkId: 'lobby',
      clock,
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
    execute: (kind: string, data: Plain) =>
      driver.execute(
        { kind, data: ordered(kind, data, report), deadline: clock.monotonic() + patience.timeout },
        never,
      ),
    ready: () =>
      vi.waitFor(() => {
        for (const { address } of MODULES) expect(report(`lobby-0${address}`).connected).toBe(true);
      }, patience),
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the test is over'));
      await run;
      await driver[Symbol.asyncDispose]();
    },
  };
}

/** Whether the relay was closed and opened, oldest first. */
const historyOf = async (bus: SimulatedBus, address: number) =>
  (await bus.state(address)).history.map(({ on }) => on);

const outputOf = async (bus: SimulatedBus, address: number, output: string) =>
  (await bus.state(address)).outputs[output];

it('finds modules, carries settings, reports inputs, and pulses relays', async () => {
  await using bus = await simulated();
  await using driver = await drive(bus.port);
  await driver.ready();
  expect(MODULES.map(({ address }) => driver.report(`lobby-0${address}`).type)).toEqual([
    ...['I-7060', 'I-7050', 'ADAM-4055', 'ADAM-4068'],
  ]);
  const found = probed.parse(await driver.execute('probe', { addresses: [1, 5], repeats: 2 }));
  expect(found.results).toMatchObject([
    { identity: { hwId: 'lobby-01', type: 'I-7060' } },
    { identity: null },
  ]);

  const wanted = { hwId: 'lobby-01', settingsVersion: 9, settings: { ...SETTINGS, useInputPinMemory: true } };
  expect(await driver.execute('applySettings', wanted)).toEqual({ reportedSettingsVersion: 9 });
  await bus.set(1, { inputs: { input0: true } });
  await vi.waitFor(() => expect(driver.report('lobby-01').levels.input0).toBe(true), patience);
  await vi.waitFor(() => expect(driver.events).toMatchObject([{ data: { input: 'input0' } }]), patience);
  await bus.set(1, { pulseInput: { input: 'input1', milliseconds: 1 } });
  await vi.waitFor(() => expect(driver.events).toMatchObject([{}, { data: { input: 'input1' } }]), patience);

  for (const address of [1, 2, 3, 4]) {
    const hwId = `lobby-0${address}`;
    const pulse = { hwId, relay: 1, milliseconds: 500 };
    expect(await driver.execute('pulse', pulse)).toEqual({ relay: 1, milliseconds: 500, timedBy: 'gateway' });
    await vi.waitFor(async () => expect(await historyOf(bus, address)).toEqual([true, false]), patience);
    const { history } = await bus.state(address);
    const [on, off] = history.slice(-2);
    expect((off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0)).toBeGreaterThanOrEqual(500);
  }
});

it('leaves a relay to its watchdog when it is cut off, and switches nothing twice when it is back', async () => {
  await using bus = await simulated();
  {
    await using driver = await drive(bus.port, { hostWatchdogMs: SHORT_WATCHDOG_MS });
    await driver.ready();
    for (const address of [1, 3]) {
      await driver.execute('pulse', { hwId: `lobby-0${address}`, relay: 0, milliseconds: 600_000 });
    }
    await vi.waitFor(async () => expect((await bus.stats()).broadcasts).toBeGreaterThan(3), patience);
    expect((await historyOf(bus, 1))[0]).toBe(true);
    await bus.hangUp();
    expect(await driver.run).toMatchObject({ code: 'LINK_LOST' } satisfies Partial<DriverError>);
    for (const address of [1, 3]) {
      await vi.waitFor(async () => expect(await outputOf(bus, address, 'output0')).toBe(false), patience);
    }
  }
  await bus.replug();
  await using again = await drive(bus.port);
  await again.ready();
  await again.execute('pulse', { hwId: 'lobby-01', relay: 0, milliseconds: 200 });
  await vi.waitFor(async () => expect(await outputOf(bus, 1, 'output0')).toBe(false), patience);
  expect(await historyOf(bus, 1)).toEqual([true, false, true, false]);
});

it('takes nothing that is broken for an answer', async () => {
  await using bus = await simulated();
  await using driver = await drive(bus.port);
  await driver.ready();
  await bus.set(1, { faults: { corrupt: true } });
  await bus.set(2, { faults: { noise: '00ff41' } });
  await bus.set(3, { faults: { truncate: 2 } });
  await vi.waitFor(() => expect(driver.report('lobby-01').connected).toBe(false), patience);
  await vi.waitFor(() => expect(driver.report('lobby-03').connected).toBe(false), patience);
  await vi.waitFor(() => expect(driver.report('lobby-02').connected).toBe(true), patience);
  for (const address of [1, 2, 3]) await bus.set(address, { faults: null });
  await driver.ready();
  // That it was restarted is found out while the pulse is under way, and does not end it.
  await bus.set(1, { restart: true });
  await driver.execute('pulse', { hwId: 'lobby-01', relay: 2, milliseconds: 3_000 });
  await vi.waitFor(async () => expect((await bus.state(1)).wasReset).toBe(false), patience);
  await vi.waitFor(async () => expect(await outputOf(bus, 1, 'output2')).toBe(false), patience);
  const [on, off] = (await bus.state(1)).history.slice(-2);
  expect((off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0)).toBeGreaterThanOrEqual(3_000);
});
