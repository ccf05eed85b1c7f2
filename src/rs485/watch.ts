/** Tells each bus which devices to poll, besides those its configuration names: the rows that have an address. */
import { DriverError } from '../../drivers/driver.ts';
import type { Watch } from '../../drivers/rs485.ts';
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { Execute } from './settings.ts';
import type { Rs485Table } from './table.ts';

/** The driver only takes note of it. */
const WATCH_TIMEOUT_MS = 10_000;
const RETRY_MS = 5_000;

export interface WatchOptions {
  table: Rs485Table;
  execute: Execute;
  clock: Clock;
  log: Log;
}

export interface Watcher {
  /** Devices of this bus were added, removed or moved. */
  changed(bus: string): void;
  /** A driver that has just opened its link watches nothing. */
  link(bus: string, up: boolean): void;
  /** For supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openWatch({ table, execute, clock, log }: WatchOptions): Watcher {
  /** Buses that are up, each with what its present driver has, as JSON. */
  const drivers = new Map<string, { has: string }>();
  const stale = new Set<string>();
  let nap = new AbortController();

  function wake(bus: string): void {
    stale.add(bus);
    nap.abort();
  }

  async function tell(bus: string, signal: AbortSignal): Promise<void> {
    const driver = drivers.get(bus);
    const devices = table.addressed.all(bus).map(({ address, hwId }) => ({ address, hwId }));
    const list = JSON.stringify(devices);
    stale.delete(bus);
    if (!driver || driver.has === list) return;
    try {
      const data: Watch = { devices };
      await execute(bus, { kind: 'watch', data, timeoutMs: WATCH_TIMEOUT_MS }, signal);
      driver.has = list;
    } catch (error) {
      // Another driver has the link by then: link() will say so.
      if (error instanceof DriverError && error.code === 'LINK_LOST') return;
      stale.add(bus);
      log.warn({ link: bus, err: error }, `bus ${bus} was not told which devices to poll; it will be`);
    }
  }

  return {
    changed: wake,
    link(bus, up) {
      if (!up) return void drivers.delete(bus);
      drivers.set(bus, { has: '[]' });
      wake(bus);
    },
    async run(signal) {
      for (;;) {
        signal.throwIfAborted();
        nap = new AbortController();
        await Promise.all([...stale].map((bus) => tell(bus, signal)));
        const rested = AbortSignal.any([signal, nap.signal]);
        if (!rested.aborted) await clock.sleep(RETRY_MS, rested).catch(() => undefined);
      }
    },
  };
}
