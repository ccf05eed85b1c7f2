import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openRereading, type Rereading } from './rereading.ts';

const EVERY_MS = 10_000;

let answer: (() => void)[];
let begun: number;
let rereading: Rereading;
beforeEach(async () => {
  vi.useFakeTimers();
  answer = [];
  begun = 0;
  rereading = openRereading(() => {
    begun += 1;
    return new Promise((resolve) => answer.push(resolve));
  }, EVERY_MS);
  await vi.advanceTimersByTimeAsync(0);
});
afterEach(() => {
  rereading.stop();
  vi.useRealTimers();
});

async function answered(): Promise<void> {
  answer.shift()?.();
  await vi.advanceTimersByTimeAsync(0);
}

it('reads every so often', async () => {
  await answered();
  await vi.advanceTimersByTimeAsync(EVERY_MS - 1);
  expect(begun).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toBe(2);
});

it('reads at once at the first event, and once for those that follow it', async () => {
  await answered();
  await vi.advanceTimersByTimeAsync(1_000);
  rereading.changed();
  await vi.advanceTimersByTimeAsync(0);
  expect(begun).toBe(2);
  await answered();
  for (let count = 0; count < 5; count += 1) rereading.changed();
  await vi.advanceTimersByTimeAsync(249);
  expect(begun).toBe(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toBe(3);
});

it('reads again what changed while it was reading, which the answer may not have', async () => {
  rereading.changed();
  void rereading.now();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(begun).toBe(1);
  await answered();
  await vi.advanceTimersByTimeAsync(250);
  expect(begun).toBe(2);
});

it('says when what changed before was read, not when a reading ends that had begun', async () => {
  const read = vi.fn();
  void rereading.now().then(read);
  await answered();
  await vi.advanceTimersByTimeAsync(250);
  expect(begun).toBe(2);
  expect(read).not.toHaveBeenCalled();
  await answered();
  expect(read).toHaveBeenCalled();
});

it('stops, and leaves no one waiting for what is not read any more', async () => {
  const before = rereading.now();
  rereading.stop();
  await Promise.all([before, rereading.now()]);
  await answered();
  await vi.advanceTimersByTimeAsync(EVERY_MS);
  expect(begun).toBe(1);
});
