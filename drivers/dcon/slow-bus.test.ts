/** Many modules on a wire that carries six exchanges a second. */
import { expect, it } from 'vitest';
import { openTestDriver } from '../../test/drivers/dcon/driver.ts';

const BAUD = 1_200;
const MODULES = 12;
const WATCHDOG_MS = 10_000;
/** What bringUp asks an I-7060 (scripts.ts). */
const QUESTIONS = 9;
/** A question and its answer, 17 characters of ten bits, with the silence before it and the turnaround. */
const EXCHANGE_MS = 165;
/** Questions and polls take turns. */
const ALL_UP_MS = MODULES * QUESTIONS * 2 * EXCHANGE_MS;

const hwIdOf = (address: number) => `lobby-${address.toString(16).padStart(2, '0').toUpperCase()}`;
const addresses = Array.from({ length: MODULES }, (_, index) => index + 1);

it.each([
  ['all of them', []],
  ['those that are there', [1, 7]],
])('has %s up in the time that the wire takes, each at the first try', async (_name, absent) => {
  const modules = addresses.map((address) => [
    address,
    { name: '7060', kind: 'host' as const, dead: absent.includes(address) },
  ]);
  await using bench = await openTestDriver(Object.fromEntries(modules), { options: { baudRate: BAUD } });
  await bench.clock.advance(ALL_UP_MS);
  const present = addresses.filter((address) => !absent.includes(address));
  expect(present.filter((address) => !bench.report(hwIdOf(address)).connected)).toEqual([]);
  expect(bench.wire.complaints.join()).not.toContain('not as it should be');
});

it('fires no relay whose safety time it keeps no pace with, and the module shows why', async () => {
  await using bench = await openTestDriver({ 1: { name: '4068', kind: 'safety' } });
  const pulse = { hwId: 'lobby-01', relay: 0, milliseconds: 1_000 };
  await bench.clock.advance(2_000);
  for (let time = 1; time <= 3; time += 1) {
    bench.clock.hold(WATCHDOG_MS);
    await bench.clock.advance(3_000);
    expect(bench.report('lobby-01')).toMatchObject({
      watchdog: { unfed: { pauseMilliseconds: expect.any(Number) } },
    });
  }
  await expect(bench.settled(bench.execute('pulse', pulse))).rejects.toMatchObject({
    code: 'DEVICE_OFFLINE',
    message: expect.stringMatching(/nothing was sent, as the bus is too slow/),
  });
  expect(bench.sent().some((text) => text.startsWith('#0110'))).toBe(false);
  await bench.clock.advance(120_000);
  await bench.settled(bench.execute('pulse', pulse));
});
