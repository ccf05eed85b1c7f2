/**
 * Seeded campaigns against relays: pulses on several relays, lost requests, lost and late replies, exceptions before and after
 * the deed, power cuts after it, hosts that die at any moment. Whatever happened: a relay closes only for a pulse that waits for its outcome, once
 * and before its deadline; a pulse that is confirmed has closed it; one that says that nothing was switched has not; and no
 * relay stays closed.
 */
import { describe, expect, it } from 'vitest';
import { type CarrierKind, openCarrier } from '../../test/drivers/modbus/carriers.ts';
import { openTestLink, profileNamed, settingsWith, station } from '../../test/drivers/modbus/link.ts';
import { type ManualClock, manualClock } from '../../test/manual-clock.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import type { Switching } from '../../test/simulators/bus/pins.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';
import type { DriverError } from '../contract/driver.ts';

const hwIdOf = (kind: Board) => (kind === 'gatehouse-io' ? 'GIO-0001' : 'bus-1-1');
const SEEDS = Array.from({ length: Number(process.env.MODBUS_CAMPAIGNS ?? 12) }, (_, index) => index + 1);
const STEPS = 30;
const RELAYS = 4;
const LONGEST_MS = 6_000;
/** By then a pulse is over, a relay was read after it, and one that an earlier host left closed was opened. */
const QUIET_MS = 90_000;
/** As many of the deeds without an answer are followed by a power cut, which opens the relays. */
const POWER_CUTS = 0.5;
const EXCEPTIONS = [4, 6, 0x0a, 0x0b];
/** Of those also without the deed. */
const REFUSALS = [4, 6];
/** More than turnaroundMaxMs at the least; shorter than a poll interval at the most, or as long as several. */
const LATE_MIN_MS = 110;
const LATE_MAX_MS = [90, 3_000];
/** A request that leaves within its deadline is heard so much later: eight characters at 9600 baud. */
const REQUEST_MS = 10;
/** Nothing was switched. */
const NOT_SWITCHED = ['DEVICE_OFFLINE', 'DEADLINE_PASSED', 'BUSY', 'LINK_LOST', 'REFUSED', 'NO_REPLY'];

const BOARDS = [
  ['waveshare-relay-8', 'waveshare-relay-8', true],
  ['latching-relay-8', 'waveshare-relay-8', false],
  ['icp-das-tm-r5', 'icp-das-tm-r5', true],
  ['wago-750-do8', 'wago-750-do8', true],
  ['eletechsup-r421a08', 'eletechsup-r421a08', true],
  ['gatehouse-io', 'gatehouse-io', true],
] as const;
/** Fewer of them: what they add are frames. */
const CARRIED_SEEDS = SEEDS.slice(0, Math.ceil(SEEDS.length / 2));

type Board = (typeof BOARDS)[number][0];

/** A device whose late replies come in the order of their requests, to the host that is there then. */
function openLateReplies(clock: ManualClock, deliver: (bytes: Uint8Array) => void) {
  let lastAt = 0;
  return (bytes: Uint8Array, milliseconds: number): null => {
    lastAt = Math.max(lastAt, clock.monotonic() + milliseconds);
    void clock.sleep(lastAt - clock.monotonic()).then(() => deliver(bytes));
    return null;
  };
}

/** What is wrong with the outcome of one pulse, or with what its relay did meanwhile. */
function faultsOf(
  { relay, begunAt, deadline, wasOn }: { relay: number; begunAt: number; deadline: number; wasOn: boolean },
  code: string,
  history: readonly Switching[],
): string[] {
  const closings = history.filter(
    ({ output, on, monotonicMs }) => on && output === relay && monotonicMs >= begunAt,
  );
  const what = `pulse of relay ${relay} at ${begunAt}, ${code}`;
  const faults: string[] = [];
  if (closings.length > 1) faults.push(`${what}: it closed ${closings.length} times`);
  if (closings.some(({ monotonicMs }) => monotonicMs > deadline + REQUEST_MS))
    faults.push(`${what}: it closed late`);
  if (code === 'confirmed' && closings.length === 0 && !wasOn) faults.push(`${what}: it never closed`);
  if (NOT_SWITCHED.includes(code) && closings.length > 0) faults.push(`${what}: it closed`);
  return faults;
}

async function campaign(kind: Board, profile: string, seed: number, by: CarrierKind = 'rtu') {
  const random = openRandom(seed);
  const draw = (count: number) => Math.floor(random() * count);
  const clock: ManualClock = manualClock();
  const hwId = hwIdOf(kind);
  const device = station({ kind, hwId });
  const carrier = openCarrier(by, random);
  const { onWire } = carrier;
  const open = async () => {
    const next = await openTestLink({
      stations: new Map([[1, device]]),
      options: { devices: [{ unitId: 1 }], ...carrier.options },
      profiles: { [profile]: profileNamed(profile) },
      clock,
      ...(onWire && { onWire }),
    });
    carrier.connect(next);
    return next;
  };
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
  const { pins } = device.device;
  const closings = () => pins.history.filter(({ on }) => on).length;
  const closed = () => {
    device.device.advance(clock.monotonic());
    return pins.outputs();
  };
  const late = openLateReplies(clock, (bytes) => link.wire.deliver(bytes));
  const isOnline = async () => {
    const ended = await Promise.race([link.ended.then(() => true), clock.advance(0).then(() => false)]);
    return !ended;
  };
  const faults: string[] = [];
  let link = await open();
  await clock.advance(2_000);
  await apply();
  let judged = closings();

  function unasked(): void {
    const all = closings();
    if (all !== judged) faults.push(`${all - judged} closings by ${clock.monotonic()}, and no pulse waits`);
    judged = all;
  }

  async function fire(): Promise<void> {
    // One host at a time: what it does ends with it. Only relay 0 is looked after by the next one on a flash board.
    const relay = kind === 'latching-relay-8' ? 0 : draw(RELAYS);
    const milliseconds = 200 + draw(LONGEST_MS);
    const withinMs = 100 + draw(2_000);
    const begunAt = clock.monotonic();
    const pulse = { relay, begunAt, deadline: begunAt + withinMs, wasOn: ((closed() >> relay) & 1) === 1 };
    const before = closings();
    unasked();
    const code = await link.execute('pulse', { hwId, relay, milliseconds }, withinMs).then(
      () => 'confirmed',
      (error: DriverError) => error.code ?? String(error),
    );
    faults.push(...faultsOf(pulse, code, pins.history));
    judged =
      before +
      pins.history.filter(({ on, output, monotonicMs }) => on && output === relay && monotonicMs >= begunAt)
        .length;
    unasked();
  }

  function disturb(): void {
    const share = random();
    carrier.disturb(share / 2);
    const lateShare = random();
    const latestMs = LATE_MAX_MS[draw(LATE_MAX_MS.length)] ?? 0;
    const code = EXCEPTIONS[draw(EXCEPTIONS.length)] ?? 4;
    device.behave = (request, answer) => {
      const fate = random();
      if (random() < lateShare) {
        const reply = answer();
        // Of a connection that is over nothing comes any more.
        return reply && late(carrier.carried(reply), LATE_MIN_MS + latestMs * random());
      }
      if (fate > share) return answer();
      if (fate < share / 3) return null;
      const isDone = fate < (2 * share) / 3 && answer() !== null;
      if (isDone && random() < POWER_CUTS) {
        device.device.restart(clock.monotonic());
        return null;
      }
      const isRefused = draw(2) === 1 && (isDone || REFUSALS.includes(code));
      return isRefused ? framed(1, [(request[1] ?? 0) | 0x80, code]) : null;
    };
  }

  async function revive(): Promise<void> {
    await link[Symbol.asyncDispose]();
    await clock.advance(draw(8_000));
    link = await open();
    await clock.advance(1_500);
    await apply();
  }

  async function step(): Promise<void> {
    switch (draw(6)) {
      case 0:
      case 1:
        return await fire();
      case 2:
        return disturb();
      case 3:
        device.behave = undefined;
        carrier.disturb(0);
        return;
      case 4: {
        // kill -9: nothing is said any more, and the next host comes later.
        await revive();
        return;
      }
      default:
        await clock.advance(draw(4_000));
    }
  }
  for (let count = 0; count < STEPS; count += 1) {
    await step();
    if (!(await isOnline())) await revive();
  }
  device.behave = undefined;
  carrier.disturb(0);
  return { link, clock, closed, closings, apply, faults, unasked };
}

/** The end of a run whose gateway lives: the relay is open, and pulses alone closed it. Returns how often. */
async function closedByPulsesAlone(run: Awaited<ReturnType<typeof campaign>>): Promise<number> {
  const { link, clock, closed, closings, apply, faults, unasked } = run;
  await using _ = link;
  // The daemon applies them again as soon as the device is back.
  for (let tries = 0; tries < 30 && !(await apply()); tries += 1) await clock.advance(5_000);
  await clock.advance(QUIET_MS);
  unasked();
  expect(faults).toEqual([]);
  expect(closed()).toBe(0);
  return closings();
}

describe.each(BOARDS)('%s', (kind, profile) => {
  let all = 0;

  it.each(SEEDS)('is left open by its gateway, and was closed by pulses alone (seed %d)', async (seed) => {
    all += await closedByPulsesAlone(await campaign(kind, profile, seed));
  });

  it('was closed at all', () => {
    expect(all).toBeGreaterThan(SEEDS.length / 2);
  });
});

describe.each(
  BOARDS.flatMap(([kind, profile]) => (['ascii', 'tcp'] as const).map((by) => [kind, by, profile] as const)),
)('%s, carried by %s', (kind, by, profile) => {
  let all = 0;

  it.each(CARRIED_SEEDS)('closes for pulses alone, and is left open (seed %d)', async (seed) => {
    all += await closedByPulsesAlone(await campaign(kind, profile, seed + 2_000, by));
  });

  it('was closed at all', () => {
    expect(all).toBeGreaterThan(CARRIED_SEEDS.length / 2);
  });
});

describe.each(BOARDS.filter(([, , letsGo]) => letsGo))('%s', (kind, profile) => {
  it.each(SEEDS)('is left open when its gateway dies for good (seed %d)', async (seed) => {
    const { link, clock, closed, faults, unasked } = await campaign(kind, profile, seed + 1_000);
    await link[Symbol.asyncDispose]();
    await clock.advance(LONGEST_MS + QUIET_MS);
    unasked();
    expect(faults).toEqual([]);
    expect(closed()).toBe(0);
  });
});
