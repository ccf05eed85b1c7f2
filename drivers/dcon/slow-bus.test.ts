/** Many modules on a wire that carries six exchanges a second. */
import { expect, it } from 'vitest';
import { openTestDriver } from './test-driver.ts';

const BAUD = 1_200;
const MODULES = 12;
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
