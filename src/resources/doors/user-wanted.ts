/** What is wanted of users of the lock of a door, how it is kept, its codes sealed, and what has to be done at the lock for that. */
import { storedJson } from '../../platform/database/damaged-rows.ts';
import type { Catalogue } from '../../services/catalogue/catalogue.ts';
import type { Schedule } from '../../services/catalogue/schema.ts';
import type { DoorContext } from './context.ts';
import { storedWeekDays, storedYearDays, type UserBody } from './lock-memory-schema.ts';
import type { DoorUserRow, LockUserRow } from './lock-memory-table.ts';
import type { DoorRow, DoorTable } from './table.ts';
import type { Span, WeeklyInterval } from './user-access.ts';

export interface DoorUser {
  isEnabled: boolean;
  pin: string | null;
  card: string | null;
  weekDays: WeeklyInterval[] | null;
  yearDays: Span[] | null;
}

export const NOTHING: DoorUser = { isEnabled: true, pin: null, card: null, weekDays: null, yearDays: null };

/** Absent stays, null clears. */
export function edited(before: DoorUser, { status, ...body }: UserBody): DoorUser {
  const given = Object.entries(body).filter(([, value]) => value !== undefined);
  const isEnabled = status === undefined ? before.isEnabled : status === 'enabled';
  return { ...before, ...Object.fromEntries(given), isEnabled };
}

/** A code is bound to its place: a sealed one that is moved does not open. */
const contextOf = (kind: 'pin' | 'card', { doorId, userId }: UserPlace) =>
  `lock-user/${kind}/${doorId}/${userId}`;

interface UserPlace {
  doorId: string;
  userId: number;
}

export function storeUser(
  { table, vault }: Pick<DoorContext, 'table' | 'vault'>,
  place: UserPlace,
  { isEnabled, weekDays, yearDays, ...codes }: DoorUser,
): void {
  const sealed = (kind: 'pin' | 'card') => {
    const code = codes[kind];
    return code === null ? null : vault.seal(Buffer.from(code, 'latin1'), contextOf(kind, place));
  };
  const json = (list: object[] | null) => (list === null ? null : JSON.stringify(list));
  const { doorId, userId } = place;
  const lists = [json(weekDays), json(yearDays)] as const;
  table.setDoorUser.run(doorId, userId, isEnabled ? 1 : 0, sealed('pin'), sealed('card'), ...lists);
}

/** Undefined: its codes cannot be opened any more. */
export function doorUserOf(
  row: DoorUserRow,
  vault: Pick<DoorContext['vault'], 'open'>,
): DoorUser | undefined {
  const place = { doorId: row.door_id, userId: row.user_id };
  const opened = (kind: 'pin' | 'card') =>
    row[kind] === null ? null : vault.open(row[kind], contextOf(kind, place)).toString('latin1');
  const object = `door/${row.door_id}`;
  const lists = {
    weekDays: storedJson(object, storedWeekDays, row.week_days),
    yearDays: storedJson(object, storedYearDays, row.year_days),
  };
  try {
    return { isEnabled: row.is_enabled === 1, pin: opened('pin'), card: opened('card'), ...lists };
  } catch {
    return undefined;
  }
}

type Schedules = Pick<Catalogue, 'schedule'>;

/**
 * The schedule of the door, for a user that has none of its own; undefined: the user has, or the door has none. One that the catalogue
 * does not know, or not yet, lets no one in.
 */
export function doorScheduleOf(
  wanted: Pick<DoorUserRow, 'week_days' | 'year_days'>,
  { schedule_id: id }: Pick<DoorRow, 'schedule_id'>,
  catalogue: Schedules,
): Schedule | undefined {
  const isOwn = wanted.week_days !== null || wanted.year_days !== null;
  return isOwn || id === null ? undefined : (catalogue.schedule(id) ?? { id, version: 0, intervals: [] });
}

/** As lock_user has it. */
export const scheduleName = (schedule: Schedule | undefined) =>
  schedule ? `${schedule.id}/${schedule.version}` : null;

export function isAsWanted(
  wanted: DoorUserRow,
  held: LockUserRow | undefined,
  row: Pick<DoorRow, 'schedule_id'>,
  catalogue: Schedules,
): boolean {
  if (held?.version !== wanted.version) return false;
  return held.schedule === scheduleName(doorScheduleOf(wanted, row, catalogue));
}

/** `wanted` undefined: the place is emptied. */
export interface UserChange {
  userId: number;
  wanted?: DoorUserRow;
}

/** Removals first: a code that moves to another user would be a duplicate. */
export function changesOf(
  row: DoorRow & { mac: string },
  table: DoorTable,
  catalogue: Schedules,
): UserChange[] {
  const wanted = table.doorUsers.all(row.id);
  const held = new Map(table.lockUsers.all(row.mac).map((one) => [one.user_id, one]));
  const sets = wanted
    .filter((one) => !isAsWanted(one, held.get(one.user_id), row, catalogue))
    .map((one) => ({ userId: one.user_id, wanted: one }));
  for (const { user_id } of wanted) held.delete(user_id);
  const removals = [...held.values()].filter(({ origin }) => origin === 'gateway');
  return [...removals.map(({ user_id: userId }) => ({ userId })), ...sets];
}
