/**
 * Locks every lock that the gateway has to lock, again and again until it was seen locked: after an unlock, and at the end of
 * standing open. A lock that relocks by itself is only watched, and locked when it does not report in time that it is locked.
 * What is to be locked is stored before the door is opened. After a restart all of it is due at once: locking too early does
 * no harm.
 *
 * A closing waits until `nextAt`, has an attempt under way, or is locked and its end is not stored yet. Watched: the lock relocks by
 * itself, and was sent nothing so far.
 *
 * | input               | waits                                                         | attempt under way           | locked       |
 * |---------------------|---------------------------------------------------------------|-----------------------------|--------------|
 * | nextAt              | stands open: waits · shown locked: asked · else: sent `lock`  | –                           | end stored   |
 * | reported locked     | counts: due after 5 s if watched, else now · watched: `dueAt` | the same                    | –            |
 * | reported open       | watched: due at `dueAt`, sooner while what opens may arrive   | the same                    | –            |
 * | sent: confirmed     | –                                                             | locked · due at `settledAt` | –            |
 * | sent: anything else | –                                                             | due later, alarm at 3       | –            |
 * | asked: locked       | –                                                             | locked                      | –            |
 * | asked: not locked   | –                                                             | due at `dueAt`, or now      | –            |
 * | gateway, lock back  | due now, if an attempt has failed                             | the same                    | –            |
 * | opened again        | begins again                                                  | begins again                | begins again |
 * | retired             | gone                                                          | gone                        | gone         |
 */
import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { Clock } from '../../platform/clock.ts';
import { whenUnreadable } from '../../platform/database/last-read.ts';
import { openWaking } from '../../platform/waking.ts';
import {
  type Closing,
  type ClosingOrders,
  type ClosingsOptions,
  openClosingOrders,
  type PendingClosing,
} from './closing-orders.ts';
import { type ClosingOutcomes, openClosingOutcomes } from './closing-outcomes.ts';
import { addressOf, deadlineOf, type LockAddress } from './lock-links.ts';
import type { ClosingRow } from './openings-table.ts';
import { type Attempted, type End, endOf, INTERNAL, offline } from './outcome.ts';
import type { DoorRow } from './table.ts';

const REST_MS = 60_000;
/** While what is due has to wait for a stand-open, of which it may turn out that nothing was sent. */
const KEPT_OPEN_REST_MS = 1_000;
/** After a fault of ours. */
const BROKEN_REST_MS = 10_000;
/** A bolt that a lock throws by itself and that springs back, as one that is blocked, does so within this time. */
const STAYS_LOCKED_MS = 5_000;
/** After a start links come up one after the other: for so long one that is down is no failed attempt. */
const LINKS_START_MS = 60_000;

export const NOT_OPENED = Number.NEGATIVE_INFINITY;

export interface Closings
  extends Pick<ClosingOrders, 'isPending' | 'store' | 'schedule' | 'close'>,
    Pick<ClosingOutcomes, 'abandon'> {
  /** Resolves with undefined when the lock need not be locked. */
  attempt(mac: string): Promise<Attempted | undefined>;
  /** A lock reported something; `before` is the report before it. */
  reported(mac: string, before: LockReport | undefined, after: LockReport): void;
  lockedInWords(mac: string): string;
  pendingOf(doorId: string): PendingClosing[];
  /** What is back is not let wait: the locks of a gateway, or one lock. */
  retry(back: { gatewayId: string } | { mac: string }): void;
  /** Those that several attempts have not seen locked. */
  alarms(): (PendingClosing & { doorId: string })[];
  /** For supervise. */
  run(signal: AbortSignal): Promise<never>;
}

/** Undefined: nothing was sent, and the lock is not known to be locked. */
type Work = (closing: Closing) => Promise<Attempted | undefined>;

export function openClosings(options: ClosingsOptions): Closings {
  const { clock, lockLinks } = options;
  const startedBy = clock.monotonic() + LINKS_START_MS;
  const waking = openWaking(clock);
  const orders = openClosingOrders(options, waking.wake);
  const { all, isPending, store, schedule, close } = orders;
  const { ended, failed, abandon } = openClosingOutcomes(options, orders);

  async function tryOnce(closing: Closing): Promise<Attempted> {
    const { row } = closing;
    const startedAt = clock.monotonic();
    const reason = startedAt < startedBy ? lockLinks.unreachable(presentAddressOf(row, options)) : undefined;
    if (reason === undefined) countAttempt(closing, startedAt);
    const end = await send(row, options);
    const outcome = outcomeOf(end);
    // It was opened again meanwhile, and has another time to be locked at.
    if (all.get(row.mac) !== closing || closing.row.openings !== row.openings) return outcome;
    const settlesMs = 'result' in end ? (end.settlesMs ?? 0) : 0;
    if (settlesMs > 0) closing.settledAt = Math.max(closing.settledAt, clock.monotonic() + settlesMs);
    if (outcome.outcome !== 'confirmed') await failed(closing, outcome);
    else if (startedAt < closing.settledAt) {
      closing.nextAt = closing.settledAt;
      return unsettled(closing, clock);
    } else await ended(closing, row);
    return outcome;
  }

  const { endWatched, askSeen } = watchedIn(options, all, ended);

  /** Locks it now; joins the attempt that is under way. */
  function attempt(closing: Closing, work: Work = tryOnce): ReturnType<Work> {
    closing.underWay ??= work(closing)
      .catch((error) => broken(closing, error, options))
      .finally(() => {
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
      else if (options.keepsOpen(closing.row.mac)) rest = Math.min(rest, KEPT_OPEN_REST_MS);
      else void attempt(closing, closing.isLocked ? endWatched : isSeenLocked(closing) ? askSeen : tryOnce);
    }
    return rest;
  }

  return {
    isPending,
    store,
    schedule,
    close,
    abandon,
    async attempt(mac) {
      const closing = all.get(mac);
      if (!closing || closing.isLocked) return undefined;
      // It may have joined a question, of which nothing came.
      return (await attempt(closing)) ?? (all.get(mac) === closing ? attempt(closing) : undefined);
    },
    reported: reportedIn(all, clock, waking.wake),
    lockedInWords: (mac) => lockedInWords(all.get(mac), clock),
    pendingOf: (doorId) =>
      [...all.values()].filter(({ row, isLocked }) => row.door_id === doorId && !isLocked).map(shownOf),
    retry(back) {
      for (const closing of all.values()) {
        const { mac, gateway_id } = closing.row;
        const isBack = 'mac' in back ? mac === back.mac : gateway_id === back.gatewayId;
        if (isBack && closing.failure && !closing.isLocked)
          closing.nextAt = Math.min(closing.nextAt, clock.monotonic());
      }
      waking.wake();
    },
    alarms: () => alarmsOf(all),
    async run(signal) {
      try {
        return await waking.run(signal, look);
      } finally {
        await Promise.all([...all.values()].map(({ underWay }) => underWay));
      }
    },
  };
}

/** Of locks that have shown that they are locked. */
function watchedIn(
  options: ClosingsOptions,
  all: ReadonlyMap<string, Closing>,
  ended: ClosingOutcomes['ended'],
) {
  const { clock, lockLinks } = options;
  async function endWatched(closing: Closing): Promise<Attempted> {
    await ended(closing, closing.row);
    return { outcome: 'confirmed', reason: null };
  }
  return {
    /** That is certain, and to be stored. */
    endWatched,
    /** The report may be older than the unlock. Undefined: the lock does not say so now, and is watched on or locked. */
    async askSeen(closing: Closing): Promise<Attempted | undefined> {
      const { row, shown } = closing;
      const bolt = await lockLinks.readBolt(presentAddressOf(row, options), row.mac);
      if (all.get(row.mac) !== closing || closing.row.openings !== row.openings) return undefined;
      if (bolt === 'locked') return endWatched(closing);
      // Unless it has reported something since.
      if (closing.shown === shown) closing.shown = undefined;
      const now = clock.monotonic();
      closing.nextAt = closing.attempts === 0 ? Math.max(closing.dueAt, now) : now;
      return undefined;
    },
  };
}

/** What a lock without a relock of its own showed before it was sent a lock command does not count. */
function countAttempt(closing: Closing, startedAt: number): void {
  if (!closing.relocksItself && closing.attempts === 0)
    closing.settledAt = Math.max(closing.settledAt, startedAt);
  closing.attempts += 1;
}

/** A fault of ours ends neither this task nor the attempts to lock the door. */
function broken(closing: Closing, error: unknown, { clock, log }: ClosingsOptions): Attempted {
  closing.nextAt = clock.monotonic() + BROKEN_REST_MS;
  log.error({ lock: closing.row.mac, err: error }, 'an attempt to lock a lock failed for a reason of ours');
  return { outcome: 'unknown', reason: INTERNAL.message };
}

/** It is locked now; that standing open has ended is not certain before nothing can arrive any more. */
function unsettled({ row, settledAt }: Closing, clock: Clock): Attempted {
  const seconds = Math.max(1, Math.ceil((settledAt - clock.monotonic()) / 1_000));
  const reason = `the lock is locked; a command that opens it and was sent before may still reach it for up to ${seconds} s, and the gateway locks it again then`;
  return { outcome: row.purpose === 'standOpen' ? 'accepted' : 'confirmed', reason };
}

/** For a message: when a lock that is to be locked is seen to next. */
function lockedInWords(closing: Closing | undefined, clock: Clock): string {
  if (!closing) return '';
  const seconds = Math.ceil((Math.max(closing.nextAt, closing.settledAt) - clock.monotonic()) / 1_000);
  return seconds > 0 ? `, which takes up to ${seconds} s` : '';
}

/**
 * The end of standing open is more than a locked bolt: the lock gets its mode and relock time back. A lock that does not relock
 * by itself is believed once it was sent a lock command: a sleeping one may carry that out long after its deadline.
 */
function isSeenLocked({ row, relocksItself, attempts, shown, settledAt }: Closing): boolean {
  if (row.purpose !== 'unlock' || (!relocksItself && attempts === 0)) return false;
  return shown?.isLocked === true && shown.at > settledAt;
}

function reportedIn(all: ReadonlyMap<string, Closing>, clock: Clock, wake: () => void) {
  return (mac: string, before: LockReport | undefined, { lockState }: LockReport): void => {
    const closing = all.get(mac);
    const isRepeated =
      lockState?.at === before?.lockState?.at && lockState?.value === before?.lockState?.value;
    if (!closing || closing.isLocked || !lockState || isRepeated) return;
    const now = clock.monotonic();
    closing.shown = { isLocked: lockState.value === 'locked', at: now };
    if (closing.isOpening) return;
    if (!closing.shown.isLocked) closing.nextAt = openUntil(closing, now);
    else if (isSeenLocked(closing)) {
      const restMs = closing.attempts === 0 ? STAYS_LOCKED_MS : 0;
      closing.nextAt = Math.min(closing.nextAt, now + restMs);
    } else if (closing.relocksItself && closing.attempts === 0) closing.nextAt = closing.dueAt;
    wake();
  };
}

/** A lock has reported that it is open: when it is locked unless it is seen locked before. */
function openUntil({ relocksItself, attempts, nextAt, dueAt, settledAt, openForMs }: Closing, now: number) {
  const isWatched = relocksItself && attempts === 0;
  const until = isWatched ? dueAt : nextAt;
  return settledAt > now ? Math.min(until, now + openForMs) : until;
}

/** It may have been heard through another gateway since; a lock that was replaced is where it was. */
function presentAddressOf(row: ClosingRow, options: ClosingsOptions): LockAddress {
  const { door_id } = row;
  const { gateway_id, network_id } = placeOf(row, options) ?? row;
  return addressOf({ door_id, gateway_id, network_id });
}

function placeOf({ mac, door_id }: ClosingRow, { table, lastRead }: ClosingsOptions): DoorRow | undefined {
  return whenUnreadable(
    () => table.byMac.get(mac),
    () => {
      const door = whenUnreadable(
        () => lastRead.door(door_id),
        () => undefined,
      );
      return door?.mac === mac ? door : undefined;
    },
  );
}

async function send(row: ClosingRow, options: ClosingsOptions): Promise<End> {
  const { log, lockLinks, rfPins } = options;
  const { mac, purpose } = row;
  const lock = presentAddressOf(row, options);
  const place = { id: lock.doorId, gateway_id: lock.gatewayId };
  const reason = lockLinks.unreachable(lock);
  if (reason !== undefined) return { refusal: offline(place, reason) };
  const kind = purpose === 'standOpen' ? 'endStandOpen' : 'lock';
  const data = { hwId: mac, pin: rfPins.pinOf(mac) };
  return endOf(lockLinks.actuate(lock, { kind, data }, deadlineOf(kind)), place, log);
}

function outcomeOf(end: End): Attempted {
  if ('result' in end) return end.result;
  return { outcome: 'waiting', reason: end.refusal.message };
}

function alarmsOf(all: ReadonlyMap<string, Closing>) {
  const raised = [...all.values()].filter(({ row }) => row.raised === 1);
  return raised.map((closing) => ({ doorId: closing.row.door_id, ...shownOf(closing) }));
}

function shownOf({ row, attempts, failure }: Closing): PendingClosing {
  const { mac, purpose, reason, since, raised } = row;
  return { mac, purpose, reason, since, attempts, failure, alarm: raised === 1 };
}
