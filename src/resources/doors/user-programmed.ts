/**
 * What somebody changes at a lock itself (programming events, ZCL rev. 8, 7.3.2.18.20): a user of ours is written again, one that
 * is not wanted is shown.
 *
 * A lock may report our own writes in the same way: some name the keypad as the source of every event, or no user. Each write reads
 * the lock first, so a lock that shows its codes is written only where they differ, and such an event ends there. One that masks
 * them is written each time, and reports it each time: there a limited number of events that follow a write has the user written
 * once more, until one comes that follows none.
 */
import type { LockEvent } from '../../../drivers/contract/zgate.ts';
import type { DoorContext } from './context.ts';
import type { LockUserRow } from './lock-memory-table.ts';

/** Longer after a write no event is the answer to it. */
const OWN_MS = 60_000;
/** A lock that names the radio for what the radio does hardly names the keypad for it, too. */
const AGAIN_MAX = { namesRadio: 10, other: 1 };
const STORED = ['pinAdded', 'pinChanged', 'rfidAdded'];
const REMOVED = ['pinDeleted', 'rfidDeleted'];

export interface Programmed {
  /** The user is being sent to the lock, until this is disposed of. */
  sending(mac: string, userId: number): Sending;
  /** Inside the commit job. Returns whether a user of the lock has to be written that none would write otherwise. */
  take(event: LockEvent): boolean;
}

export interface Sending extends Disposable {
  /** Inside the commit job that stores what came of it. Returns whether it is sent once more instead: somebody may have changed it. */
  end(isShown: boolean): boolean;
}

export function openProgrammed({ table, clock }: Pick<DoorContext, 'table' | 'clock'>): Programmed {
  /** By lock. */
  const underWay = new Map<string, { userId: number; isHeard: boolean }>();
  const namesRadio = new Set<string>();
  /** By lock and user: events that followed a write without an end to that. */
  const counts = new Map<string, number>();

  function mayBeAgain(mac: string, userId: number): boolean {
    const key = `${mac}/${userId}`;
    const count = counts.get(key) ?? 0;
    if (count >= AGAIN_MAX[namesRadio.has(mac) ? 'namesRadio' : 'other']) return false;
    counts.set(key, count + 1);
    return true;
  }

  const isRecent = ({ at }: LockUserRow) => Math.abs(clock.now() - at) < OWN_MS;

  /** Returns whether it is not as it is known any more. */
  function takeOurs(row: LockUserRow): boolean {
    const { mac, user_id: userId } = row;
    const sent = underWay.get(mac);
    if (sent?.userId === userId) {
      sent.isHeard = true;
      return false;
    }
    // It is sent anyhow.
    if (row.version === null && row.failure === null) return false;
    if (!isRecent(row)) counts.delete(`${mac}/${userId}`);
    else if (row.is_shown === 0 && !mayBeAgain(mac, userId)) return false;
    table.setProgrammed.run(mac, userId, clock.now());
    return true;
  }

  /**
   * The event may concern any user of ours. A lock that may name the keypad as the source of our own writes probably means a user that was
   * just written.
   */
  function takeUnnumbered(mac: string): boolean {
    const ours = table.lockUsers.all(mac).filter(({ origin }) => origin === 'gateway');
    const written = namesRadio.has(mac) ? [] : ours.filter(isRecent);
    return (written.length > 0 ? written : ours).map(takeOurs).includes(true);
  }

  function takeNumbered(mac: string, userId: number, isStored: boolean): boolean {
    const before = table.lockUser.get(mac, userId);
    if (before?.origin === 'gateway') return takeOurs(before);
    if (isStored) table.setProgrammed.run(mac, userId, clock.now());
    else table.deleteLockUser.run(mac, userId);
    return true;
  }

  return {
    sending(mac, userId) {
      const sent = { userId, isHeard: false };
      underWay.set(mac, sent);
      const over = () => {
        if (underWay.get(mac) === sent) underWay.delete(mac);
      };
      return {
        end(isShown) {
          over();
          return sent.isHeard && (isShown || mayBeAgain(mac, userId));
        },
        [Symbol.dispose]: over,
      };
    },
    take({ hwId: mac, kind, what, source, userId }) {
      const isStored = STORED.includes(what);
      if (kind !== 'programming' || !(isStored || REMOVED.includes(what))) return false;
      if (source === 'rf') {
        namesRadio.add(mac);
        return false;
      }
      const isNews = userId === null ? takeUnnumbered(mac) : takeNumbered(mac, userId, isStored);
      // While users of the lock are written, what is left is looked for at the end (user-apply.ts).
      return isNews && !underWay.has(mac);
    },
  };
}
