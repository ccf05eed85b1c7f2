/**
 * The commands that open a lock, by lock and not by door, since a lock may be at another door when its event comes: which of
 * them an event of the lock may come of (drivers/contract/owed-events.ts), and since when earlier ones may still have an effect, which a driver is sent.
 */
import { mayOweEvent, openOwedEvents } from '../../../drivers/contract/owed-events.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Actuations } from '../../services/actuations/actuations.ts';
import type { LockLinks } from './lock-links.ts';

export interface OpeningCommand {
  kind: 'unlock' | 'standOpen';
  /** Undefined: it was sent before this start. */
  doorId: string | undefined;
}

export interface OpeningCommands {
  /** The same links; what opens a lock is noted. */
  noting(links: LockLinks): LockLinks;
  /** When the earliest command was begun that may still arrive or owe its event, monotonic milliseconds; null: none. */
  firstBegunAt(mac: string): number | null;
  /** The only command of which an event that was heard then may come. */
  only(mac: string, heardAt: number): OpeningCommand | undefined;
  heard(mac: string, command: OpeningCommand): void;
  /** The event of its latest command was heard, and can be of no other. */
  isReported(mac: string): boolean;
}

/** As in the audit. */
const ACTIONS = ['door.unlock', 'door.stand-open'];

export function openOpeningCommands(
  clock: Clock,
  actuations: Pick<Actuations, 'locksMoved'>,
): OpeningCommands {
  const owed = openOwedEvents<OpeningCommand>();
  const latest = new Map<string, { command: OpeningCommand; isReported: boolean }>();
  // At which moment the earlier run sent them is not known.
  const startedAt = clock.monotonic();
  for (const mac of actuations.locksMoved(ACTIONS))
    owed.begun(mac, { kind: 'unlock', doorId: undefined }, startedAt);

  async function noted<End>(mac: string, command: OpeningCommand, send: () => Promise<End>): Promise<End> {
    owed.begun(mac, command, clock.monotonic());
    const one = { command, isReported: false };
    latest.set(mac, one);
    try {
      return await send();
    } catch (error) {
      if (!mayOweEvent(error)) owed.withdrawn(mac, command);
      throw error;
    }
  }

  const firstBegunAt = (mac: string) => owed.firstBegunAt(mac, clock.monotonic());
  return {
    noting: (links) => ({
      ...links,
      unlock(lock, data, timeoutMs, released) {
        const command = { kind: 'unlock', doorId: lock.doorId } as const;
        released.catch(() => owed.withdrawn(data.hwId, command));
        return noted(data.hwId, command, () => links.unlock(lock, data, timeoutMs, released));
      },
      actuate(lock, { kind, data }, ...how) {
        if (kind !== 'standOpen') return links.actuate(lock, { kind, data }, ...how);
        const known = { ...data, earlierAt: firstBegunAt(data.hwId) };
        const command = { kind, doorId: lock.doorId };
        return noted(data.hwId, command, () => links.actuate(lock, { kind, data: known }, ...how));
      },
      link(linkId, up) {
        links.link(linkId, up);
        // Its next host does not know which frames were heard already.
        if (!up) owed.forgotten();
      },
    }),
    firstBegunAt,
    only: owed.only,
    heard(mac, command) {
      owed.heard(mac, command);
      const one = latest.get(mac);
      if (one?.command === command) one.isReported = true;
    },
    isReported: (mac) => latest.get(mac)?.isReported ?? false,
  };
}
