/**
 * Wanted → applied, once for all who need it: what the interface was told (a row and its version) is sent to the device
 * until the device reports it in force. The three users (door configuration, RS-485 settings, Zigbee channels) differ
 * in what they send and in what "reported" means; waiting, retrying, superseding and telling are the same.
 */
import type { Clock } from './clock.ts';
import type { Log } from './log.ts';

/** One thing that is not yet as it is wanted. */
export interface Due {
  id: string;
  /** Of what is wanted; a later version supersedes an earlier one, also while that is on its way. */
  version: number;
}

/** Why the last attempt failed, for …/state. `permanent`: the device refused it, and only a new version is tried. */
export interface ApplyFailure {
  version: number;
  /** DriverErrorCode of drivers/driver.ts. */
  code: string;
  message: string;
  /** Epoch milliseconds. */
  at: number;
  permanent: boolean;
}

export interface ReconcilerOptions {
  /** For the log, such as "rs485 settings". */
  name: string;
  /** From the table: everything whose wanted version is not the applied one; read at start and after every wake. */
  due(): Due[];
  /**
   * Sends one version to its device and stores, in a commit of its own, that it is applied. Rejects with a DriverError:
   * REFUSED and INVALID_COMMAND are permanent for that version, everything else is tried again with back-off.
   */
  apply(due: Due, signal: AbortSignal): Promise<void>;
  clock: Clock;
  log: Log;
  /** From 0 up to 1; Math.random when absent. */
  random?: () => number;
}

export interface Reconciler {
  /** Something is wanted, or a device is back: look again at once, forgetting its back-off. */
  wake(id: string): void;
  /** The last failure of the version wanted now; undefined when there is none. */
  failure(id: string): ApplyFailure | undefined;
  /** Epoch milliseconds of the next attempt; undefined when none is planned. */
  nextAttempt(id: string): number | undefined;
  /** Works until the signal fires; for supervise. */
  run(signal: AbortSignal): Promise<never>;
}
