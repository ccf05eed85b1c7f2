/** Products whose relays a host watchdog opens, against imitations that were written from their manuals. On a manual clock. */
import { describe, expect, it } from 'vitest';
import {
  openBoard,
  openTestLink,
  profileNamed,
  sent,
  station,
  type TestLink,
} from '../../test/drivers/modbus/link.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import type { Plain } from '../contract/driver.ts';

const hwId = 'bus-1-1';
const WATCHDOG_MS = 5_000;
const TEST_MS = 30_000;

const testWatchdog = (link: TestLink) => link.execute('testWatchdog', { hwId, relay: 2 }, TEST_MS);

describe.each(['icp-das-tm-r5', 'expertdaq-ex9060-m', 'wago-750-do8'] as const)('%s', (kind) => {
  it('is armed at first contact, and keeps its relay closed only while it is fed', async () => {
    const { link, device } = await openBoard(kind);
    await using _ = link;
    expect(link.report(hwId)).toMatchObject({ connected: true, watchdog: { milliseconds: WATCHDOG_MS } });
    await link.execute('pulse', { hwId, relay: 2, milliseconds: 60_000 });
    await link.clock.advance(4 * WATCHDOG_MS);
    device.device.advance(link.clock.monotonic());
    expect(device.device.pins.outputs()).toBe(0b100);
    await link[Symbol.asyncDispose]();
    const at = link.clock.monotonic();
    device.device.advance(at + WATCHDOG_MS);
    expect(device.device.pins.outputs()).toBe(0);
  });

  it('proves its watchdog by silence, and is used again afterwards', async () => {
    const { link, device } = await openBoard(kind);
    await using _ = link;
    const answer = await testWatchdog(link);
    expect(answer).toEqual({
      relay: 2,
      waitedMilliseconds: 6_500,
      proof: link.report(hwId)?.watchdog?.proof,
    });
    const [on, off] = device.device.pins.history;
    expect(on).toMatchObject({ output: 2, on: true });
    // By itself, and not by what came after the silence.
    expect(off?.monotonicMs).toBeLessThanOrEqual((on?.monotonicMs ?? 0) + WATCHDOG_MS + 50);
    await expect(link.execute('pulse', { hwId, relay: 2, milliseconds: 1_000 })).rejects.toMatchObject({
      code: 'DEVICE_OFFLINE',
      message: expect.stringMatching(/being read after a start or a test of its watchdog; nothing was sent$/),
    });
    await link.clock.advance(3_000);
    expect(link.report(hwId)).toMatchObject({ connected: true });
    await link.execute('pulse', { hwId, relay: 2, milliseconds: 1_000 });
    expect(device.device.pins.outputs()).toBe(0b100);
  });

  it('is armed again when it has lost its watchdog, and fires nothing until then', async () => {
    const { link, device } = await openBoard(kind);
    await using _ = link;
    // No one asks for so long: a host that stood still.
    device.behave = () => null;
    await link.clock.advance(2 * WATCHDOG_MS);
    device.behave = undefined;
    await link.clock.advance(20_000);
    expect(link.report(hwId)).toMatchObject({ connected: true });
    device.device.restart(link.clock.monotonic());
    await link.clock.advance(6_000);
    expect(device.device.describe(0)).toMatchObject({
      watchdog: kind === 'wago-750-do8' ? { running: 1, time: 50 } : { enabled: 1, timeout: 50 },
    });
    expect(link.report(hwId)).toMatchObject({ connected: true });
  });
});

describe('a watchdog that nothing enables', () => {
  /** What was valid before: a time, and nothing else. */
  async function openWrong(kind: 'icp-das-tm-r5' | 'wago-750-do8') {
    const device = station({ kind });
    const right = profileNamed(kind) as { pulse: { watchdog: { [key: string]: Plain } } };
    const { milliseconds, time, release } = right.pulse.watchdog as Record<string, Plain>;
    const watchdog = { milliseconds, time, release, enabledBy: 'time', fedBy: 'requests' } as Plain;
    const profile = { ...right, pulse: { way: 'switched', watchdog } };
    const link = await openTestLink({
      stations: new Map([[1, device]]),
      options: { devices: [{ unitId: 1 }] },
      profiles: { [kind]: profile },
    });
    await link.clock.advance(1_500);
    return { link, device };
  }

  it.each(['icp-das-tm-r5', 'wago-750-do8'] as const)(
    'of %s is no proof, and the relay is opened',
    async (kind) => {
      const { link, device } = await openWrong(kind);
      await using _ = link;
      await expect(testWatchdog(link)).rejects.toMatchObject({
        code: 'REFUSED',
        message: expect.stringMatching(/still closed .* its watchdog opens nothing/),
      });
      expect(device.device.pins.outputs()).toBe(0);
      await link.clock.advance(3_000);
      expect(link.report(hwId)).toMatchObject({ connected: true });
    },
  );
});

it('asks a device nothing while its watchdog is tested, neither polls nor probes', async () => {
  const { link, device } = await openBoard('icp-das-tm-r5');
  await using _ = link;
  const until = new AbortController();
  const deadline = link.clock.monotonic() + TEST_MS;
  const tested = link.driver
    .execute({ kind: 'testWatchdog', data: { hwId, relay: 0 }, deadline }, until.signal)
    .catch((error: unknown) => error);
  await link.clock.advance(1_000);
  const before = link.wire.sent.length;
  await expect(link.execute('probe', { addresses: [1], repeats: 1 })).rejects.toMatchObject({ code: 'BUSY' });
  await expect(link.execute('pulse', { hwId, relay: 1, milliseconds: 500 })).rejects.toMatchObject({
    code: 'DEVICE_OFFLINE',
  });
  await link.clock.advance(3_000);
  expect(link.wire.sent.length).toBe(before);
  until.abort(new Error('cancelled'));
  await link.clock.advance(3_000);
  expect(await tested).toMatchObject({ message: 'cancelled' });
  // Opened as soon as it was cancelled, and not by its watchdog.
  expect(device.device.pins.history.map(({ on }) => on)).toEqual([true, false]);
  expect(link.report(hwId)).toMatchObject({ connected: true });
});

it('is fed by what its profile writes, in turns, and not while an output stays on', async () => {
  const right = profileNamed('wago-750-do8') as { pulse: { watchdog: { [key: string]: Plain } } };
  const watchdog = {
    ...right.pulse.watchdog,
    // Function 6 alone.
    enable: [
      { address: 0x1001, value: 0x0020 },
      { address: 0x1003, value: 0 },
      { address: 0x1003, value: 1 },
    ],
    inForce: [{ address: 0x1006, value: 1, shows: 'enabled' }],
    fedBy: 'writes',
    feed: { address: 0x1003, values: [2, 3] },
  } as unknown as Plain;
  const device = station({ kind: 'wago-750-do8' });
  const link = await openTestLink({
    stations: new Map([[1, device]]),
    options: { devices: [{ unitId: 1 }] },
    profiles: { fed: { ...right, pulse: { way: 'switched', watchdog } } },
  });
  await using _ = link;
  await link.clock.advance(10 * WATCHDOG_MS);
  expect(device.device.describe(0)).toMatchObject({ watchdog: { running: 1 } });
  expect(link.history(hwId).some(({ connected }) => !connected)).toBe(false);
  const feeds = link.wire.sent.filter(({ bytes }) => bytes[1] === 6 && bytes[2] === 0x10 && bytes[3] === 3);
  expect(
    feeds
      .slice(-4)
      .map(({ bytes }) => bytes[5])
      .toSorted(),
  ).toEqual([2, 2, 3, 3]);
  // It says that an output is on, whatever it is ordered.
  device.behave = (request, answer) => {
    const reply = answer();
    return request[1] === 1 && reply ? Uint8Array.from(Buffer.from('010101019048', 'hex')) : reply;
  };
  await link.clock.advance(1_000);
  const before = sent(link, 6);
  await link.clock.advance(3_000);
  expect(sent(link, 6)).toBe(before);
});

it('proves nothing when the relay cannot be read after the silence', async () => {
  const { link, device } = await openBoard('wago-750-do8');
  await using _ = link;
  let reads = 0;
  device.behave = (request, answer) => {
    const reply = answer();
    if (request[1] !== 1 || !reply) return reply;
    reads += 1;
    // The first read sees the relay closed; those after the silence are damaged.
    return reads > 1 && reads < 5 ? reply.map((byte, index) => (index === 2 ? byte ^ 0xff : byte)) : reply;
  };
  await expect(testWatchdog(link)).rejects.toMatchObject({
    code: 'OUTCOME_UNKNOWN',
    message: expect.stringMatching(/nothing is proven; run the test again/),
  });
});

/** 0x55AA to 0x1008 stops the watchdog of a WAGO 750. */
const RELEASE = '100855aa';
const isRelease = (request: Uint8Array) => Buffer.from(request).toString('hex').startsWith(RELEASE, 4);

describe('a watchdog that runs while a relay is closed', () => {
  async function openClosed() {
    const { link, device } = await openBoard('wago-750-do8');
    await link.execute('pulse', { hwId, relay: 2, milliseconds: 60_000 });
    const closedAtRelease: number[] = [];
    const hear = (request: Uint8Array) => {
      if (isRelease(request)) closedAtRelease.push(device.device.pins.outputs());
    };
    return { link, device, closedAtRelease, hear };
  }

  it('is stopped only after the relay was seen open', async () => {
    const { link, device, closedAtRelease, hear } = await openClosed();
    await link[Symbol.asyncDispose]();
    const next = await openTestLink({
      stations: new Map([[1, device]]),
      options: { devices: [{ unitId: 1 }] },
      profiles: { 'wago-750-do8': profileNamed('wago-750-do8') },
    });
    await using _ = next;
    // The clock of the next link begins at 0.
    device.device.restart(0);
    device.device.pins.setOutput(2, true, 0);
    device.behave = (request, answer) => {
      hear(request);
      return answer();
    };
    await next.clock.advance(2_000);
    expect(closedAtRelease).toEqual([0]);
    expect(next.report(hwId)).toMatchObject({ connected: true });
  });

  it('is not stopped while the device does not open the relay', async () => {
    const { link, device, closedAtRelease, hear } = await openClosed();
    await using _ = link;
    device.behave = (request, answer) => {
      hear(request);
      // Every reply is lost for a while, and what switches is acknowledged and not done after that.
      if (link.clock.monotonic() < 6_000) return null;
      const isSwitched = request[1] === 15 || request[1] === 5;
      return isSwitched ? framed(1, [...request.subarray(1, 6)]) : answer();
    };
    await link.clock.advance(3_000);
    expect(link.report(hwId)).toMatchObject({ connected: false });
    device.device.pins.setOutput(2, true, link.clock.monotonic());
    await link.clock.advance(2_000);
    expect(closedAtRelease).toEqual([]);
  });

  it('is stopped after a spell offline only once the live pulse is ended', async () => {
    const { link, device, closedAtRelease, hear } = await openClosed();
    await using _ = link;
    let isLost = true;
    device.behave = (request, answer) => {
      hear(request);
      const reply = answer();
      return isLost ? null : reply;
    };
    await link.clock.advance(3_500);
    isLost = false;
    await link.clock.advance(20_000);
    expect(closedAtRelease.length).toBeGreaterThan(0);
    expect(closedAtRelease.every((outputs) => outputs === 0)).toBe(true);
    expect(link.report(hwId)).toMatchObject({ connected: true, pulse: null });
  });
});
