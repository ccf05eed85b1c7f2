/** The allow-list: which cards open which doors, and when. Of a card only a keyed digest is kept. */
import { storedJson } from '../../platform/database/damaged-rows.ts';
import { GatehouseError, notPossible } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import type { Schedule } from '../../services/catalogue/schema.ts';
import type { AccessContext } from './context.ts';
import { type AccessCard, type CardBody, type CardQuery, storedDoors } from './schema.ts';
import type { CardRow } from './table.ts';

const PURPOSE = 'access card v1';
const BITS_PER_BYTE = 8;

/** What a reader said of a card; the bits in hex, the first one highest. */
export interface CardNumber {
  bits: string;
  count: number;
}

export type Verdict = { isAllowed: boolean; cardId: string | null; reason: string | null };

export interface Cards {
  list(query: CardQuery): { items: AccessCard[]; next: string | null };
  /** Throws ALREADY_EXISTS when another one has this number, VALIDATION_FAILED when a new one has none. */
  set(cardId: string, body: CardBody, caller: Caller): Promise<AccessCard>;
  /** Throws NOT_FOUND. */
  remove(cardId: string, caller: Caller): Promise<AccessCard>;
  digestOf(card: CardNumber): string;
  /** Whether the card opens this door now. */
  judge(digest: string, doorId: string): Verdict;
  countOnSchedule(scheduleId: string): number;
}

export function openCards(context: AccessContext): Cards {
  const { database, table, audit, clock, vault } = context;
  function record(
    action: string,
    cardId: string,
    { principal, correlationId }: Caller,
    detail: object,
  ): void {
    const entry = { principal, correlationId, action, object: `card/${cardId}`, outcome: 'done' };
    audit.record({ ...entry, detail: { ...detail } });
  }
  const digestOf = (card: CardNumber) => vault.digest(PURPOSE, `${card.count}:${withoutPadding(card)}`);

  return {
    digestOf,
    countOnSchedule: (scheduleId) => table.countOnSchedule.get(scheduleId)?.count ?? 0,
    judge: (digest, doorId) => judge(table.cardOf.get(digest), doorId, context),
    list({ cursor = '', limit }) {
      const rows = table.cards.all(cursor, limit + 1);
      const page = rows.slice(0, limit);
      const items = page.flatMap((row) => database.legible(`card/${row.id}`, () => shown(row)));
      return { items, next: rows.length > limit ? (page.at(-1)?.id ?? null) : null };
    },
    async set(cardId, body, caller) {
      const row = await database.commit(() => {
        const before = table.card.get(cardId);
        const digest = body.card ? digestOf(body.card) : before?.digest;
        if (digest === undefined) throw notPossible('/card', 'is missing: a new card has its number');
        const other = table.cardOf.get(digest);
        if (other && other.id !== cardId)
          throw new GatehouseError(
            'ALREADY_EXISTS',
            `Nothing was changed: this is the number of card ${other.id}.`,
          );
        const after = edited(before, { cardId, digest, at: clock.now() }, body);
        store(table, after);
        const { card: _, ...rest } = body;
        record('card.set', cardId, caller, { ...rest, ...(body.card && { card: 'given' }) });
        return after;
      });
      return shown(row);
    },
    async remove(cardId, caller) {
      const row = await database.commit(() => {
        const before = table.card.get(cardId);
        if (!before) throw new GatehouseError('NOT_FOUND', `There is no card ${cardId}.`);
        table.deleteCard.run(cardId);
        record('card.remove', cardId, caller, {});
        return before;
      });
      return shown(row);
    },
  };
}

function judge(row: CardRow | undefined, doorId: string, { time, catalogue }: AccessContext): Verdict {
  if (!row) return { isAllowed: false, cardId: null, reason: 'CARD_UNKNOWN' };
  const refused = (reason: string): Verdict => ({ isAllowed: false, cardId: row.id, reason });
  if (row.is_enabled !== 1) return refused('CARD_DISABLED');
  if (!doorsOf(row).includes(doorId)) return refused('OTHER_DOOR');
  const { schedule_id: scheduleId, valid_from: from, valid_until: until } = row;
  const isTimed = scheduleId !== null || from !== null || until !== null;
  if (isTimed && !time.synchronised()) return refused('CLOCK_NOT_TRUSTED');
  const now = time.now();
  if ((from !== null && now < from) || (until !== null && now >= until)) return refused('OUTSIDE_TIMES');
  if (scheduleId !== null) {
    const schedule = catalogue.schedule(scheduleId);
    if (!schedule) return refused('SCHEDULE_UNKNOWN');
    if (!isWithin(schedule.intervals, localTimeOf(new Date(now)))) return refused('OUTSIDE_TIMES');
  }
  return { isAllowed: true, cardId: row.id, reason: null };
}

/** Readers fill the last byte with what they like. */
function withoutPadding({ bits, count }: CardNumber): string {
  const bytes = Buffer.from(bits.padEnd(bits.length + (bits.length % 2), '0'), 'hex');
  const length = Math.ceil(count / BITS_PER_BYTE);
  const spare = length * BITS_PER_BYTE - count;
  const kept = Buffer.from(bytes.subarray(0, length));
  const last = kept.at(-1);
  if (last !== undefined) kept[kept.length - 1] = (last >> spare) << spare;
  return kept.toString('hex');
}

function edited(
  before: CardRow | undefined,
  { cardId, digest, at }: { cardId: string; digest: string; at: number },
  body: CardBody,
): CardRow {
  const timeOf = (text: string | null | undefined, was: number | null | undefined) =>
    text === undefined ? (was ?? null) : text === null ? null : Date.parse(text);
  const after = {
    id: cardId,
    digest,
    name: body.name === undefined ? (before?.name ?? null) : body.name,
    is_enabled: body.status === undefined ? (before?.is_enabled ?? 1) : Number(body.status === 'enabled'),
    doors: body.doors ? JSON.stringify(body.doors) : (before?.doors ?? '[]'),
    schedule_id: body.scheduleId === undefined ? (before?.schedule_id ?? null) : body.scheduleId,
    valid_from: timeOf(body.validFrom, before?.valid_from),
    valid_until: timeOf(body.validUntil, before?.valid_until),
    updated_at: at,
  };
  if (after.valid_from !== null && after.valid_until !== null && after.valid_from >= after.valid_until)
    throw notPossible('/validUntil', 'is not after validFrom');
  return after;
}

function store(table: AccessContext['table'], row: CardRow): void {
  const { id, digest, name, is_enabled, doors, schedule_id, valid_from, valid_until, updated_at } = row;
  table.setCard.run(id, digest, name, is_enabled, doors, schedule_id, valid_from, valid_until, updated_at);
}

const doorsOf = ({ id, doors }: CardRow) => storedJson(`card/${id}`, storedDoors, doors);
const shownTime = (at: number | null) => (at === null ? null : new Date(at).toISOString());

function shown(row: CardRow): AccessCard {
  return {
    cardId: row.id,
    name: row.name,
    status: row.is_enabled === 1 ? 'enabled' : 'disabled',
    doors: doorsOf(row),
    scheduleId: row.schedule_id,
    validFrom: shownTime(row.valid_from),
    validUntil: shownTime(row.valid_until),
    updatedAt: new Date(row.updated_at).toISOString(),
  };
}

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;
const MINUTES_PER_HOUR = 60;

interface LocalTime {
  /** 0 is Sunday. */
  day: number;
  /** Of the day. */
  minute: number;
}

/** The time of the day is the site's, which is that of the host: in the zone of this process. */
function localTimeOf(at: Date): LocalTime {
  return { day: at.getDay(), minute: at.getHours() * MINUTES_PER_HOUR + at.getMinutes() };
}

/** An end that is not after its start is on the next day. */
export function isWithin(intervals: Schedule['intervals'], { day, minute }: LocalTime): boolean {
  const today = DAYS[day];
  const yesterday = DAYS[(day + DAYS.length - 1) % DAYS.length];
  return intervals.some(({ days, start, end }) => {
    const isOvernight = end <= start;
    const isBegun = days.some((one) => one === today) && minute >= start && (isOvernight || minute < end);
    return isBegun || (isOvernight && days.some((one) => one === yesterday) && minute < end);
  });
}
