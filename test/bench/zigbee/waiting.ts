/** Waiting for what other processes do. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Throws when it is not so in time. */
export async function until(
  what: string,
  timeoutMs: number,
  everyMs: number,
  isSo: () => Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms until ${what}`);
    await sleep(everyMs);
  }
}
