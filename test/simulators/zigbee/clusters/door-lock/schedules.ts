/** Schedules of a lock (ZCL 7.3.2.17.12 and following): week-day and year-day ones of a user, holidays of the lock. */
import { bytes, type Reader, u16, u32 } from '../../bytes.ts';
import type { LockChange } from '../../plan.ts';
import { type Answer, type Cluster, responded } from '../../zcl/cluster.ts';

export const WEEK_DAYS_PER_USER = 4;
export const YEAR_DAYS_PER_USER = 2;
export const HOLIDAYS = 8;
/** Of users with schedules; ids of users go higher. */
const USERS = 250;
const STATUS = { success: 0x00, failure: 0x01, notFound: 0x8b };

export interface Schedules {
  commands: Cluster['commands'];
  /** By somebody else than this gateway; null: cleared. */
  change(change: NonNullable<LockChange['schedule']>): void;
  /** The operating mode of the holiday that is now; undefined: none is. */
  holidayMode(): number | undefined;
  /** Whether a user of this type may open now (table 7-15): one that is limited never does without a schedule. */
  permits(credential: { user: number; type: number }): boolean;
  describe(): Record<'weekDays' | 'yearDays' | 'holidays', { id: number; user?: number; fields: number[] }[]>;
}

type Key = { id: number; user?: number };
const nameOf = ({ id, user }: Key) => `${id}/${user ?? ''}`;

interface Table {
  set: number;
  get: number;
  clear: number;
  isOfUser: boolean;
  ids: number;
  read(input: Reader): number[];
  isValid(fields: number[]): boolean;
  encode(fields: number[]): Buffer;
}

const orderly = ([start = 0, end = 0]: number[]) => start < end;

const TABLES: Record<'weekDays' | 'yearDays' | 'holidays', Table> = {
  // Days of the week from Sunday, start and end by hour and minute.
  weekDays: {
    set: 0x0b,
    get: 0x0c,
    clear: 0x0d,
    isOfUser: true,
    ids: WEEK_DAYS_PER_USER,
    read: (input) => [...input.bytes(5)],
    isValid: ([days = 0, startHour = 0, startMinute = 0, endHour = 0, endMinute = 0]) =>
      days > 0 && days < 128 && startHour < 24 && endHour < 24 && startMinute < 60 && endMinute < 60,
    encode: (fields) => bytes(...fields),
  },
  yearDays: {
    set: 0x0e,
    get: 0x0f,
    clear: 0x10,
    isOfUser: true,
    ids: YEAR_DAYS_PER_USER,
    read: (input) => [input.u32(), input.u32()],
    isValid: orderly,
    encode: (fields) => bytes(...fields.map(u32)),
  },
  // With the operating mode while it lasts.
  holidays: {
    set: 0x11,
    get: 0x12,
    clear: 0x13,
    isOfUser: false,
    ids: HOLIDAYS,
    read: (input) => [input.u32(), input.u32(), input.u8()],
    isValid: (fields) => orderly(fields) && (fields[2] ?? 0xff) <= 4,
    encode: ([start = 0, end = 0, mode = 0]) => bytes(u32(start), u32(end), mode),
  },
};

const MINUTE_S = 60;
const HOUR_MINUTES = 60;
const DAY_MINUTES = 24 * HOUR_MINUTES;
/** Of 1 January 2000, from Sunday. */
const FIRST_DAY = 6;

/** By user type. */
const LIMITED: Record<number, { table: string; isOpen(fields: number[], seconds: number): boolean }> = {
  1: { table: 'yearDays', isOpen: ([start = 0, end = 0], seconds) => start <= seconds && seconds < end },
  2: {
    table: 'weekDays',
    isOpen([days = 0, startHour = 0, startMinute = 0, endHour = 0, endMinute = 0], seconds) {
      const minutes = Math.floor(seconds / MINUTE_S);
      const day = (Math.floor(minutes / DAY_MINUTES) + FIRST_DAY) % 7;
      const minute = minutes % DAY_MINUTES;
      const isInTime =
        startHour * HOUR_MINUTES + startMinute <= minute && minute <= endHour * HOUR_MINUTES + endMinute;
      return isInTime && (days & (1 << day)) !== 0;
    },
  },
};

interface SchedulesOptions {
  /** The last field of what it keeps is another than it was sent. */
  changes(): boolean;
  /** Seconds since 2000, as the lock has the time. */
  now(): number;
  /** The answer to the question for one beyond those that it keeps. */
  beyond: number;
  /** One of this user, by a command. */
  cleared(user: number): void;
}

export function openSchedules({ changes, now, beyond, cleared }: SchedulesOptions): Schedules {
  const stored = Object.keys(TABLES).map(
    (name) => [name, new Map<string, Key & { fields: number[] }>()] as const,
  );
  const commands: Cluster['commands'] = {};
  for (const [name, rows] of stored) {
    const table = TABLES[name as keyof typeof TABLES];
    const keyed = (input: Reader): Key => {
      const id = input.u8();
      return table.isOfUser ? { id, user: input.u16() } : { id };
    };
    const isThere = ({ id, user = 0 }: Key) => id < table.ids && user < USERS;
    commands[table.set] = (input): Answer => {
      const key = keyed(input);
      const sent = table.read(input);
      const fields = changes() ? [...sent.slice(0, -1), (sent.at(-1) ?? 0) + 1] : sent;
      const isGood = isThere(key) && table.isValid(fields);
      if (isGood) rows.set(nameOf(key), { ...key, fields });
      return responded(table.set, Buffer.of(isGood ? STATUS.success : STATUS.failure));
    };
    commands[table.get] = (input): Answer => {
      const key = keyed(input);
      const row = rows.get(nameOf(key));
      const status = !isThere(key) ? beyond : row ? STATUS.success : STATUS.notFound;
      const user = key.user === undefined ? [] : [u16(key.user)];
      return responded(table.get, bytes(key.id, ...user, status, ...(row ? [table.encode(row.fields)] : [])));
    };
    commands[table.clear] = (input): Answer => {
      const key = keyed(input);
      const isCleared = isThere(key);
      rows.delete(nameOf(key));
      if (isCleared && key.user !== undefined) cleared(key.user);
      return responded(table.clear, Buffer.of(isCleared ? STATUS.success : STATUS.failure));
    };
  }
  return {
    commands,
    change({ kind, id, user, fields }) {
      const key = user === undefined ? { id } : { id, user };
      const [, rows] = stored.find(([name]) => name === kind) ?? [];
      if (fields) rows?.set(nameOf(key), { ...key, fields });
      else rows?.delete(nameOf(key));
    },
    holidayMode() {
      const [, holidays] = stored.find(([name]) => name === 'holidays') ?? [];
      const rows = [...(holidays?.values() ?? [])].map(({ fields }) => fields);
      return rows.find(([start = 0, end = 0]) => start <= now() && now() < end)?.[2];
    },
    permits({ user, type }) {
      const limit = LIMITED[type];
      if (!limit) return true;
      const [, rows] = stored.find(([name]) => name === limit.table) ?? [];
      return [...(rows?.values() ?? [])].some((row) => row.user === user && limit.isOpen(row.fields, now()));
    },
    describe: () =>
      Object.fromEntries(stored.map(([name, rows]) => [name, [...rows.values()]])) as ReturnType<
        Schedules['describe']
      >,
  };
}
