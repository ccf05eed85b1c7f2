import { expect, it } from 'vitest';
import type { BusOverview } from '../resources/rs485/bus-schema.ts';
import { remember, WINDOW_MS } from './bus-history.ts';

const NONE = { replies: 0, timeouts: 0, crc: 0, framing: 0, refusals: 0, collisions: 0, late: 0 };
const device = (turnaroundMs: number | null, counters: Partial<typeof NONE>) => ({
  alive: true,
  turnaroundMs,
  counters: { ...NONE, ...counters },
});
const bus = (id: string, devices: ReturnType<typeof device>[], strayBytes: number | null = 0) =>
  ({ id, utilisation: 0.25, strayBytes, devices }) as unknown as BusOverview;

it('has what went wrong since the reading before, of all devices, and the slowest of them', () => {
  remember(bus('a', [device(3, { crc: 4 }), device(null, { timeouts: 9 })], 7), 0);
  const samples = remember(bus('a', [device(3, { crc: 6 }), device(8, { timeouts: 9 })], 8), 5_000);
  expect(samples).toMatchObject([
    { at: 0, utilisation: 0.25, latencyMs: 3, errors: { crc: 0, timeouts: 0, stray: 0 } },
    { at: 5_000, latencyMs: 8, errors: { crc: 2, timeouts: 0, stray: 1 } },
  ]);
});

it('begins again with a link that came up, and forgets what is older than its window', () => {
  remember(bus('b', [device(3, { crc: 40 })]), 0);
  expect(remember(bus('b', [device(3, { crc: 2 })]), WINDOW_MS - 1).at(-1)?.errors.crc).toBe(2);
  expect(remember(bus('b', [device(3, { crc: 2 })]), WINDOW_MS)).toHaveLength(2);
});
