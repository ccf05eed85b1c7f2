/** Asks a lock which of its places are taken, on request only: each is two frames. */
import { DriverError } from '../../../drivers/contract/driver.ts';
import { READ_MAX, USER_ID_MAX, usersShown } from '../../../drivers/contract/lock-users.ts';
import type { Caller, Role } from '../../platform/principal.ts';
import type { DoorContext } from './context.ts';
import { addressOf } from './lock-links.ts';
import type { Locks } from './locks.ts';
import { noLock, offline } from './outcome.ts';
import { type DoorRow, existing } from './table.ts';

/** Who may see to the users of locks, and so follow this job. */
export const ADMINISTRATORS: readonly [Role, ...Role[]] = ['front-desk-admin', 'service-tool'];

/** For a lock that does not say how many users it has. */
const PLACES_DEFAULT = 32;
const TIMEOUT_MS = 120_000;
/** An unlock goes first, and ends the reading of a few places: they are read again. */
const TRIES_MAX = 3;

type LockedDoor = DoorRow & { mac: string };

/**
 * Resolves with the job. Throws NOT_FOUND, NO_LOCK, DEVICE_OFFLINE. `changed`, after the commit: a user of the door's lock is not
 * as it was known.
 */
export function openUserReading(
  context: DoorContext,
  locks: Pick<Locks, 'report'>,
  changed: (doorId: string) => void,
) {
  const { table, jobs, lockLinks } = context;

  async function readSome(row: LockedDoor, from: number, count: number, signal: AbortSignal) {
    const command = { kind: 'readUsers', data: { hwId: row.mac, from, count }, timeoutMs: TIMEOUT_MS };
    for (let tries = 1; ; tries += 1) {
      try {
        const answer = usersShown.safeParse(await lockLinks.command(addressOf(row), command, signal));
        if (answer.data) return answer.data.users;
        throw new DriverError('BAD_REPLY', 'the gateway did not report the users of the lock');
      } catch (error) {
        if (!(error instanceof DriverError) || error.code !== 'NO_REPLY' || tries === TRIES_MAX) throw error;
      }
    }
  }

  return async (doorId: string, caller: Caller): Promise<unknown> => {
    const { mac, ...door } = existing(table, doorId);
    if (mac === null) throw noLock();
    const row: LockedDoor = { ...door, mac };
    const unreachable = lockLinks.unreachable(addressOf(row));
    if (unreachable !== undefined) throw offline(row, unreachable);
    const { pins = PLACES_DEFAULT, cards = 0 } = locks.report(row)?.users ?? {};
    // Some makers number from 1.
    const places = Math.min(Math.max(pins, cards) + 1, USER_ID_MAX + 1);
    return jobs.start({
      kind: 'lock-users',
      object: `door/${doorId}`,
      roles: ADMINISTRATORS,
      ...caller,
      async run(progress, signal) {
        let taken = 0;
        for (let from = 0; from < places; from += READ_MAX) {
          progress({ done: from, total: places });
          const count = Math.min(READ_MAX, places - from);
          const users = await readSome(row, from, count, signal);
          taken += users.length;
          const asked = { from, count, taken: new Set(users.map(({ userId }) => userId)) };
          if (await take(row, asked, context)) changed(doorId);
        }
        return { doorId, mac, places, taken };
      },
    });
  };
}

/** What the lock shows counts: what it does not have is written again, and what is on it and not wanted is shown. Resolves with whether it is news. */
function take(
  { id, mac }: LockedDoor,
  { from, count, taken }: { from: number; count: number; taken: ReadonlySet<number> },
  { database, table, clock }: DoorContext,
): Promise<boolean> {
  return database.commit(() => {
    // It may be at another door by now.
    if (table.door.get(id)?.mac !== mac) return false;
    let isOther = false;
    for (let userId = from; userId < from + count; userId += 1) {
      const held = table.lockUser.get(mac, userId);
      const isLost = held !== undefined && !taken.has(userId);
      const isFound = held === undefined && taken.has(userId);
      if (isLost && held.origin === 'keypad') table.deleteLockUser.run(mac, userId);
      if (isLost && held.origin === 'gateway') table.disownLockUser.run(mac, userId);
      if (isFound) table.setProgrammed.run(mac, userId, clock.now());
      isOther ||= isLost || isFound;
    }
    return isOther;
  });
}
