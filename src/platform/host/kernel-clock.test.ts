import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { type ManualClock, manualClock } from '../../../test/manual-clock.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { type KernelClock, openKernelClock } from './kernel-clock.ts';

let file: string;
let timedatectl: string;
beforeEach(() => {
  const folder = temporaryFolder();
  file = join(folder, 'synchronized');
  timedatectl = join(folder, 'timedatectl');
});

/** Plays timedatectl, as chrony makes it answer. */
function says(answer: string): void {
  const script = `#!/bin/sh\n[ "$*" = "show --property=NTPSynchronized --value" ] || exit 1\n${answer}\n`;
  writeFileSync(timedatectl, script, { mode: 0o755 });
}

function open(clock: ManualClock = manualClock(Date.UTC(2026, 10, 1))): KernelClock {
  return openKernelClock({ clock, file, timedatectl });
}

it('believes systemd-timesyncd, where the date is possible, without asking further', () => {
  const kernel = open();
  expect(kernel.isSynchronised()).toBe(false);
  writeFileSync(file, '');
  expect(kernel.isSynchronised()).toBe(true);
  expect(open(manualClock(0)).isSynchronised()).toBe(false);
});

it('believes the kernel, whatever program set it', async () => {
  const kernel = open();
  says('echo yes');
  await kernel.ask();
  expect(kernel.isSynchronised()).toBe(true);
  says('echo no');
  await kernel.ask();
  expect(kernel.isSynchronised()).toBe(false);
});

it.each([
  ['there is no timedatectl', () => {}],
  ['it cannot reach systemd', () => says('echo "Failed to connect to bus" >&2; exit 1')],
  ['it says something else', () => says('echo maybe')],
])('believes no one when %s', async (_what, play) => {
  play();
  const kernel = open();
  await kernel.ask();
  expect(kernel.isSynchronised()).toBe(false);
});

it('asks every minute', async () => {
  const clock = manualClock(Date.UTC(2026, 10, 1));
  const kernel = open(clock);
  const stop = new AbortController();
  const kept = kernel.keep(stop.signal).catch(() => {});
  onTestFinished(async () => {
    stop.abort();
    await kept;
  });
  const asked = () => vi.waitFor(() => expect(clock.sleepers()).toBe(1));
  await asked();
  says('echo yes');
  expect(kernel.isSynchronised()).toBe(false);
  await clock.advance(60_000);
  await asked();
  expect(kernel.isSynchronised()).toBe(true);
  rmSync(timedatectl);
  await clock.advance(60_000);
  await asked();
  expect(kernel.isSynchronised()).toBe(false);
});
