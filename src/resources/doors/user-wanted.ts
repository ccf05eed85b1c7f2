/** What is wanted of one user of a lock, and how it is kept: its codes sealed. */
import { storedJson } from '../../platform/database/damaged-rows.ts';
import type { DoorContext } from './context.ts';
import type { Span, WeeklyInterval } from './user-access.ts';
import { storedWeekDays, storedYearDays, type UserBody } from './user-schema.ts';
import type { DoorUserRow } from './users-table.ts';

export interface WantedUser {
  isEnabled: boolean;
  pin: string | null;
  card: string | null;
  weekDays: WeeklyInterval[] | null;
  yearDays: Span[] | null;
}

export const NOTHING: WantedUser = { isEnabled: true, pin: null, card: null, weekDays: null, yearDays: null };

/** Absent stays, null clears. */
export function edited(before: WantedUser, { status, ...body }: UserBody): WantedUser {
  const given = Object.entries(body).filter(([, value]) => value !== undefined);
  const isEnabled = status === undefined ? before.isEnabled : status === 'enabled';
  return { ...before, ...Object.fromEntries(given), isEnabled };
}

/** A code is bound to its place: a sealed one that is moved does not open. */
const contextOf = (kind: 'pin' | 'card', { doorId, userId }: Place) =>
  `lock-user/${kind}/${doorId}/${userId}`;

interface Place {
  doorId: string;
  userId: number;
}

export function storeUser(
  { table, vault }: Pick<DoorContext, 'table' | 'vault'>,
  place: Place,
  { isEnabled, weekDays, yearDays, ...codes }: WantedUser,
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
export function wantedUserOf(
  row: DoorUserRow,
  vault: Pick<DoorContext['vault'], 'open'>,
): WantedUser | undefined {
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
