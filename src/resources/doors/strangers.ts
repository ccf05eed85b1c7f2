/** Locks that are heard and are at no door, such as one that was replaced; a retired one is asked to leave (leaving.ts). */
import type { StateReport } from '../../../drivers/contract/driver.ts';
import type { Log } from '../../platform/log.ts';
import type { Leaving } from './leaving.ts';
import type { DoorTable } from './table.ts';

/** Logged in one run; beyond these the log has enough. */
const LOGGED_MAX = 1_024;

export interface StrangersOptions {
  table: Pick<DoorTable, 'placeOfLock'>;
  log: Log;
  leaving: Pick<Leaving, 'heard'>;
  gatewayOfLink(linkId: string): string | undefined;
}

/** After each report of a link. */
export function openStrangers({ table, log, leaving, gatewayOfLink }: StrangersOptions) {
  const logged = new Set<string>();
  return (linkId: string, { subject, state }: StateReport): void => {
    const gateway = gatewayOfLink(linkId);
    const isThere = (state as { connected?: unknown } | null)?.connected === true;
    if (gateway === undefined || !subject.startsWith('device:') || !isThere) return;
    const lock = subject.slice('device:'.length);
    if (table.placeOfLock.get(lock)) return void logged.delete(lock);
    if (leaving.heard(lock, gateway) || logged.has(lock) || logged.size >= LOGGED_MAX) return;
    logged.add(lock);
    log.warn(
      { gateway, lock },
      `lock ${lock} is heard and is at no door: reset it, or have it join again to get one`,
    );
  };
}
