/** The list of doors: filters and orders over the directory, and what a row shows beside the resource. */
import type { LockReport } from '../../../drivers/contract/settings.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { fold } from '../../platform/fold.ts';
import type { Relay } from '../rs485/relays.ts';
import type { Rs485 } from '../rs485/rs485.ts';
import type { Conditions } from './conditions.ts';
import type { Configuration } from './configuration.ts';
import type { DoorContext } from './context.ts';
import type { Directory, Entry } from './directory.ts';
import type { DoorInBrief, DoorQuery, DoorSummary } from './list-schema.ts';
import type { Locks, Presence } from './locks.ts';
import type { DoorPresence, Offline } from './offline.ts';
import type { OfflineReason } from './schema.ts';
import type { ListedRow } from './table.ts';

export interface ListingOptions extends DoorContext {
  directory: Directory;
  locks: Pick<Locks, 'connection' | 'report'>;
  conditions: Pick<Conditions, 'matches' | 'levelOf' | 'percentOf'>;
  configuration: Pick<Configuration, 'isInForce' | 'isWaiting'>;
  offline: Offline;
}

/** Doors that cannot be reached, named in the status: of more the list has the rest. */
const OFFLINE_NAMED_MAX = 10;

export interface Counts extends Record<Presence | 'registered' | 'batteryLow', number> {
  offline: ({ doorId: string; name: string | null; accessPointId: number } & OfflineReason)[];
}

type Relays = ReturnType<Rs485['relays']>;
type Sort = NonNullable<DoorQuery['sort']>;

/** The last page of an order whose values are not known. */
const LAST = Number.MAX_SAFE_INTEGER;
const PRESENCE_RANK = { disconnected: 0, unknown: 1, connected: 2, none: 3 } as const;

export interface Listing {
  page(query: DoorQuery): { rows: { id: string; summary: DoorSummary }[]; next: string | null };
  /** From memory alone, so that a thousand of them hold nothing up. */
  inBrief(query: DoorQuery): { items: DoorInBrief[]; next: string | null };
  /** For the status. */
  counts(): Counts;
  /** For the metrics. */
  lockCounts(): LockCounts;
}

export function openListing(options: ListingOptions): Listing {
  const { directory, locks, conditions, configuration, offline, rs485 } = options;
  const relayOf = (entry: ListedRow, all: Relays) => all.get(entry.id) ?? null;

  function matches(entry: Entry, text: string | undefined, query: DoorQuery, all: Relays): boolean {
    const { groupId, networkId, gatewayId, pmsId, connected, lqiBelow, pending, applied } = query;
    if (groupId !== undefined && entry.group_id !== groupId) return false;
    if (networkId !== undefined && entry.network_id !== networkId) return false;
    if (gatewayId !== undefined && entry.gateway_id !== gatewayId) return false;
    if (pmsId !== undefined && entry.pms_id !== pmsId) return false;
    if (text !== undefined && !entry.text.includes(text)) return false;
    if (!conditions.matches(entry, query)) return false;
    if (lqiBelow !== undefined && !((locks.report(entry)?.lqi ?? LAST) < lqiBelow)) return false;
    const relay = relayOf(entry, all);
    if (connected !== undefined && !isPresent(offline.presence(entry, relay), connected)) return false;
    if (pending !== undefined && String(configuration.isWaiting(entry, relay)) !== pending) return false;
    return applied === undefined || String(configuration.isInForce(entry, relay)) === applied;
  }

  /** Ascending: the worst comes first. */
  function rankOf(entry: Entry, sort: Sort, all: Relays): number {
    const relay = relayOf(entry, all);
    if (sort === 'presence') return PRESENCE_RANK[offline.presence(entry, relay)?.status ?? 'none'];
    if (sort === 'battery')
      return conditions.levelOf(entry) === 'low' ? 0 : (conditions.percentOf(entry) ?? LAST);
    if (sort === 'pending') return Number(!configuration.isWaiting(entry, relay));
    if (sort === 'applied') return Number(configuration.isInForce(entry, relay));
    return locks.report(entry)?.[sort] ?? LAST;
  }

  function inRank(found: Entry[], sort: Sort, all: Relays): { entry: Entry; rank: number }[] {
    return found
      .map((entry) => ({ entry, rank: rankOf(entry, sort, all) }))
      .toSorted((a, b) => a.rank - b.rank || a.entry.access_point_id - b.entry.access_point_id);
  }

  function pageOf(query: DoorQuery, all: Relays): { entries: Entry[]; next: string | null } {
    const text = query.name === undefined ? undefined : fold(query.name);
    const { rank: afterRank, accessPointId: after } = cursorOf(query);
    const isMatch = (entry: Entry) => matches(entry, text, query, all);
    const isAfter = (rank: number, { access_point_id }: Entry) =>
      rank > afterRank || (rank === afterRank && access_point_id > after);
    const found = query.sort
      ? inRank(directory.entries().filter(isMatch), query.sort, all).filter(({ rank, entry }) =>
          isAfter(rank, entry),
        )
      : firstAfter(directory.entries(), after, query.limit + 1, isMatch).map((entry) => ({
          entry,
          rank: 0,
        }));
    const rows = found.slice(0, query.limit);
    const last = found.length > query.limit ? rows.at(-1) : undefined;
    return {
      entries: rows.map(({ entry }) => entry),
      next: last === undefined ? null : `${query.sort ? `${last.rank}.` : ''}${last.entry.access_point_id}`,
    };
  }

  return {
    page(query) {
      const all = rs485.relays();
      const { entries, next } = pageOf(query, all);
      const rows = entries.map((entry) => ({
        id: entry.id,
        summary: summaryOf(options, entry, relayOf(entry, all)),
      }));
      return { rows, next };
    },

    inBrief(query) {
      const all = rs485.relays();
      const { entries, next } = pageOf(query, all);
      return { items: entries.map((entry) => briefOf(options, entry, relayOf(entry, all))), next };
    },

    counts: () => countsOf(options),
    lockCounts: () => lockCountsOf(options),
  };
}

function summaryOf(
  { conditions, configuration, offline }: ListingOptions,
  entry: ListedRow,
  relay: Relay | null,
): DoorSummary {
  const presence = offline.presence(entry, relay);
  return {
    presence: presence?.status ?? null,
    since: presence === undefined ? null : new Date(presence.since).toISOString(),
    reason: offline.reason(entry, relay),
    battery: conditions.levelOf(entry),
    batteryPercent: conditions.percentOf(entry) ?? null,
    pending: configuration.isWaiting(entry, relay),
    applied: configuration.isInForce(entry, relay),
  };
}

function briefOf(
  { locks, conditions, configuration, offline }: ListingOptions,
  entry: ListedRow,
  relay: Relay | null,
): DoorInBrief {
  const report = locks.report(entry);
  return {
    id: entry.id,
    name: entry.name,
    accessPointId: entry.access_point_id,
    groupId: entry.group_id,
    gatewayId: entry.gateway_id,
    mac: entry.mac,
    pmsId: entry.pms_id,
    lqi: report?.lqi ?? null,
    lastSeen: report?.lastSeen ?? null,
    presence: offline.presence(entry, relay)?.status ?? null,
    battery: conditions.levelOf(entry),
    batteryPercent: conditions.percentOf(entry) ?? null,
    pending: configuration.isWaiting(entry, relay),
    applied: configuration.isInForce(entry, relay),
  };
}

/** For the status: doors by the presence of their lock; those without one are in `registered` alone. */
function countsOf({ directory, locks, conditions, offline, rs485 }: ListingOptions): Counts {
  const all = rs485.relays();
  const entries = directory.entries();
  const counts = { connected: 0, disconnected: 0, unknown: 0, batteryLow: 0 };
  const unreached: Counts['offline'] = [];
  for (const entry of entries) {
    const connection = locks.connection(entry);
    if (connection) counts[connection.status] += 1;
    if (connection && conditions.levelOf(entry) === 'low') counts.batteryLow += 1;
    if (unreached.length === OFFLINE_NAMED_MAX) continue;
    const reason = offline.reason(entry, all.get(entry.id) ?? null);
    const { id: doorId, name, access_point_id: accessPointId } = entry;
    if (reason) unreached.push({ doorId, name, accessPointId, ...reason });
  }
  return { registered: entries.length, ...counts, offline: unreached };
}

/** `false` is all that cannot be reached for certain. */
function isPresent(presence: DoorPresence | undefined, wanted: NonNullable<DoorQuery['connected']>): boolean {
  if (wanted === 'unknown') return presence?.status === 'unknown';
  return presence !== undefined && String(presence.status === 'connected') === wanted;
}

/** Throws VALIDATION_FAILED for a cursor of another order. */
function cursorOf({ cursor, sort }: DoorQuery): { rank: number; accessPointId: number } {
  if (cursor === undefined) return { rank: sort ? -1 : 0, accessPointId: 0 };
  const numbers = cursor.split('.').map(Number);
  if (numbers.length === (sort ? 2 : 1))
    return { rank: sort ? (numbers[0] ?? 0) : 0, accessPointId: numbers.at(-1) ?? 0 };
  const message = 'expected the `next` of the page before, with the same `sort`';
  throw new GatehouseError('VALIDATION_FAILED', `Not valid: ?cursor: ${message}.`, {
    details: [{ path: '?cursor', code: 'INVALID_FORMAT', message }],
  });
}

/** So many of those after an access point, by halving: `entries` are in that order. */
function firstAfter(
  entries: readonly Entry[],
  after: number,
  limit: number,
  isMatch: (entry: Entry) => boolean,
): Entry[] {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((entries[middle]?.access_point_id ?? 0) > after) high = middle;
    else low = middle + 1;
  }
  const found: Entry[] = [];
  for (let index = low; index < entries.length && found.length < limit; index += 1) {
    const entry = entries[index];
    if (entry && isMatch(entry)) found.push(entry);
  }
  return found;
}

/** Percent, each the end of a range. */
const CHARGES = [10, 20, 40, 60, 80, 100];

export interface LockCounts {
  battery: Record<'low' | 'ok' | 'unknown', number>;
  /** By the range of the charge that the lock reported last, such as `20-40`, without its lower end; `unknown`: none was reported. */
  charge: Record<string, number>;
  /** ok: from doors.lqiMin of the configuration on. */
  lqi: Record<'low' | 'ok' | 'unknown', number>;
}

/** How many locks of doors have which battery and which link quality: which of them it is is in the list of doors. */
function lockCountsOf({ directory, locks, conditions, thresholds }: ListingOptions): LockCounts {
  const counts: LockCounts = {
    battery: { low: 0, ok: 0, unknown: 0 },
    charge: Object.fromEntries([...CHARGES.map(rangeTo), 'unknown'].map((range) => [range, 0])),
    lqi: { low: 0, ok: 0, unknown: 0 },
  };
  for (const entry of directory.entries()) {
    if (entry.mac === null) continue;
    const { battery, lqi }: Partial<LockReport> = locks.report(entry) ?? {};
    const range = CHARGES.findIndex((end) => battery !== undefined && battery <= end);
    const charge = range < 0 ? 'unknown' : rangeTo(CHARGES[range] ?? 0, range);
    counts.charge[charge] = (counts.charge[charge] ?? 0) + 1;
    counts.battery[conditions.levelOf(entry)] += 1;
    counts.lqi[lqi === undefined ? 'unknown' : lqi < thresholds.lqiMin ? 'low' : 'ok'] += 1;
  }
  return counts;
}

const rangeTo = (end: number, index: number) => `${CHARGES[index - 1] ?? 0}-${end}`;
