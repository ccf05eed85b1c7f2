/**
 * Users of the lock of a door: PINs and cards, and when they open. What is wanted belongs to the door, sealed; what a lock has
 * is kept by lock, so that one that is replaced, swapped or joins again gets what it lacks and loses what is not wanted.
 */

import { isDeepStrictEqual } from 'node:util';
import { storedJson, storedTime } from '../../platform/database/damaged-rows.ts';
import { GatehouseError, notPossible } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import { doorEntry } from './live-events.ts';
import { type LockMemory, type LockMemoryContext, openLockMemory } from './lock-memory.ts';
import {
  type LockUser,
  storedWeekDays,
  storedYearDays,
  type UserBody,
  type UserQuery,
} from './lock-memory-schema.ts';
import type { DoorUserRow, LockUserRow } from './lock-memory-table.ts';
import { relayKeepsNone } from './outcome.ts';
import { type DoorRow, existing } from './table.ts';
import { refuseBeyond } from './user-access.ts';
import { userWork } from './user-apply.ts';
import { openProgrammed, type Programmed } from './user-programmed.ts';
import { openUserReading } from './user-reading.ts';
import { type DoorUser, doorUserOf, edited, isAsWanted, NOTHING, storeUser } from './user-wanted.ts';

export interface LockUsers extends LockMemory {
  list(doorId: string, query: UserQuery): { items: LockUser[]; next: string | null };
  /** Throws NOT_FOUND. */
  get(doorId: string, userId: number): LockUser;
  /** Throws NO_LOCK, NOT_SUPPORTED, VALIDATION_FAILED. */
  set(doorId: string, userId: number, body: UserBody, caller: Caller): Promise<LockUser>;
  /** Throws NOT_FOUND. */
  remove(doorId: string, userId: number, caller: Caller): Promise<LockUser>;
  /** Those that are wanted, and those that somebody stored at the lock. Resolves with how many are to be removed. */
  clear(doorId: string, caller: Caller): Promise<number>;
  /** Asks the lock which of its places are taken. Resolves with the job. Throws NOT_FOUND, NO_LOCK, DEVICE_OFFLINE. */
  read(doorId: string, caller: Caller): Promise<unknown>;
  programmed: Programmed['take'];
}

export function openLockUsers(options: LockMemoryContext): LockUsers {
  const { database, table, vault, locks } = options;
  const programmed = openProgrammed(options);
  const memory = openLockMemory(options, 'users of locks', userWork(options, programmed));
  const { changed } = memory;
  const shown = (row: DoorRow) => shownUsers(row, options);

  function get(doorId: string, userId: number): LockUser {
    const user = shown(existing(table, doorId)).find((one) => one.userId === userId);
    if (user) return user;
    throw new GatehouseError(
      'NOT_FOUND',
      `Door ${doorId} has no user ${userId}: the list of its users says which it has.`,
    );
  }

  /** Inside the commit job: nothing is wanted of it, and what the lock may have is to be removed. */
  function forget({ id, mac }: DoorRow, userId: number): void {
    table.deleteDoorUser.run(id, userId);
    if (mac !== null) table.disownLockUser.run(mac, userId);
  }

  function record(action: string, doorId: string, caller: Caller, detail: object): void {
    options.audit.record(doorEntry(doorId, action, detail, caller));
  }

  return {
    ...memory,
    get,
    read: openUserReading(options, locks, changed),
    programmed: programmed.take,
    list(doorId, { cursor = 0, limit }) {
      const rest = shown(existing(table, doorId)).filter(({ userId }) => userId >= cursor);
      const items = rest.slice(0, limit);
      const last = items.at(-1);
      return { items, next: rest.length > limit && last ? String(last.userId + 1) : null };
    },

    async set(doorId, userId, body, caller) {
      const isNews = await database.commit(() => {
        const row = existing(table, doorId);
        if (row.mac === null && options.rs485.relay(doorId)) throw relayKeepsNone();
        const before = table.doorUser.get(doorId, userId);
        const earlier = before ? doorUserOf(before, vault) : undefined;
        const wanted = edited(earlier ?? NOTHING, body);
        if (earlier && isDeepStrictEqual(earlier, wanted)) return false;
        assertWhole(wanted);
        refuseBeyond(locks.report(row)?.users ?? {}, userId, body);
        storeUser(options, { doorId, userId }, wanted);
        if (row.mac !== null) table.setLockUserFailure.run(null, row.mac, userId);
        const fields = Object.keys(body).toSorted();
        record('door.set-user', doorId, caller, { userId, fields, mac: row.mac });
        return true;
      });
      if (isNews) changed(doorId);
      return get(doorId, userId);
    },

    async remove(doorId, userId, caller) {
      const before = get(doorId, userId);
      await database.commit(() => {
        const row = existing(table, doorId);
        forget(row, userId);
        record('door.remove-user', doorId, caller, { userId, mac: row.mac });
      });
      changed(doorId);
      const left = shown(existing(table, doorId)).find((one) => one.userId === userId);
      return left ?? { ...before, state: 'removing' };
    },

    async clear(doorId, caller) {
      const removing = await database.commit(() => {
        const row = existing(table, doorId);
        const users = shown(row);
        for (const { userId } of users) forget(row, userId);
        if (users.length > 0)
          record('door.clear-users', doorId, caller, { users: users.length, mac: row.mac });
        return shown(row).length;
      });
      changed(doorId);
      return removing;
    },
  };
}

function shownUsers(row: DoorRow, options: LockMemoryContext): LockUser[] {
  const { table } = options;
  const wanted = new Map(table.doorUsers.all(row.id).map((one) => [one.user_id, one]));
  const held = new Map(
    (row.mac === null ? [] : table.lockUsers.all(row.mac)).map((one) => [one.user_id, one]),
  );
  const ids = [...new Set([...wanted.keys(), ...held.keys()])].sort((a, b) => a - b);
  return ids.map((userId) => shownUser(row, userId, wanted.get(userId), held.get(userId), options));
}

function shownUser(
  row: DoorRow,
  userId: number,
  wanted: DoorUserRow | undefined,
  held: LockUserRow | undefined,
  options: LockMemoryContext,
): LockUser {
  const state = stateOf(row, wanted, held, options);
  const object = `door/${row.id}`;
  return {
    userId,
    status: wanted ? (wanted.is_enabled === 1 ? 'enabled' : 'disabled') : null,
    hasPin: wanted?.pin != null,
    hasCard: wanted?.card != null,
    weekDays: storedJson(object, storedWeekDays, wanted?.week_days ?? null),
    yearDays: storedJson(object, storedYearDays, wanted?.year_days ?? null),
    state,
    isShown: state === 'applied' && held?.is_shown === 1,
    failure: held?.failure ?? null,
    at: held ? storedTime(object, held.at) : null,
  };
}

function stateOf(
  row: DoorRow,
  wanted: DoorUserRow | undefined,
  held: LockUserRow | undefined,
  { catalogue }: LockMemoryContext,
): LockUser['state'] {
  if (!wanted) return held?.origin === 'keypad' ? 'foreign' : 'removing';
  if (isAsWanted(wanted, held, row, catalogue)) return 'applied';
  return held?.failure == null ? 'waiting' : 'refused';
}

/** Throws VALIDATION_FAILED. */
function assertWhole({ pin, card, weekDays, yearDays }: DoorUser): void {
  if (pin === null && card === null)
    throw notPossible('/pin', 'is missing, and so is a card: a user has one of them at least, or is deleted');
  if (weekDays !== null && yearDays !== null)
    throw notPossible(
      '/yearDays',
      'cannot stand beside weekDays: a lock has one kind of schedule for a user',
    );
}
