/**
 * Notifies systemd that the daemon lives, but only while it works: a timer that fires proves no more than that timers
 * fire. Each sign of life is earned by every check (the writer, the interface, the supervisor of hosts) within its
 * deadline. When one fails the feeding stops, and systemd kills and restarts the daemon (WatchdogSec=).
 */
import { settles } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { Notifier } from './notify.ts';

/** Looks within the time systemd allows: one that comes late, or one lost word, is not yet the end. */
const LOOKS = 3;

export interface Vital {
  /** What an operator calls it. */
  name: string;
  /** Rejects, or never settles, when it does not work any more. */
  check(): Promise<unknown>;
}

export interface WatchdogOptions {
  notifier: Notifier;
  vitals: readonly Vital[];
  /** What `systemctl status` shows while all is well. */
  describe(): string;
  clock: Clock;
  log: Log;
}

/** Runs until the signal fires; at once over when systemd does not ask for signs of life. */
export async function feedWatchdog(options: WatchdogOptions, signal: AbortSignal): Promise<void> {
  const { notifier, vitals, describe, clock, log } = options;
  if (notifier.watchdogMs === undefined) return;
  const intervalMs = notifier.watchdogMs / LOOKS;
  let wasWell = true;
  while (!signal.aborted) {
    const stuck = await stuckOnes(vitals, intervalMs, clock);
    if (stuck.length === 0) {
      notifier.alive();
      notifier.status(describe());
    } else {
      const names = stuck.join(', ');
      notifier.status(`not working: ${names}`);
      if (wasWell)
        log.error({ stuck }, `${names} does not work; systemd will restart the daemon unless it does soon`);
    }
    wasWell = stuck.length === 0;
    // Rejects only when the signal fires, which the loop condition sees.
    await clock.sleep(intervalMs, signal).catch(() => undefined);
  }
}

async function stuckOnes(vitals: readonly Vital[], withinMs: number, clock: Clock): Promise<string[]> {
  const working = await Promise.all(
    vitals.map(async ({ check }) => {
      let passed = false;
      const checked = check().then(() => {
        passed = true;
      });
      await settles(checked, withinMs, clock);
      return passed;
    }),
  );
  return vitals.filter((_, index) => !working[index]).map(({ name }) => name);
}
