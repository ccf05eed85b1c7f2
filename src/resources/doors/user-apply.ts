/**
 * Users of locks, wanted → applied: one by one over the gateway of the lock, each stored when the lock has it. What the lock
 * refuses holds up no other user, and is sent again when something of the door's users changes, and after a start.
 *
 * A frame that a lock did not answer may reach it later (HELD_AT_MOST_MS), and undo what it has taken since: make a PIN unrestricted,
 * or bring a former code back. Until then a user that may open is not written; one that may not is, and once more afterwards.
 */

import { DriverError, type Plain } from '../../../drivers/contract/driver.ts';
import { type UserApply, userApplied } from '../../../drivers/contract/lock-users.ts';
import type { Schedule } from '../../services/catalogue/schema.ts';
import { doorEntry } from './live-events.ts';
import { addressOf } from './lock-links.ts';
import {
  type LockedDoor,
  type LockMemoryContext,
  type LockMemoryWork,
  openUnanswered,
  type Unanswered,
} from './lock-memory.ts';
import type { Locks } from './locks.ts';
import { accessOf } from './user-access.ts';
import type { Programmed, Sending } from './user-programmed.ts';
import { changesOf, doorScheduleOf, doorUserOf, scheduleName, type UserChange } from './user-wanted.ts';

/** A sleeping lock fetches each of some frames when it polls. */
const USER_TIMEOUT_MS = 60_000;
/** After so long the next attempt goes on: one that takes longer is ended (src/services/reconcile/reconcile.ts). */
const ATTEMPT_MS = 50_000;

export function userWork(
  options: LockMemoryContext,
  programmed: Pick<Programmed, 'sending'>,
): LockMemoryWork {
  const { table, catalogue, clock } = options;
  const begun = table.locksOfBegunUsers.all().map(({ mac }) => mac);
  const unanswered = openUnanswered(clock, begun);
  const send = sendBy(options, unanswered, programmed);
  const locked = (doorId: string): LockedDoor | undefined => {
    const row = table.door.get(doorId);
    return row && row.mac !== null ? { ...row, mac: row.mac } : undefined;
  };
  const changes = (doorId: string): UserChange[] => {
    const row = locked(doorId);
    return row ? changesOf(row, table, catalogue) : [];
  };

  /** Resolves when what was sent to the lock before reaches it no more. */
  async function settled(id: string, signal: AbortSignal): Promise<void> {
    const row = locked(id);
    if (!row || unanswered.leftMs(row.mac) === 0) return;
    for (const change of changes(id).filter(({ wanted }) => wanted?.is_enabled !== 1)) {
      signal.throwIfAborted();
      await send(row, change, signal);
    }
    await unanswered.over(row.mac, signal);
  }

  return {
    doors: () => table.doorsWithUsers.all().map(({ id }) => id),
    waits: (doorId) => changes(doorId).length > 0,
    async apply(id, signal) {
      const until = clock.monotonic() + ATTEMPT_MS;
      await settled(id, signal);
      const refused = new Map<number, string>();
      let isProgress = false;
      // A refusal may have had its cause in a user that is another by now, and somebody may have changed one at the lock.
      const left = () => changes(id).filter(({ userId }) => isProgress || !refused.has(userId));
      for (let due = left(); due.length > 0; due = left()) {
        isProgress = false;
        for (const change of due) {
          signal.throwIfAborted();
          if (clock.monotonic() >= until)
            throw new DriverError('BUSY', 'the users of the lock that are left are written next');
          const row = locked(id);
          if (!row) return;
          const reason = await send(row, change, signal);
          if (reason !== undefined) refused.set(change.userId, reason);
          else {
            refused.delete(change.userId);
            isProgress = true;
          }
        }
      }
      if (refused.size === 0) return;
      const [first = ''] = refused.values();
      throw new DriverError(
        'REFUSED',
        `${refused.size} of the users of the lock are refused, one for: ${first}`,
      );
    },
  };
}

/** Sends one user. Resolves with why the lock refused it; rejects with a DriverError when it is to be sent again. */
function sendBy(options: LockMemoryContext, unanswered: Unanswered, programmed: Pick<Programmed, 'sending'>) {
  const { database, table, clock, audit, lockLinks } = options;

  function record(row: LockedDoor, userId: number, outcome: string, detail: object): void {
    const all = { userId, mac: row.mac, ...detail };
    audit.record(doorEntry(row.id, 'door.apply-user', all, undefined, outcome));
  }

  /** Resolves with the reason, or undefined when it is sent once more. */
  function refuse(
    row: LockedDoor,
    userId: number,
    reason: string,
    sending?: Sending,
  ): Promise<string | undefined> {
    return database.commit(() => {
      if (sending?.end(false)) return undefined;
      // Each start tries again what was refused: the same answer is no news.
      if (table.lockUser.get(row.mac, userId)?.failure === reason) return reason;
      table.setLockUserFailure.run(reason, row.mac, userId);
      record(row, userId, 'refused', { reason });
      return reason;
    });
  }

  async function keep(
    row: LockedDoor,
    { userId, wanted, schedule }: UserChange & { schedule: Schedule | undefined },
    isShown: boolean,
    sending: Sending,
  ): Promise<void> {
    const { mac } = row;
    // It is sent once more.
    if (unanswered.leftMs(mac) > 0) return;
    await database.commit(() => {
      if (sending.end(isShown)) return;
      if (!wanted) table.deleteLockUser.run(mac, userId);
      else {
        const name = scheduleName(schedule);
        table.setLockUser.run(wanted.version, name, isShown ? 1 : 0, clock.now(), mac, userId);
      }
      const has = { pin: wanted?.pin != null, card: wanted?.card != null };
      record(row, userId, 'done', { ...has, isShown });
    });
  }

  return async (row: LockedDoor, change: UserChange, signal: AbortSignal): Promise<string | undefined> => {
    const { userId } = change;
    const lock = addressOf(row);
    const unreachable = lockLinks.unreachable(lock);
    if (unreachable !== undefined) throw new DriverError('LINK_LOST', unreachable);
    // Before it goes: from then on no one can say that the lock does not have it.
    await database.commit(() => table.beginLockUser.run(row.mac, userId, clock.now()));
    const { wanted } = change;
    // It may be another one when the lock has answered.
    const schedule = wanted && doorScheduleOf(wanted, row, options.catalogue);
    const data = orderOf(row, change, schedule, options);
    if (typeof data === 'string') return refuse(row, userId, data);
    signal.throwIfAborted();
    using sending = programmed.sending(row.mac, userId);
    try {
      const command = {
        kind: 'applyUser',
        data: data as Plain,
        timeoutMs: USER_TIMEOUT_MS,
        movesNothing: true,
      };
      const answer = userApplied.safeParse(
        await unanswered.of(row.mac, lockLinks.command(lock, command, signal)),
      );
      if (!answer.data) throw new DriverError('BAD_REPLY', 'the gateway did not report what the lock has');
      await keep(row, { ...change, schedule }, answer.data.isShown, sending);
      return undefined;
    } catch (error) {
      if (error instanceof DriverError && PERMANENT.includes(error.code))
        return refuse(row, userId, error.message, sending);
      throw error;
    }
  };
}

const PERMANENT = ['REFUSED', 'INVALID_COMMAND'];

/** What the driver is sent, or why nothing is. */
export function orderOf(
  row: LockedDoor,
  { userId, wanted }: UserChange,
  ofDoor: Schedule | undefined,
  { vault, locks }: Pick<LockMemoryContext, 'vault'> & { locks: Pick<Locks, 'report'> },
): UserApply | string {
  const empty = { hwId: row.mac, userId, isEnabled: false, pin: null, card: null };
  if (!wanted) return { ...empty, access: { kind: 'always' } };
  const user = doorUserOf(wanted, vault);
  if (!user) return 'pin: what is stored cannot be opened any more: set the user again';
  const { isEnabled, pin, card } = user;
  const access = accessOf(user, ofDoor?.intervals);
  // What the lock would let in always is not stored in it at all.
  if (access.kind === 'weekDays' && locks.report(row)?.users?.weekDays === 0)
    return 'weekDays: the lock keeps no schedules, and the door or the user has one: take it away, or leave the user out';
  return { ...empty, isEnabled, pin, card, access };
}
