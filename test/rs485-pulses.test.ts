/** Relays on the real daemon: each pulse closes one once at most, and nothing that dies leaves a door open. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CELLAR, LOBBY, openRs485Site, type Rs485Site, waitFor } from './rs485-site.ts';
import type { SimulatedBus } from './simulators/bus/bus.ts';

const WATCHDOG_MS = 2_000;
const SHORT_MS = 200;
const IN_THE_MIDDLE_MS = 60_000;
const FAULTS = [
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
  all = await openRs485Site({ lobby: LOBBY, cellar: CELLAR, hostWatchdogMs: WATCHDOG_MS });
  await all.configure('IO-1', { relayIndex: 2, unlockDurationMilliseconds: SHORT_MS });
  await all.configure('cellar-01', { relayIndex: 1, unlockDurationMilliseconds: SHORT_MS });
}, 60_000);
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
    expect(outcomes[0]).toBe('confirmed');
    expect(outcomes).toContain('unknown');
    expect(new Set((await closings(bus)).slice(wellBefore))).toEqual(new Set([Number(output.at(-1))]));
  },
);

it('a pulse that nobody lives to end is ended by the watchdog of the module, and by nobody begun again', async () => {
  await all.configure('cellar-01', { unlockDurationMilliseconds: IN_THE_MIDDLE_MS });
  const pulse = all.post('cellar-01', 'pulse');
  expect((await pulse).body).toMatchObject({ outcome: 'confirmed', milliseconds: IN_THE_MIDDLE_MS });
  const before = await closings(all.cellar);
  const host = all.hostPid();
  // Left alone, it would end the pulse as it goes.
  process.kill(host, 'SIGSTOP');
  await all.site.daemon.kill();
  process.kill(host, 'SIGKILL');
  expect((await all.cellar.state(1)).outputs.output1).toBe(true);
  await waitFor(async () => expect((await all.cellar.state(1)).outputs.output1).toBe(false));
  const [on, off] = (await all.cellar.state(1)).history.slice(-2);
  expect((off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0)).toBeGreaterThan(WATCHDOG_MS / 2);
  await all.site.daemon.start();
  await waitFor(async () => expect((await all.state('cellar-01')).inForce).toBe(true));
  expect(await closings(all.cellar)).toEqual(before);
  await all.configure('cellar-01', { unlockDurationMilliseconds: SHORT_MS });
  expect((await all.post('cellar-01', 'pulse')).body).toMatchObject({ outcome: 'confirmed' });
}, 60_000);
