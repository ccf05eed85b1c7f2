/**
 * Whether a time server was reached. systemd-timesyncd leaves a file; chrony, ntpd and others inform the kernel, whose
 * word (adjtimex(2)) a sandboxed service gets from timedatectl(1).
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Clock } from '../clock.ts';

/** systemd-timesyncd.service(8): made once a time server was reached. */
const SYNCHRONISED_FILE = '/run/systemd/timesync/synchronized';
/** No wall clock that is right shows less: this software was not written yet. */
const EARLIEST_MS = Date.UTC(2026, 0, 1);
const ASK_EVERY_MS = 60_000;
/** The answer starts a service of systemd, if it does not run. */
const ANSWER_WITHIN_MS = 5_000;

export interface KernelClock {
  /** Whether the wall clock can be believed; events carry it (`clocksynced`). */
  isSynchronised(): boolean;
  /** Asks once; `keep` does until the signal fires. */
  ask(signal?: AbortSignal): Promise<void>;
  keep(signal: AbortSignal): Promise<never>;
}

export interface KernelClockOptions {
  clock: Clock;
  /** For tests. */
  file?: string;
  timedatectl?: string;
}

export function openKernelClock(options: KernelClockOptions): KernelClock {
  const { clock, file = SYNCHRONISED_FILE, timedatectl = 'timedatectl' } = options;
  let kernelSays = false;
  const ask = async (signal?: AbortSignal) => {
    kernelSays = !existsSync(file) && (await answerOf(timedatectl, signal)) === 'yes';
  };
  return {
    isSynchronised: () => clock.now() >= EARLIEST_MS && (kernelSays || existsSync(file)),
    ask,
    async keep(signal) {
      for (;;) {
        await ask(signal);
        await clock.sleep(ASK_EVERY_MS, signal);
      }
    },
  };
}

/** Undefined when it cannot be had: no systemd, or a bus that does not answer. */
function answerOf(timedatectl: string, signal: AbortSignal | undefined): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const options = { timeout: ANSWER_WITHIN_MS, env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' }, signal };
  execFile(timedatectl, ['show', '--property=NTPSynchronized', '--value'], options, (error, stdout) =>
    resolve(error ? undefined : stdout.trim()),
  );
  return promise;
}
