/**
 * Keeps the doors of relays open that are to stand open. They have no lock that would: the gateway fires the relay for a
 * while, and again well before that is over. When the gateway, its host or the bus dies, the device lets the relay go by
 * itself, HOLD_MS later at the latest.
 *
 * Who wanted it is in the audit since the configuration was put in force. This adds when the door begins to stand open,
 * when that ends and when it is lost, and not each pulse: of one door these would be ten thousand a day.
 */
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import { GatehouseError } from '../errors.ts';
import type { LiveEvents } from '../events/events.ts';
import type { Log } from '../log.ts';
import { SYSTEM_PRINCIPAL } from '../principal.ts';
import { AWAKE, openWaking } from '../waking.ts';
import { type Catalogue, effectiveOf } from './catalogue.ts';
import type { Configuration, Relay } from './configuration.ts';
import { type StandingChange, standingChanged } from './live-events.ts';
import type { DoorState } from './schema.ts';
import type { DoorRow, DoorTable } from './table.ts';
import { isWithin } from './weekly.ts';

/** So long a door stays open that nobody looks after any more. */
export const HOLD_MS = 20_000;
/** Twice in each pulse, so that one renewal may fail and the door stays open. */
export const RENEW_EVERY_MS = 8_000;
/** Of one renewal; shorter than the time to the next, so that none comes after what was decided later. */
const ATTEMPT_MS = 5_000;
/** In a row, before it counts as lost. The first one leaves the door open, or is a link that has just been started. */
const FAILURES_TO_BE_LOST = 2;
/** Intervals begin and end with a minute of the wall clock, which may be set meanwhile. */
const MINUTE_MS = 60_000;

export interface StandingOpenOptions {
  database: Database;
  table: Pick<DoorTable, 'standing'>;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  log: Log;
  catalogue: Catalogue;
  configuration: Pick<Configuration, 'isInForce'>;
  relay(doorId: string): Relay | undefined;
  /** Fires the relay of an RS-485 device once, for so long from now at least. Rejects with a GatehouseError. */
  holdRelay(
    deviceId: string,
    hold: { milliseconds: number; timeoutMs: number },
    signal: AbortSignal,
  ): Promise<{ outcome: 'confirmed' | 'unknown' }>;
}

export interface StandingOpen {
  /** What is wanted of the door or in force may have changed. */
  wake(doorId: string): void;
  /** For …/state; null: nothing is to hold the relay of the door. */
  shown(doorId: string): DoorState['standingOpen'];
  /** For supervise. */
  run(signal: AbortSignal): Promise<never>;
}

/** `wait`: nothing may be sent, and what is under way runs out. */
type Verdict =
  | { kind: 'hold'; deviceId: string }
  | { kind: 'wait'; reason: string }
  | { kind: 'end'; reason: string };

/** One door that is to stand open. Times are monotonic milliseconds. */
interface Hold {
  readonly door: Pick<DoorRow, 'id' | 'config_correlation_id'>;
  readonly deviceId: string;
  kind: 'hold' | 'wait';
  renewAt: number;
  /** Of the last pulse that was confirmed. */
  endsAt: number;
  /** Epoch milliseconds. */
  since: number | null;
  failures: number;
  failure: { code: string; message: string; at: number } | null;
  told: StandingChange | undefined;
  /** Of the renewal under way. */
  attempt: AbortController | undefined;
}

export function openStandingOpen(options: StandingOpenOptions): StandingOpen {
  const { table, clock, relay } = options;
  const holds = new Map<string, Hold>();
  const underWay = new Set<Promise<void>>();
  function keep(work: Promise<void>): void {
    underWay.add(work);
    void work.finally(() => underWay.delete(work));
  }
  const tell = tellIn(options, keep);
  const renew = renewIn(options, { holds, tell, keep });
  const waking = openWaking(clock);

  function end(hold: Hold, reason: string): void {
    holds.delete(hold.door.id);
    hold.attempt?.abort(AWAKE);
    if (hold.told) tell(hold, 'ended', reason);
  }

  function consider(door: DoorRow): void {
    const verdict = verdictOf(door, options);
    const before = holds.get(door.id);
    const now = clock.monotonic();
    if (verdict.kind === 'hold') {
      const { deviceId } = verdict;
      if (before && before.deviceId !== deviceId) end(before, 'another device opens the door now');
      const hold = holds.get(door.id) ?? newHold(door, deviceId);
      holds.set(door.id, hold);
      if (hold.kind === 'wait') Object.assign(hold, { kind: 'hold', renewAt: now });
      if (hold.renewAt <= now) renew(hold);
    } else if (before && (verdict.kind === 'end' || before.endsAt <= now)) {
      end(before, verdict.reason);
    } else if (before) {
      before.kind = 'wait';
      before.attempt?.abort(AWAKE);
    }
  }

  function look(): void {
    const wanted = new Map(table.standing.all().map((row) => [row.id, row]));
    for (const [id, hold] of holds) if (!wanted.has(id)) end(hold, 'nobody wants it any more');
    for (const row of wanted.values()) consider(row);
  }

  function restMs(): number {
    const next = [...holds.values()].map(({ kind, renewAt, endsAt }) => (kind === 'wait' ? endsAt : renewAt));
    const toMinute = MINUTE_MS - (clock.now() % MINUTE_MS);
    return Math.max(0, Math.min(toMinute, ...next.map((time) => time - clock.monotonic())));
  }

  return {
    wake(doorId) {
      // Of the many doors with a lock nothing is to be done here.
      if (holds.has(doorId) || relay(doorId)) waking.wake();
    },
    shown(doorId) {
      const hold = holds.get(doorId);
      return hold ? shownOf(hold, clock.monotonic()) : null;
    },
    async run(signal) {
      try {
        return await waking.run(signal, () => {
          look();
          return restMs();
        });
      } finally {
        for (const { attempt } of holds.values()) attempt?.abort(AWAKE);
        await Promise.all(underWay);
      }
    },
  };
}

interface Renewing {
  holds: ReadonlyMap<string, Hold>;
  tell: Tell;
  /** Is waited for at the end. */
  keep(work: Promise<void>): void;
}

function renewIn({ clock, log, holdRelay }: StandingOpenOptions, { holds, tell, keep }: Renewing) {
  async function attempt(hold: Hold, signal: AbortSignal): Promise<void> {
    const order = { milliseconds: HOLD_MS, timeoutMs: ATTEMPT_MS };
    const failure = await holdRelay(hold.deviceId, order, signal).then(
      ({ outcome }) => (outcome === 'confirmed' ? undefined : UNCONFIRMED),
      faultOf,
    );
    hold.attempt = undefined;
    if (holds.get(hold.door.id) !== hold) return;
    if (failure === undefined) held(hold);
    // What was called off by us is no failure.
    else if (!signal.aborted) failed(hold, failure);
  }

  function held(hold: Hold): void {
    hold.endsAt = clock.monotonic() + HOLD_MS;
    Object.assign(hold, { since: hold.since ?? clock.now(), failures: 0, failure: null });
    if (hold.told !== 'begun') tell(hold, 'begun', null);
  }

  function failed(hold: Hold, { err, ...fault }: Fault): void {
    hold.failures += 1;
    hold.failure = { ...fault, at: clock.now() };
    if (hold.failures < FAILURES_TO_BE_LOST || hold.told === 'lost') return;
    hold.since = null;
    log.warn({ door: hold.door.id, ...fault, err }, 'a door that is to stand open is not held open');
    tell(hold, 'lost', fault.message);
  }

  return (hold: Hold): void => {
    hold.renewAt = clock.monotonic() + RENEW_EVERY_MS;
    if (hold.attempt) return;
    hold.attempt = new AbortController();
    keep(attempt(hold, hold.attempt.signal));
  };
}

interface Fault {
  code: string;
  message: string;
  err?: unknown;
}

const UNCONFIRMED: Fault = {
  code: 'OUTCOME_UNKNOWN',
  message: 'the relay was told to close, and nothing confirmed it',
};

/** That a device is away needs no stack; a fault of ours, `err`, does. */
function faultOf(err: unknown): Fault {
  if (err instanceof GatehouseError) return { code: err.code, message: err.message };
  return { code: 'INTERNAL', message: 'the gateway itself failed; its log says why', err };
}

function newHold({ id, config_correlation_id }: DoorRow, deviceId: string): Hold {
  return {
    door: { id, config_correlation_id },
    deviceId,
    kind: 'hold',
    attempt: undefined,
    told: undefined,
    renewAt: Number.NEGATIVE_INFINITY,
    endsAt: Number.NEGATIVE_INFINITY,
    since: null,
    failures: 0,
    failure: null,
  };
}

/** What ends it may be wanted before it is in force; what begins it must be in force. */
function verdictOf(row: DoorRow, { clock, catalogue, configuration, relay }: StandingOpenOptions): Verdict {
  const device = relay(row.id);
  if (!device) return { kind: 'end', reason: 'no RS-485 device opens the door' };
  const { schedule, standOpenEnabled } = effectiveOf(row, catalogue);
  if (!standOpenEnabled) return { kind: 'end', reason: 'its template does not allow it' };
  const intervals = schedule?.intervals ?? [];
  if (intervals.length > 0 && !isWithin(intervals, new Date(clock.now())))
    return { kind: 'end', reason: 'it is outside the intervals of its schedule' };
  if (!configuration.isInForce(row)) return { kind: 'wait', reason: 'its configuration is not in force' };
  if (!device.settled) return { kind: 'wait', reason: 'its device does not have its settings' };
  return { kind: 'hold', deviceId: device.deviceId };
}

function shownOf({ since, endsAt, failure }: Hold, now: number): DoorState['standingOpen'] {
  const at = (time: number) => new Date(time).toISOString();
  return {
    on: endsAt > now,
    since: since === null ? null : at(since),
    failure: failure && { ...failure, at: at(failure.at) },
  };
}

type Tell = (hold: Hold, change: StandingChange, reason: string | null) => void;

function tellIn({ database, audit, events, log }: StandingOpenOptions, keep: Renewing['keep']): Tell {
  return (hold, change, reason) => {
    const { door, deviceId } = hold;
    hold.told = change;
    const stored = database.commit(() => {
      audit.record({
        principal: SYSTEM_PRINCIPAL,
        action: 'door.stand-open',
        object: `door/${door.id}`,
        outcome: change,
        detail: { deviceId, ...(reason !== null && { reason }) },
        correlationId: door.config_correlation_id,
      });
      events.publish(standingChanged(door.id, change, reason));
    }, 'urgent');
    // A disk that is full closes no door that is to be open, nor keeps one from closing.
    const failed = (error: unknown) =>
      log.error({ door: door.id, change, err: error }, 'a change of a door that stands open was not stored');
    keep(stored.then(events.wake, failed));
  };
}
