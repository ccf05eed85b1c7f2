/**
 * Asks a lock which of its places are taken, and whether it shows users of ours as they are wanted, on request only: each takes
 * two frames, and one for each schedule.
 */
import { DriverError, type Plain } from '../../../drivers/contract/driver.ts';
import { holidaysShown } from '../../../drivers/contract/lock-settings.ts';
import {
  READ_MAX,
  SCHEDULES_MAX,
  USER_ID_MAX,
  type UsersShown,
  usersShown,
  type WantedUser,
} from '../../../drivers/contract/lock-users.ts';
import type { UserLimits } from '../../../drivers/contract/settings.ts';
import { HELD_FRAME_MS } from '../../../drivers/contract/zgate.ts';
import { COMMAND_TIMEOUT_MAX_MS } from '../../platform/field/ipc.ts';
import { ADMINISTRATORS, type Caller } from '../../platform/principal.ts';
import type { DoorContext } from './context.ts';
import { addressOf } from './lock-links.ts';
import type { LockedDoor } from './lock-memory.ts';
import type { Locks } from './locks.ts';
import { noOpener, offline, relayKeepsNone } from './outcome.ts';
import { existing } from './table.ts';
import { orderOf } from './user-apply.ts';
import { doorScheduleOf, isAsWanted } from './user-wanted.ts';

/** For a lock that does not say how many users it has. */
const PLACES_DEFAULT = 32;
/** So many users are named at the end of the job, with what differed. */
const DIFFERING_MAX = 100;
const TRIES_MAX = 3;

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

  /** An unlock goes first, and ends the reading of a few places: they are read again. */
  async function asked<Answer>(
    row: LockedDoor,
    { kind, data, frames }: { kind: string; data: Plain; frames: number },
    schema: { safeParse(answer: unknown): { data?: Answer } },
    signal: AbortSignal,
  ): Promise<Answer> {
    // A lock that sleeps fetches a frame within that time.
    const timeoutMs = Math.min(frames * HELD_FRAME_MS, COMMAND_TIMEOUT_MAX_MS);
    const command = { kind, data, timeoutMs, movesNothing: true };
    for (let tries = 1; ; tries += 1) {
      try {
        const answer = schema.safeParse(await lockLinks.command(addressOf(row), command, signal));
        if (answer.data) return answer.data;
        throw new DriverError('BAD_REPLY', 'the gateway did not report what the lock has');
      } catch (error) {
        if (!(error instanceof DriverError) || error.code !== 'NO_REPLY' || tries === TRIES_MAX) throw error;
      }
    }
  }

  async function readSome(row: LockedDoor, from: number, count: number, signal: AbortSignal): Promise<Asked> {
    const { id, mac: hwId } = row;
    const limits = locks.report(row)?.users ?? {};
    const ours = oursIn({ ...context, locks }, row, from, count);
    const wanted = ours.map(({ wanted }) => wanted);
    const frames = 2 * count + wanted.reduce((sum, one) => sum + framesOf(one, limits), 0);
    const data = { hwId, from, count, wanted } as Plain;
    const { users } = await asked(row, { kind: 'readUsers', data, frames }, usersShown, signal);
    return { id, mac: hwId, from, count, users, ours };
  }

  async function readHolidays(row: LockedDoor, signal: AbortSignal): Promise<number | null> {
    // The driver asks for each, however few it finds.
    const places = locks.report(row)?.users?.holidays ?? 0;
    if (places === 0) return null;
    const order = { kind: 'readHolidays', data: { hwId: row.mac }, frames: places };
    return (await asked(row, order, holidaysShown, signal)).holidays.length;
  }

  return async (doorId: string, caller: Caller): Promise<unknown> => {
    const { mac, ...door } = existing(table, doorId);
    if (mac === null) throw context.rs485.relay(doorId) ? relayKeepsNone() : noOpener();
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
        const differing: { userId: number; what: string[] }[] = [];
        for (let from = 0; from < places; from += READ_MAX) {
          progress({ done: from, total: places });
          const count = Math.min(READ_MAX, places - from);
          const answer = await readSome(row, from, count, signal);
          taken += answer.users.length;
          for (const { userId, differs: what } of answer.users)
            if (what.length > 0) differing.push({ userId, what });
          if (await take(answer, context)) changed(doorId);
        }
        const holidays = await readHolidays(row, signal);
        return { doorId, mac, places, taken, holidays, differing: differing.slice(0, DIFFERING_MAX) };
      },
    });
  };
}

interface Ours {
  wanted: WantedUser;
  version: number;
}

interface Asked {
  id: string;
  mac: string;
  from: number;
  count: number;
  users: UsersShown['users'];
  ours: Ours[];
}

/** Of these places those of users that the lock is known to have as they are wanted. */
function oursIn(
  {
    table,
    catalogue,
    vault,
    locks,
  }: Parameters<typeof orderOf>[3] & Pick<DoorContext, 'table' | 'catalogue'>,
  row: LockedDoor,
  from: number,
  count: number,
): Ours[] {
  return Array.from({ length: count }, (_, index) => from + index).flatMap((userId): Ours[] => {
    const present = table.door.get(row.id);
    const wanted = table.doorUser.get(row.id, userId);
    const held = table.lockUser.get(row.mac, userId);
    if (!present || !wanted || !isAsWanted(wanted, held, present, catalogue)) return [];
    const ofDoor = doorScheduleOf(wanted, present, catalogue);
    const order = orderOf(row, { userId, wanted }, ofDoor, { vault, locks });
    if (typeof order === 'string') return [];
    const { hwId: _, ...user } = order;
    return [{ wanted: user, version: wanted.version }];
  });
}

/** Each schedule that the lock keeps for a user is read; one that does not say how many these are is asked for all. */
function framesOf({ access }: WantedUser, limits: UserLimits): number {
  const wanted = access.kind === 'always' ? 0 : access.schedules.length;
  return (limits.weekDays ?? SCHEDULES_MAX) + (limits.yearDays ?? SCHEDULES_MAX) + wanted;
}

/**
 * What the lock shows counts: what it does not have, or has otherwise, is written again, and what is on it and not wanted is shown. Resolves
 * with whether it is news.
 */
function take(
  { id, mac, from, count, users, ours }: Asked,
  { database, table, clock }: DoorContext,
): Promise<boolean> {
  const shown = new Map(users.map((one) => [one.userId, one]));
  const versions = new Map(ours.map(({ wanted, version }) => [wanted.userId, version]));
  return database.commit(() => {
    // It may be at another door by now.
    if (table.door.get(id)?.mac !== mac) return false;
    let isOther = false;
    for (let userId = from; userId < from + count; userId += 1) {
      const held = table.lockUser.get(mac, userId);
      const found = shown.get(userId);
      const isLost = held !== undefined && found === undefined;
      const isFound = held === undefined && found !== undefined;
      // It may have been written since.
      const isChanged = found && found.differs.length > 0 && held?.version === versions.get(userId);
      if (isLost && held.origin === 'keypad') table.deleteLockUser.run(mac, userId);
      if ((isLost && held.origin === 'gateway') || isChanged) table.disownLockUser.run(mac, userId);
      if (isFound) table.setProgrammed.run(mac, userId, clock.now());
      isOther ||= isLost || isFound || isChanged === true;
    }
    return isOther;
  });
}
