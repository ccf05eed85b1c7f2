/** What has to be done at a lock for its users to be as they are wanted. */
import type { Catalogue } from '../../services/catalogue/catalogue.ts';
import type { Schedule } from '../../services/catalogue/schema.ts';
import type { DoorRow, DoorTable } from './table.ts';
import type { DoorUserRow, LockUserRow } from './users-table.ts';

type Schedules = Pick<Catalogue, 'schedule'>;

/** The schedule of the door, for a user that has none of its own; undefined: the user has, or the door has none. */
export function doorScheduleOf(
  wanted: Pick<DoorUserRow, 'week_days' | 'year_days'>,
  { schedule_id: id }: Pick<DoorRow, 'schedule_id'>,
  catalogue: Schedules,
): Schedule | undefined {
  const isOwn = wanted.week_days !== null || wanted.year_days !== null;
  return isOwn || id === null ? undefined : catalogue.schedule(id);
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
