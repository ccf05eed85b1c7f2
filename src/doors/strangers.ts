/** Locks that are heard and are at no door, such as one that was retired while it was out of reach. */
import type { StateReport } from '../../drivers/driver.ts';
import type { Log } from '../log.ts';
import type { DoorTable } from './table.ts';

/** Told of in one run; beyond these the log has enough. */
const TOLD_MAX = 1_024;

export interface StrangersOptions {
  table: Pick<DoorTable, 'placeOfLock'>;
  log: Log;
  gatewayOfLink(linkId: string): string | undefined;
}

/** After each report of a link. */
export function openStrangers({ table, log, gatewayOfLink }: StrangersOptions) {
  const told = new Set<string>();
  return (linkId: string, { subject, state }: StateReport): void => {
    const gateway = gatewayOfLink(linkId);
    const isThere = (state as { connected?: unknown } | null)?.connected === true;
    if (gateway === undefined || !subject.startsWith('device:') || !isThere) return;
    const lock = subject.slice('device:'.length);
    if (told.has(lock) || told.size >= TOLD_MAX || table.placeOfLock.get(lock)) return;
    told.add(lock);
    log.warn(
      { gateway, lock },
      `lock ${lock} is heard and is at no door: reset it, or have it join again to get one`,
    );
  };
}
