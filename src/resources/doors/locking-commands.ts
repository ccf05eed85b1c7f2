/**
 * The commands that lock a lock, by lock and not by door. A lock reports each with an event that names the radio and no command, and may
 * repeat it for minutes: it confirms a command only where it can be of no other (drivers/contract/owed-events.ts).
 */
import { mayOweEvent, openOwedEvents } from '../../../drivers/contract/owed-events.ts';
import type { LockEvent } from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Actuations } from '../../services/actuations/actuations.ts';
import type { LockLinks } from './lock-links.ts';

export interface LockingCommands {
  /** The same links; what locks a lock is noted. */
  noting(links: LockLinks): LockLinks;
  heard(event: LockEvent): void;
}

/** As in the audit: the first two have the gateway lock the lock later. */
const ACTIONS = ['door.unlock', 'door.stand-open', 'door.lock'];

export function openLockingCommands(
  clock: Clock,
  actuations: Pick<Actuations, 'locksMoved'>,
): LockingCommands {
  const owed = openOwedEvents<object>();
  // At which moment the earlier run sent them is not known.
  for (const mac of actuations.locksMoved(ACTIONS)) owed.begun(mac, {}, clock.monotonic());
  return {
    noting: (links) => ({
      ...links,
      async actuate(lock, { kind, data }, ...how) {
        if (kind === 'standOpen') return links.actuate(lock, { kind, data }, ...how);
        const { eventConfirms, ...rest } = data;
        const { hwId } = data;
        const isAlone = !owed.isOwed(hwId, clock.monotonic());
        const command = {};
        owed.begun(hwId, command, clock.monotonic());
        try {
          return await links.actuate(lock, { kind, data: eventConfirms && isAlone ? data : rest }, ...how);
        } catch (error) {
          if (!mayOweEvent(error)) owed.withdrawn(hwId, command);
          throw error;
        }
      },
      link(linkId, up) {
        links.link(linkId, up);
        // Its next host does not know which frames were heard already.
        if (!up) owed.forgotten();
      },
    }),
    heard({ kind, what, source, heardAt, hwId }) {
      const isByRadio = kind === 'operation' && what === 'locked' && source === 'rf';
      if (isByRadio && heardAt !== null) owed.take(hwId, heardAt);
    },
  };
}
