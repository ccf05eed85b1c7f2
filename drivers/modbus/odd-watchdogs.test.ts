/** Watchdogs that are not to be relied on, and what a test makes of them. On a manual clock. */
import { describe, expect, it } from 'vitest';
import { openBoard, openTestLink, type TestLink } from '../../test/drivers/modbus/link.ts';
import { type Habits, openOddWatchdog } from '../../test/simulators/bus/modbus/odd-watchdog.ts';
import type { Plain } from '../contract/driver.ts';
import { profileSchema } from './profile.ts';

const hwId = 'bus-1-1';
const WATCHDOG_MS = 5_000;
const TEST_MS = 60_000;
const IN_THE_SILENCE_MS = 3_000;

const PROFILE = profileSchema.parse({
  name: 'odd',
  product: 'Odd',
  source: 'test/simulators/bus/modbus/odd-watchdog.ts',
  outputs: { table: 'coil', address: 0, count: 4 },
  pulse: {
    way: 'switched',
    watchdog: {
      milliseconds: WATCHDOG_MS,
      release: [{ address: 0x42, value: 0 }],
      time: { address: 0x40, unitMilliseconds: 100 },
      enabledBy: 'writes',
      enable: [{ address: 0x42, value: 1 }],
      inForce: [{ address: 0x41, value: 1, shows: 'enabled' }],
      fedBy: 'requests',
    },
  },
}) as unknown as Plain;

async function openOdd(habits: Habits) {
  const device = { device: openOddWatchdog(habits, 0), behave: undefined };
  const link = await openTestLink({
    stations: new Map([[1, device]]),
    options: { devices: [{ unitId: 1 }] },
    profiles: { odd: PROFILE },
  });
  await link.clock.advance(1_500);
  expect(link.report(hwId)).toMatchObject({ connected: true });
  return { link, device };
}

const tested = (link: TestLink) => link.execute('testWatchdog', { hwId, relay: 2 }, TEST_MS);

it('one that can be relied on is proved by running out twice', async () => {
  const { link, device } = await openOdd({});
  await using _ = link;
  expect(await tested(link)).toMatchObject({ relay: 2 });
  expect(device.device.pins.history.map(({ on }) => on)).toEqual([true, false, true, false]);
});

it('one that runs out once only is no proof', async () => {
  const { link, device } = await openOdd({ expiresOnce: true });
  await using _ = link;
  await expect(tested(link)).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringMatching(/output2 is still closed/),
  });
  expect(device.device.pins.outputs()).toBe(0);
});

it('one that is not in force again after it has run out is no proof, and the answer says what it shows', async () => {
  const { link, device } = await openOdd({ startsOnce: true });
  await using _ = link;
  await expect(tested(link)).rejects.toThrow(
    'after it has run out once, the watchdog of Odd at address 1 is not in force (holding 65 shows 0): no relay is closed without it',
  );
  expect(device.device.pins.outputs()).toBe(0);
});

it('an exception 04 after the silence is no proof of an open relay', async () => {
  const { link, device } = await openOdd({ keepsRelays: true });
  await using _ = link;
  await expect(tested(link)).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringMatching(/output2 is still closed/),
  });
  expect(device.device.pins.outputs()).toBe(0);
});

it.each(['opensWhenCleared', 'opensWhenAsked'] as const)(
  'one that %s shows the same on the bus as a good one, so that a person has to see it (src/resources/rs485/watchdog.ts)',
  async (habit) => {
    const { link, device } = await openOdd({ [habit]: true });
    await using _ = link;
    expect(await tested(link)).toMatchObject({ relay: 2 });
    const [on, off] = device.device.pins.history;
    // Closed for the whole silence, which is longer than its watchdog waits.
    expect((off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0)).toBeGreaterThan(WATCHDOG_MS * 1.2);
  },
);

describe('a device that is without power during the test', () => {
  async function withDip(kind: 'odd' | 'icp-das-tm-r5' | 'expertdaq-ex9060-m' | 'wago-750-do8') {
    const { link, device } = kind === 'odd' ? await openOdd({ keepsTime: true }) : await openBoard(kind);
    const closed = Promise.withResolvers<void>();
    const proving = tested(link).catch((error: unknown) => error);
    void link.clock.sleep(IN_THE_SILENCE_MS).then(() => {
      device.device.restart(link.clock.monotonic());
      closed.resolve();
    });
    return { link, proving, closed: closed.promise };
  }

  it.each(['odd', 'icp-das-tm-r5', 'expertdaq-ex9060-m', 'wago-750-do8'] as const)(
    'is no proof (%s)',
    async (kind) => {
      const { link, proving, closed } = await withDip(kind);
      await using _ = link;
      await closed;
      expect(await proving).toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        message: expect.stringMatching(/output2 is open, but .* Nothing is proven/),
      });
    },
  );
});

it('a test waits for the pulses of all relays of the device, for its silence would end them', async () => {
  const { link } = await openBoard('icp-das-tm-r5');
  await using _ = link;
  await link.execute('pulse', { hwId, relay: 1, milliseconds: 30_000 });
  await expect(tested(link)).rejects.toMatchObject({
    code: 'BUSY',
    message: expect.stringMatching(/a pulse of output1 is under way/),
  });
});
