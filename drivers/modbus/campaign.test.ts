/**
 * Seeded campaigns against relays: pulses on several relays, lost requests, lost replies, exceptions before and after the deed, a
 * device without power, hosts that die at any moment. Whatever happened, no relay stays closed, and none closes unasked.
 */
import { describe, expect, it } from 'vitest';
import { type ManualClock, manualClock } from '../../test/manual-clock.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';
import { openTestLink, profileNamed, settingsWith, station } from './test-link.ts';

const hwId = 'bus-1-1';
const SEEDS = Array.from({ length: 12 }, (_, index) => index + 1);
const STEPS = 30;
const RELAYS = 4;
const LONGEST_MS = 6_000;
/** By then a pulse is over, a relay was read after it, and one that an earlier host left closed was opened. */
const QUIET_MS = 90_000;
const EXCEPTIONS = [4, 6, 0x0a, 0x0b];

const BOARDS = [
  ['waveshare-relay-8', 'waveshare-relay-8', true],
  ['latching-relay-8', 'waveshare-relay-8', false],
  ['icp-das-tm-r5', 'icp-das-tm-r5', true],
  ['wago-750-do8', 'wago-750-do8', true],
] as const;

async function campaign(kind: (typeof BOARDS)[number][0], profile: string, seed: number) {
  const random = openRandom(seed);
  const draw = (count: number) => Math.floor(random() * count);
  const clock: ManualClock = manualClock();
  const device = station({ kind });
  const open = () =>
    openTestLink({
      stations: new Map([[1, device]]),
      options: { devices: [{ unitId: 1 }] },
      profiles: { [profile]: profileNamed(profile) },
      clock,
    });
  const settings = settingsWith({
    relayIndex: 0,
    unlockDurationMilliseconds: 5_000,
    useInputPinMemory: false,
  });
  const apply = () =>
    link.execute('applySettings', { hwId, settingsVersion: 1, settings }).then(
      () => true,
      () => false,
    );
  let link = await open();
  await clock.advance(2_000);
  await apply();
  let pulses = 0;

  async function step(): Promise<void> {
    switch (draw(6)) {
      case 0:
      case 1: {
        pulses += 1;
        // One host at a time: what it does ends with it. Only relay 0 is looked after by the next one on a flash board.
        const relay = kind === 'latching-relay-8' ? 0 : draw(RELAYS);
        const data = { hwId, relay, milliseconds: 200 + draw(LONGEST_MS) };
        await link.execute('pulse', data, 100 + draw(2_000)).catch(() => undefined);
        return;
      }
      case 2: {
        const share = random();
        const code = EXCEPTIONS[draw(EXCEPTIONS.length)] ?? 4;
        device.behave = (request, answer) => {
          const fate = random();
          if (fate > share) return answer();
          if (fate < share / 3) return null;
          const reply = fate < (2 * share) / 3 ? answer() : null;
          return draw(2) === 0 || !reply ? null : framed(1, [(request[1] ?? 0) | 0x80, code]);
        };
        return;
      }
      case 3:
        device.behave = undefined;
        return;
      case 4: {
        // kill -9: nothing is said any more, and the next host comes later.
        await link[Symbol.asyncDispose]();
        await clock.advance(draw(8_000));
        link = await open();
        await clock.advance(1_500);
        await apply();
        return;
      }
      default:
        await clock.advance(draw(4_000));
    }
  }
  for (let count = 0; count < STEPS; count += 1) await step();
  device.behave = undefined;
  const closed = () => {
    device.device.advance(clock.monotonic());
    return device.device.pins.outputs();
  };
  const closings = () => device.device.pins.history.filter(({ on }) => on).length;
  return { link, clock, closed, closings, apply, pulses };
}

describe.each(BOARDS)('%s', (kind, profile) => {
  let all = 0;

  it.each(SEEDS)('is left open by its gateway, and was closed by pulses alone (seed %d)', async (seed) => {
    const { link, clock, closed, closings, apply, pulses } = await campaign(kind, profile, seed);
    await using _ = link;
    // The daemon applies them again as soon as the device is back.
    for (let tries = 0; tries < 30 && !(await apply()); tries += 1) await clock.advance(5_000);
    await clock.advance(QUIET_MS);
    expect(closed()).toBe(0);
    expect(closings()).toBeLessThanOrEqual(pulses);
    all += closings();
  });

  it('was closed at all', () => {
    expect(all).toBeGreaterThan(SEEDS.length / 2);
  });
});

describe.each(BOARDS.filter(([, , letsGo]) => letsGo))('%s', (kind, profile) => {
  it.each(SEEDS)('is left open when its gateway dies for good (seed %d)', async (seed) => {
    const { link, clock, closed } = await campaign(kind, profile, seed + 100);
    await link[Symbol.asyncDispose]();
    await clock.advance(LONGEST_MS + QUIET_MS);
    expect(closed()).toBe(0);
  });
});
