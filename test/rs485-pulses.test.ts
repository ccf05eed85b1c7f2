/** Relays on the real daemon: each pulse closes one once at most, and nothing that dies leaves a door open. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CELLAR, LOBBY, openRs485Site, type Rs485Site, waitFor } from './rs485-site.ts';
import type { SimulatedBus } from './simulators/bus/bus.ts';

const WATCHDOG_MS = 2_000;
const SHORT_MS = 200;
const IN_THE_MIDDLE_MS = 60_000;
const FAULTS = [
  // Twice: on a busy machine the reply to one may be late, and is truly `unknown`.
  {},
  {},
  { silent: 1 },
  { silent: 2 },
  { loss: { share: 0.4, seed: 7 } },
  { truncate: 2 },
  // From the pulse on. What is wrong before it may meet polls alone, which take the device for dead.
  { silentFromWrite: true },
];

let all: Rs485Site;
beforeAll(async () => {
  const lobby = { ...LOBBY, devices: [...LOBBY.devices, { address: 3, kind: 'icp-das-tm-r5' } as const] };
  all = await openRs485Site({ lobby, cellar: CELLAR, hostWatchdogMs: WATCHDOG_MS });
  await all.configure('IO-1', { relayIndex: 2, unlockDurationMilliseconds: SHORT_MS });
  for (const hwId of ['cellar-01', 'lobby-3']) {
    await all.configure(hwId, { relayIndex: 1, unlockDurationMilliseconds: SHORT_MS });
    expect((await all.post(hwId, 'pulse')).body).toMatchObject({ error: 'WATCHDOG_NOT_PROVEN' });
    await all.prove(hwId);
  }
}, 120_000);
afterAll(() => all[Symbol.asyncDispose]());

const closings = async (bus: SimulatedBus) =>
  (await bus.state(1)).history.filter(({ on }) => on).map(({ output }) => output);

it.each([
  ['lobby', 'IO-1', 'output2', 'device'],
  ['cellar', 'cellar-01', 'output1', 'gateway'],
] as const)(
  'on the %s bus a pulse closes its relay once, whatever is lost',
  async (id, hwId, output, timedBy) => {
    const bus = all[id];
    const wellBefore = (await closings(bus)).length;
    const outcomes: unknown[] = [];
    for (const faults of FAULTS) {
      await waitFor(async () =>
        expect(await all.device(hwId)).toMatchObject({ connectionState: { connected: true } }),
      );
      const before = (await closings(bus)).length;
      await bus.set(1, { faults });
      const { status, body } = await all.post(hwId, 'pulse');
      await bus.set(1, { faults: null });
      outcomes.push(body.outcome ?? body.error);
      const closed = (await closings(bus)).length - before;
      if (body.outcome === 'confirmed') expect([status, closed, body.timedBy]).toEqual([200, 1, timedBy]);
      else if (status === 503) expect(closed).toBe(0);
      else expect([body.outcome, closed <= 1]).toEqual(['unknown', true]);
      await waitFor(async () => expect((await bus.state(1)).outputs[output]).toBe(false));
      expect((await closings(bus)).length - before).toBe(closed);
    }
    expect(outcomes.slice(0, 2)).toContain('confirmed');
    expect(outcomes).toContain('unknown');
    expect(new Set((await closings(bus)).slice(wellBefore))).toEqual(new Set([Number(output.at(-1))]));
  },
);

it.each([
  ['an I-7060 (DCON)', 'cellar', 'cellar-01', 1, WATCHDOG_MS],
  ['a tM-R5 (Modbus)', 'lobby', 'lobby-3', 3, 5_000],
] as const)(
  'a pulse that no one lives to end is ended by the watchdog of %s, and by no one begun again',
  async (_, id, hwId, address, watchdogMs) => {
    const bus = all[id];
    const history = async () => (await bus.state(address)).history;
    const isClosed = async () => (await bus.state(address)).outputs.output1;
    await all.configure(hwId, { unlockDurationMilliseconds: IN_THE_MIDDLE_MS });
    const pulse = all.post(hwId, 'pulse');
    expect((await pulse).body).toMatchObject({ outcome: 'confirmed', milliseconds: IN_THE_MIDDLE_MS });
    const before = (await history()).filter(({ on }) => on).length;
    const host = all.hostPid();
    // Left alone, it would end the pulse as it goes.
    process.kill(host, 'SIGSTOP');
    await all.site.daemon.kill();
    process.kill(host, 'SIGKILL');
    expect(await isClosed()).toBe(true);
    await waitFor(async () => expect(await isClosed()).toBe(false));
    const [on, off] = (await history()).slice(-2);
    expect((off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0)).toBeGreaterThan(watchdogMs / 2);
    await all.site.daemon.start();
    await waitFor(async () => expect((await all.state(hwId)).inForce).toBe(true));
    expect((await history()).filter((one) => one.on).length).toBe(before);
    // The proof outlasts the restart.
    await all.configure(hwId, { unlockDurationMilliseconds: SHORT_MS });
    expect((await all.post(hwId, 'pulse')).body).toMatchObject({ outcome: 'confirmed' });
  },
  90_000,
);
