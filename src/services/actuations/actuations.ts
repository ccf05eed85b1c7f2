/**
 * Actuations: what moves a door, and what takes time without being a job. The intent is in the audit before anything is
 * sent, the outcome after it. An intent whose outcome was never stored gets `unknown` at the next start, or before the next
 * actuation of the same action and object, so that the audit shows none as under way for ever.
 */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Log } from '../../platform/log.ts';
import type { Principal } from '../../platform/principal.ts';
import type { Audit } from '../audit/audit.ts';
import type { AuditEntry } from '../audit/entry.ts';
import { type ActuationRow, actuationTable } from './table.ts';

const STOPPED = 'the gateway was stopped before the outcome was known';
/** After its deadline, as only the lock could show. */
const LATE = 'late';
/** With an `error`: nothing was sent. */
const FAILED = 'failed';
const NOT_STORED = 'the outcome was known and could not be stored';

export interface Intent {
  principal: Pick<Principal, 'id' | 'label'>;
  /** As in the audit, such as door.unlock. */
  action: string;
  /** What it moves, such as door/<id>. */
  object: string;
  correlationId: string;
  /** What carries it; null: it opens nothing for anybody, as a test or a trace, and is not measured. */
  way: 'zigbee' | 'rs485' | null;
  /** Monotonic milliseconds, of the request; absent: it was asked for when it began. */
  arrivedAt?: number | undefined;
  /** Nothing sent before it can have an effect after it; known also after a restart. */
  isAlone?: boolean;
}

/** What is kept of an intent. */
type StoredIntent = Omit<Intent, 'way' | 'arrivedAt' | 'isAlone'>;

/** What became of actuations, and how long after the request that was known. */
export interface ActuationMeter {
  actuation(labels: { action: string; way: string; outcome: string }, milliseconds: number): void;
}

export interface LastActuation {
  /** Orders intents of all runs; the wall clock, which may be set back between two, does not. */
  ordinal: number;
  /** Epoch milliseconds, of the intent. */
  at: number;
  principalId: string;
  /** As in the audit; null: it is under way. */
  outcome: string | null;
  /** Of the outcome, before it of the intent. */
  detail: Record<string, unknown>;
  /** Monotonic milliseconds, of the intent; undefined: an earlier run made it. */
  begunAt: number | undefined;
  correlationId: string;
  /** As of its intent. */
  isAlone: boolean;
}

export interface Actuations {
  /** Resolves when the intent is durable: then it may be sent. `also` is stored in the same commit. */
  begin(intent: Intent, detail: object, also?: () => void): Promise<void>;
  /** `intent`: the object that `begin` got. What happened has happened: where its outcome cannot be stored, the log says so. Resolves with that error. */
  end(intent: Intent, outcome: string, detail: object, also?: () => void): Promise<unknown>;
  /** The same where nothing was sent. `refusal`: why. */
  unsent(
    intent: Intent,
    detail: object,
    refusal: { code: string; message: string },
    also?: () => void,
  ): Promise<unknown>;
  /**
   * Has `work` alone with an object, such as door/<id>: the outcome of one command may be out of date by the time a second caller
   * gets it. Throws IN_PROGRESS.
   */
  exclusive<T>(object: string, work: () => Promise<T>): Promise<T>;
  /** Such work is under way. */
  isBusy(object: string): boolean;
  /** Resolves when what is under way now is over. */
  over(object: string): Promise<void>;
  last(action: string, object: string): LastActuation | undefined;
  /** The latest but for those of which nothing was sent. Behind those only ones of this run are found. */
  lastSent(action: string, object: string): LastActuation | undefined;
  /** What the latest moved that went to this lock, by `mac` of its detail: the lock may be at another door since. */
  objectOfLock(action: string, mac: string): string | undefined;
  /** Every lock that the latest of these actions went to, by `mac` of its detail. Reads all of them: for a start. */
  locksMoved(actions: readonly string[]): string[];
  /**
   * Inside a commit job: the outcome of `lastSent` has become known after its end. To the audit, and to `lateOutcome` of its
   * detail. `isLate`: null where it became known after its deadline, which is measured as `late`, or where `delayMs`, from the intent, is
   * not known. Returns what is to be done after the commit.
   */
  late(
    last: Pick<Intent, 'action' | 'object' | 'way'>,
    late: LateOutcome,
    known: { delayMs: Delay; isLate: false | null },
  ): (() => void) | undefined;
}

export interface LateOutcome {
  outcome: string;
  /** Epoch milliseconds. */
  at: number;
}

interface Begun extends Pick<LastActuation, 'begunAt'> {
  /** The latest before it of which something was sent. */
  sentBefore: Sent | undefined;
}

interface Sent extends Pick<LastActuation, 'begunAt'> {
  row: ActuationRow;
}

/** Monotonic milliseconds; null: not known, as after a restart. */
export type Delay = number | null;

export interface ActuationsOptions {
  database: Database;
  audit: Audit;
  clock: Clock;
  log: Log;
  meter: ActuationMeter;
}

/** Settles what the gateway before this one left open. */
export async function openActuations(options: ActuationsOptions): Promise<Actuations> {
  const { database, audit, clock, log, meter } = options;
  const table = actuationTable(database);
  /** What is under way: its row, and when it was asked for. */
  const underWay = new Map<Intent, { id: number; arrivedAt: number }>();
  const isUnderWay = (row: ActuationRow) => [...underWay.values()].some(({ id }) => id === row.id);
  const { begunAtOf, sentOf, remember } = openBegun();
  const shown = ({ row, begunAt }: Sent) => lastOf(row, begunAt, isUnderWay(row));
  /** Inside a commit job. */
  function conclude(id: number, intent: StoredIntent, outcome: string, detail: object): void {
    audit.record(entryOf(intent, outcome, detail));
    table.end.run(outcome, JSON.stringify(detail), id);
  }
  const settle = (row: ActuationRow, reason: string) =>
    conclude(row.id, intentOf(row), 'unknown', { ...detailOf(row), outcome: 'unknown', reason });

  /** A pulse of an RS-485 device carries an unlock under its correlation id: what is known of the one is known of the other. */
  function settleAtStart(row: ActuationRow): void {
    const detail = detailOf(row);
    const carried = table.within.get(row.correlation_id, `rs485/${detail.deviceId}`, row.ordinal);
    const known = carried && knownOf(carried);
    if (carried?.outcome) conclude(row.id, intentOf(row), carried.outcome, { ...detail, ...known });
    else settle(row, STOPPED);
  }

  if (table.open.all().length > 0)
    await database
      .commit(() => {
        for (const row of table.open.all()) settleAtStart(row);
      }, 'urgent')
      .catch((error) => log.error({ err: error }, 'what was under way at the last end was not settled'));

  const end: Actuations['end'] = async (intent, outcome, detail, also) => {
    const { action, object, way } = intent;
    const own = underWay.get(intent);
    if (!own) throw new TypeError(`${action} of ${object} was not begun`);
    if (way) meter.actuation({ action, way, outcome }, clock.monotonic() - own.arrivedAt);
    try {
      await database.commit(() => {
        conclude(own.id, intent, outcome, detail);
        also?.();
      }, 'urgent');
      return undefined;
    } catch (error) {
      log.error({ action, object, outcome, err: error }, 'an outcome was not stored; its intent is');
      return error;
    } finally {
      underWay.delete(intent);
    }
  };

  return {
    ...openExclusive(),
    unsent: (intent, detail, { code, message }, also) =>
      end(intent, FAILED, { ...detail, error: code, reason: message }, also),
    async begin(intent, detail, also) {
      const { principal, action, object, correlationId, arrivedAt = clock.monotonic() } = intent;
      const { isAlone = false } = intent;
      const isBegun = database.commit((): Begun => {
        for (const row of table.openOf(action, object)) if (!isUnderWay(row)) settle(row, NOT_STORED);
        const sentBefore = sentOf(table.last(action, object));
        audit.record(entryOf(intent, 'accepted', detail));
        const by = { actor_id: principal.id, actor: principal.label, correlation_id: correlationId };
        const what = { action, object, at: clock.now(), is_alone: Number(isAlone) };
        const stored = { ...what, ...by, detail: JSON.stringify(detail) };
        underWay.set(intent, { ...table.begin(stored), arrivedAt });
        also?.();
        return { begunAt: clock.monotonic(), sentBefore };
      }, 'urgent');
      const begun = await isBegun.catch((error) => {
        underWay.delete(intent);
        throw error;
      });
      remember(intent, begun);
    },
    end,
    objectOfLock: (action, mac) => table.toLock.get(action, mac)?.object,
    locksMoved: (actions) => table.locks.all(JSON.stringify(actions)).map(({ mac }) => mac),
    late: openLate(options, table, sentOf),
    last(action, object) {
      const row = table.last(action, object);
      return row && shown({ row, begunAt: begunAtOf(row) });
    },
    lastSent(action, object) {
      const sent = sentOf(table.last(action, object));
      return sent && shown(sent);
    },
  };
}

function openExclusive(): Pick<Actuations, 'exclusive' | 'isBusy' | 'over'> {
  const objects = new Map<string, Promise<void>>();
  return {
    isBusy: (object) => objects.has(object),
    over: async (object) => objects.get(object),
    async exclusive(object, work) {
      if (objects.has(object)) {
        const message = `A command to ${object.replace('/', ' ')} is under way: wait for its outcome. Nothing more was sent.`;
        throw new GatehouseError('IN_PROGRESS', message);
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      objects.set(object, promise);
      try {
        return await work();
      } finally {
        objects.delete(object);
        resolve();
      }
    },
  };
}

function openLate(
  { audit, meter }: ActuationsOptions,
  table: ReturnType<typeof actuationTable>,
  sentOf: (row: ActuationRow | undefined) => Sent | undefined,
): Actuations['late'] {
  return ({ action, object, way }, late, { delayMs, isLate }) => {
    const latest = table.last(action, object);
    const row = sentOf(latest)?.row;
    if (!row || row.outcome === null) return undefined;
    const detail = { ...detailOf(row), lateOutcome: late };
    const known = { isLate, delayMilliseconds: delayMs };
    audit.record({ ...intentOf(row), outcome: 'done', detail: { ...detail, ...known } });
    const text = JSON.stringify(detail);
    if (row === latest) table.end.run(row.outcome, text, row.id);
    return () => {
      // It is in memory alone.
      Object.assign(row, { detail: text });
      if (way && isLate === null && delayMs !== null)
        meter.actuation({ action, way, outcome: LATE }, delayMs);
    };
  };
}

/** What this run knows of the latest of each door and relay. */
function openBegun() {
  const begun = new Map<string, Begun>();
  const begunAtOf = (key: Pick<Intent, 'action' | 'object'>) => begun.get(keyOf(key))?.begunAt;
  return {
    begunAtOf,
    /** Of the row of the latest. */
    sentOf(row: ActuationRow | undefined): Sent | undefined {
      if (row && isUnsent(row)) return begun.get(keyOf(row))?.sentBefore;
      return row && { row, begunAt: begunAtOf(row) };
    },
    remember: (key: Pick<Intent, 'action' | 'object'>, one: Begun): void => void begun.set(keyOf(key), one),
  };
}

function entryOf(intent: StoredIntent, outcome: string, detail: object): AuditEntry {
  const { principal, action, object, correlationId } = intent;
  return { principal, action, object, correlationId, outcome, detail: { ...detail } };
}

function keyOf({ action, object }: Pick<Intent, 'action' | 'object'>): string {
  return `${action} ${object}`;
}

function lastOf(row: ActuationRow, begunAt: number | undefined, isUnderWay: boolean): LastActuation {
  const isLost = row.outcome === null && !isUnderWay;
  const detail = detailOf(row);
  return {
    ordinal: row.ordinal,
    at: row.at,
    principalId: row.actor_id,
    outcome: isLost ? 'unknown' : row.outcome,
    correlationId: row.correlation_id,
    detail: isLost ? { ...detail, outcome: 'unknown', reason: NOT_STORED } : detail,
    begunAt,
    isAlone: row.is_alone === 1,
  };
}

/** One that jammed has failed, too, and has no error. */
function isUnsent(row: ActuationRow): boolean {
  return row.outcome === FAILED && detailOf(row).error !== undefined;
}

function intentOf({ action, object, actor_id, actor, correlation_id }: ActuationRow): StoredIntent {
  return { principal: { id: actor_id, label: actor }, action, object, correlationId: correlation_id };
}

function detailOf({ detail }: ActuationRow): Record<string, unknown> {
  return JSON.parse(detail) as Record<string, unknown>;
}

/** What an outcome says besides what was asked for. */
function knownOf(row: ActuationRow): Record<string, unknown> {
  const { error, outcome, reason } = detailOf(row);
  return { ...(error !== undefined && { error }), ...(outcome !== undefined && { outcome }), reason };
}
