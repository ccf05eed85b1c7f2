/**
 * Locks every lock that the gateway has to lock, again and again until it was seen locked: after an unlock, and at the end of
 * standing open. A lock that relocks by itself is only watched, and locked when it does not report in time that it is locked.
 * What is to be locked is stored before the door is opened. After a restart all of it is due at once: locking too early does
 * no harm.
 */
import type { LockReport } from '../../drivers/settings.ts';
import type { Audit } from '../audit/audit.ts';
import type { Clock } from '../clock.ts';
import type { Database } from '../database/database.ts';
import type { LiveEvents } from '../events/events.ts';
import type { Log } from '../log.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../principal.ts';
import { waitBefore } from '../supervise.ts';
import { openWaking } from '../waking.ts';
import { addressOf, type LockAddress } from './configuration.ts';
import { doorAlarm, standingChanged } from './live-events.ts';
import {
  type ActuateLock,
  deadlineOf,
  type End,
  endOf,
  HELD_AT_MOST_MS,
  type Outcome,
  offline,
} from './lock-commands.ts';
import type { ClosingPurpose, ClosingRow } from './openings-table.ts';
import type { DoorRow, DoorTable } from './table.ts';

/** A battery of a lock that never answers lasts for years at the longest pause. */
const BACKOFF = { firstMs: 1_000, longestMs: 5 * 60_000 };
/** Attempts in a row after which somebody has to look at the door. */
const ATTEMPTS_TO_ALARM = 3;
const REST_MS = 60_000;
/** A bolt that a lock throws by itself and that springs back, as one that is blocked, does so within this time. */
const STAYS_LOCKED_MS = 5_000;
/** After a start links come up one after the other: for so long one that is down is no failed attempt. */
const LINKS_START_MS = 60_000;

export interface ClosingsOptions {
  database: Database;
  table: DoorTable;
  audit: Audit;
  events: LiveEvents;
  clock: Clock;
  log: Log;
  unreachable(lock: LockAddress): string | undefined;
  actuateLock: ActuateLock;
  /** What the lock requires; null: none is stored. */
  pinOf(mac: string): string | null;
}

export interface ClosingOrder {
  door: Pick<DoorRow, 'id' | 'gateway_id' | 'network_id'>;
  mac: string;
  purpose: ClosingPurpose;
  reason: string;
  /** What opens it may still be on its way to the lock. */
  uncertain: boolean;
  caller: Pick<Caller, 'principal' | 'correlationId'>;
}

export interface Watch {
  /** So long what opens it may still be on its way. NOT_OPENED: it was not opened again. */
  settlesMs?: number;
  relocksItself?: boolean;
  /** A lock that reports itself open while what opens it may be on its way is locked after so long, and not at the end of that time. */
  openForMs?: number;
  /** It is being opened again: that it is seen locked meanwhile ends nothing. */
  isOpening?: boolean;
}
export const NOT_OPENED = Number.NEGATIVE_INFINITY;

/** waiting: nothing was sent. */
export interface ClosingOutcome {
  outcome: Outcome['outcome'] | 'waiting';
  reason: string | null;
}

/** For …/state. */
export interface PendingClosing {
  mac: string;
  purpose: ClosingPurpose;
  reason: string;
  since: number;
  attempts: number;
  failure: { message: string; at: number } | null;
  alarm: boolean;
}

interface Closing {
  row: ClosingRow;
  /** Monotonic milliseconds, as are the next two. */
  nextAt: number;
  /** When it is locked unless it is seen locked before. */
  dueAt: number;
  /** What the lock showed before does not count. */
  settledAt: number;
  /** The lock locks by itself: nothing is sent when it has reported in time that it is locked. */
  relocksItself: boolean;
  /** After its report that it is open. */
  openForMs: number;
  /** It is being opened again. */
  isOpening: boolean;
  /** Its last report of the bolt. */
  shown: { isLocked: boolean; at: number } | undefined;
  attempts: number;
  failure: PendingClosing['failure'];
  underWay: Promise<ClosingOutcome> | undefined;
}

export type Closings = ReturnType<typeof openClosings>;

export function openClosings(options: ClosingsOptions) {
  const { table, clock, unreachable } = options;
  const all = new Map<string, Closing>();
  const startedBy = clock.monotonic() + LINKS_START_MS;
  const waking = openWaking(clock);
  for (const row of table.closings.all()) {
    const now = clock.monotonic();
    all.set(row.mac, newClosing(row, now, row.uncertain ? now + HELD_AT_MOST_MS : now));
  }
  const ended = endedIn(options, all);
  const failed = failedIn(options);

  async function tryOnce(closing: Closing): Promise<ClosingOutcome> {
    const { row } = closing;
    const startedAt = clock.monotonic();
    const isStarting = startedAt < startedBy && unreachable(presentAddressOf(row, table)) !== undefined;
    if (!isStarting) closing.attempts += 1;
    const outcome = outcomeOf(await send(row, options));
    // It was opened again meanwhile, and has another time to be locked at.
    if (all.get(row.mac) !== closing || closing.row.openings !== row.openings) return outcome;
    if (outcome.outcome !== 'confirmed') await failed(closing, outcome);
    else if (startedAt < closing.settledAt) closing.nextAt = closing.settledAt;
    else await ended(closing, row);
    return outcome;
  }

  /** It locked by itself, and reported that. */
  async function endWatched(closing: Closing): Promise<ClosingOutcome> {
    await ended(closing, closing.row);
    return { outcome: 'confirmed', reason: null };
  }

  /** Locks it now; joins the attempt that is under way. */
  function attempt(closing: Closing, work = tryOnce): Promise<ClosingOutcome> {
    closing.underWay ??= work(closing).finally(() => {
      closing.underWay = undefined;
      waking.wake();
    });
    return closing.underWay;
  }

  function look(): number {
    const now = clock.monotonic();
    let rest = REST_MS;
    for (const closing of all.values()) {
      if (closing.underWay) continue;
      if (closing.nextAt > now) rest = Math.min(rest, closing.nextAt - now);
      // The end of standing open locks it.
      else if (!table.standOpenOfLock.get(closing.row.mac))
        void attempt(closing, isSeenLocked(closing) ? endWatched : tryOnce);
    }
    return rest;
  }

  return {
    /** Inside a commit job, before the lock is opened or when its standing open ends. */
    store: storeIn(options),
    /** After that commit: it is locked after `delayMs`. */
    schedule(mac: string, delayMs: number, watch: Watch = {}): void {
      const { settlesMs = 0, relocksItself = false, openForMs = 0, isOpening = false } = watch;
      const row = table.closing.get(mac);
      const before = all.get(mac);
      if (!row) return void all.delete(mac);
      const now = clock.monotonic();
      const closing = before ?? newClosing(row, now, now);
      const settledAt = Math.max(closing.settledAt, now + settlesMs);
      const dueAt = now + delayMs;
      const watched = { settledAt, relocksItself, openForMs, isOpening };
      Object.assign(closing, { row, ...watched, nextAt: dueAt, dueAt, attempts: 0 });
      all.set(mac, closing);
      waking.wake();
    },
    /** Resolves with undefined when the lock need not be locked. */
    async attempt(mac: string): Promise<ClosingOutcome | undefined> {
      const closing = all.get(mac);
      return closing && attempt(closing);
    },
    /** A lock reported something; `before` is the report before it. */
    reported: reportedIn(all, clock, waking.wake),
    lockedInWords: (mac: string) => lockedInWords(all.get(mac), clock),
    pendingOf: (doorId: string): PendingClosing[] =>
      [...all.values()].filter(({ row }) => row.door_id === doorId).map(shownOf),
    /** What is back is not let wait: the locks of a gateway, or one lock. */
    retry(back: { gatewayId: string } | { mac: string }): void {
      for (const closing of all.values()) {
        const { mac, gateway_id } = closing.row;
        const isBack = 'mac' in back ? mac === back.mac : gateway_id === back.gatewayId;
        if (isBack && closing.failure) closing.nextAt = Math.min(closing.nextAt, clock.monotonic());
      }
      waking.wake();
    },
    alarms: () => [...all.values()].filter(({ row }) => row.raised === 1).length,
    /** For supervise. */
    async run(signal: AbortSignal): Promise<never> {
      try {
        return await waking.run(signal, look);
      } finally {
        await Promise.all([...all.values()].map(({ underWay }) => underWay));
      }
    },
  };
}

/** For a message: when a lock that is to be locked is seen to next. */
function lockedInWords(closing: Closing | undefined, clock: Clock): string {
  if (!closing) return '';
  const seconds = Math.ceil((Math.max(closing.nextAt, closing.settledAt) - clock.monotonic()) / 1_000);
  return seconds > 0 ? `, which takes up to ${seconds} s` : '';
}

function newClosing(row: ClosingRow, nextAt: number, settledAt: number): Closing {
  const shown = { relocksItself: false, openForMs: 0, isOpening: false, shown: undefined, failure: null };
  return { row, nextAt, dueAt: nextAt, settledAt, ...shown, attempts: 0, underWay: undefined };
}

/** The end of standing open is more than a locked bolt: the lock gets its mode and relock time back. */
function isSeenLocked({ row, relocksItself, shown, settledAt }: Closing): boolean {
  return row.purpose === 'unlock' && relocksItself && shown?.isLocked === true && shown.at > settledAt;
}

function reportedIn(all: ReadonlyMap<string, Closing>, clock: Clock, wake: () => void) {
  return (mac: string, before: LockReport | undefined, { lockState }: LockReport): void => {
    const closing = all.get(mac);
    const isRepeated =
      lockState?.at === before?.lockState?.at && lockState?.value === before?.lockState?.value;
    if (!closing || !lockState || isRepeated) return;
    const now = clock.monotonic();
    closing.shown = { isLocked: lockState.value === 'locked', at: now };
    if (closing.isOpening) return;
    if (!closing.shown.isLocked) closing.nextAt = openUntil(closing, now);
    else if (!closing.relocksItself) return;
    else if (isSeenLocked(closing)) {
      const restMs = closing.attempts === 0 ? STAYS_LOCKED_MS : 0;
      closing.nextAt = Math.min(closing.nextAt, now + restMs);
    } else if (closing.attempts === 0) closing.nextAt = closing.dueAt;
    wake();
  };
}

/** A lock has reported that it is open: when it is locked unless it is seen locked before. */
function openUntil({ relocksItself, attempts, nextAt, dueAt, settledAt, openForMs }: Closing, now: number) {
  const isWatched = relocksItself && attempts === 0;
  const until = isWatched ? dueAt : nextAt;
  return settledAt > now ? Math.min(until, now + openForMs) : until;
}

function storeIn({ table, clock }: ClosingsOptions) {
  return ({ door, mac, purpose, reason, uncertain, caller }: ClosingOrder): void => {
    const { principal, correlationId } = caller;
    table.storeClosing({
      mac,
      door_id: door.id,
      gateway_id: door.gateway_id,
      network_id: door.network_id,
      purpose,
      reason,
      uncertain: Number(uncertain),
      since: clock.now(),
      actor_id: principal.id,
      actor: principal.label,
      correlation_id: correlationId,
    });
  };
}

/** It may have been heard through another gateway since; a lock that was replaced is where it was. */
function presentAddressOf({ mac, door_id, ...stored }: ClosingRow, table: DoorTable): LockAddress {
  const { gateway_id, network_id } = table.byMac.get(mac) ?? stored;
  return addressOf({ door_id, gateway_id, network_id });
}

async function send(
  row: ClosingRow,
  { table, log, unreachable, actuateLock, pinOf }: ClosingsOptions,
): Promise<End> {
  const { mac, purpose } = row;
  const lock = presentAddressOf(row, table);
  const place = { id: lock.doorId, gateway_id: lock.gatewayId };
  const reason = unreachable(lock);
  if (reason !== undefined) return { refusal: offline(place, reason) };
  const kind = purpose === 'standOpen' ? 'endStandOpen' : 'lock';
  const data = { hwId: mac, pin: pinOf(mac) };
  return endOf(actuateLock(lock, { kind, data }, deadlineOf(kind)), place, log);
}

function outcomeOf(end: End): ClosingOutcome {
  if ('result' in end) return end.result;
  return { outcome: 'waiting', reason: end.refusal.message };
}

function endedIn({ database, table, audit, events, clock, log }: ClosingsOptions, all: Map<string, Closing>) {
  /** It was opened again while it was locked. */
  function refresh(mac: string): void {
    const row = table.closing.get(mac);
    const closing = all.get(mac);
    if (!row) all.delete(mac);
    else if (closing) Object.assign(closing, { row, nextAt: clock.monotonic() + BACKOFF.firstMs });
  }

  return async (closing: Closing, { mac, door_id, openings, purpose, raised, ...row }: ClosingRow) => {
    const { attempts } = closing;
    const detail = { mac, purpose, attempts, reason: row.reason };
    const { correlation_id: correlationId } = row;
    const entry = { principal: SYSTEM_PRINCIPAL, object: `door/${door_id}`, correlationId };
    // That a lock relocked by itself is no act of the gateway.
    const isWatched = attempts === 0 && raised === 0;
    try {
      const isEnded = await database.commit(
        () => {
          if (table.deleteClosing.run(mac, openings).changes === 0) return false;
          table.forgetPins.run();
          if (!isWatched) audit.record({ ...entry, action: 'door.relock', outcome: 'done', detail });
          if (purpose === 'standOpen') {
            audit.record({ ...entry, action: 'door.stand-open', outcome: 'ended', detail });
            events.publish(standingChanged(door_id, 'ended', row.reason));
          }
          if (raised === 1)
            events.publish(doorAlarm(door_id, 'notLocked', false, 'the lock was seen locked'));
          return true;
        },
        isWatched ? 'telemetry' : 'urgent',
      );
      if (isEnded) all.delete(mac);
      else refresh(mac);
    } catch (error) {
      closing.nextAt = clock.monotonic() + BACKOFF.longestMs;
      log.error({ door: door_id, err: error }, 'a lock was seen locked, and that was not stored');
    }
    events.wake();
  };
}

function failedIn({ database, table, audit, events, clock, log }: ClosingsOptions) {
  return async (closing: Closing, { outcome, reason }: ClosingOutcome): Promise<void> => {
    const { row, attempts } = closing;
    const { mac, door_id, purpose, correlation_id: correlationId } = row;
    closing.nextAt = clock.monotonic() + waitBefore(Math.max(1, attempts), BACKOFF, 1);
    const message = reason ?? WORDS[outcome] ?? outcome;
    closing.failure = { message, at: clock.now() };
    if (attempts < ATTEMPTS_TO_ALARM || row.raised === 1) return;
    log.warn(
      { door: door_id, lock: mac, purpose, reason: message },
      'a lock was not seen locked: look at the door; the lock is told again until it was',
    );
    const detail = { mac, purpose, attempts, reason: message };
    const entry = { principal: SYSTEM_PRINCIPAL, action: 'door.relock', object: `door/${door_id}` };
    try {
      await database.commit(() => {
        table.setClosingRaised.run(mac);
        audit.record({ ...entry, outcome: 'failed', detail, correlationId });
        events.publish(doorAlarm(door_id, 'notLocked', true, message));
      }, 'urgent');
      closing.row = { ...closing.row, raised: 1 };
    } catch (error) {
      log.error({ door: door_id, err: error }, 'the alarm of a lock that was not seen locked was not stored');
    }
    events.wake();
  };
}

const WORDS: Partial<Record<ClosingOutcome['outcome'], string>> = {
  accepted: 'the lock accepted the command, and did not report that it is locked',
  jammed: 'the bolt did not move',
};

function shownOf({ row, attempts, failure }: Closing): PendingClosing {
  const { mac, purpose, reason, since, raised } = row;
  return { mac, purpose, reason, since, attempts, failure, alarm: raised === 1 };
}
