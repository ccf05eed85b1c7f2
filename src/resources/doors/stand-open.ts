/**
 * Standing open: an explicit actuation with an end. A lock is sent one command, and at the end locked until it was seen locked
 * (closing.ts); a relay is held by short pulses (relay-hold.ts).
 *
 *   (none) ── POST ──▶ waiting ── asked ──▶ sent ── seen open ──▶ open ── not seen open ──▶ lost ── seen open ──▶ open
 *   waiting, and sent of a relay ── 15 minutes, or a restart ──▶ (none)
 *   waiting, sent, open, lost ── DELETE, its time, permission or lock gone ──▶ (none), and the lock is closed
 *
 * waiting: nothing was sent. A lock that did not answer its command stays `sent`, and is not sent it again by itself. A relay
 * goes from waiting to open, or to sent when nothing shows what came of its pulse; each renewal tries again, as when it was lost.
 */
import { HELD_AT_MOST_MS, HELD_FRAME_MS } from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import { openWaking } from '../../platform/waking.ts';
import type { Intent } from '../../services/actuations/actuations.ts';
import type { WiredRelay } from '../rs485/relays.ts';
import { addressOf, answerInTime, DEADLINE_MS } from './lock-links.ts';
import type { StandOpenBody } from './lock-schema.ts';
import type { OpeningContext } from './opening-context.ts';
import type { StandOpenPhase, StandOpenRow } from './openings-table.ts';
import { type Attempted, AUDITED, offline } from './outcome.ts';
import { openRelayHolds, RELAY_REPORTED_OPEN } from './relay-hold.ts';
import {
  type Deliver,
  deliverIn,
  lookIn,
  type StandOpenParts as Parts,
  retryIn,
} from './stand-open-delivery.ts';
import {
  assertAllowed,
  auditedTarget,
  endedStrictly,
  isGivenUp,
  isSameTarget,
  orderedRow,
  targetOf,
  untilOf,
} from './stand-open-order.ts';
import { keptTime, leftAfterStart, type Moment } from './stand-open-time.ts';
import {
  BEGINS_WITHIN_MS,
  closedMeanwhile,
  intentOf,
  newStanding,
  postpone,
  SENT_UNANSWERED,
  type Standing,
  type Standings,
  standingChanges,
} from './standing.ts';
import { existing } from './table.ts';

/** That a relay is held is stored after its first pulse. */
const UNSTORED =
  'the gateway was restarted before it was stored that the relay was held: the relay lets go, for a closed door is safe';

const TOO_LATE =
  'the gateway stood still, or its disk was too slow, and its time was over before it could be sent';

export interface StandOpen {
  /** Rejects when it has failed; a sleeping lock is sent the command after the answer. */
  begin(doorId: string, body: StandOpenBody, caller: Caller): Promise<Attempted>;
  /** Afterwards its lock has to be locked (closing.ts). */
  end(doorId: string, reason: string, caller: Caller): Promise<void>;
  /** It is asked for, and that is being stored: nothing was sent. */
  isBeginning(doorId: string): boolean;
  /** Its relay is held no more, and its last pulse may not be over yet. */
  isLettingGo(doorId: string): boolean;
  /** What is wanted of the door, or what opens it, may have changed. */
  wake(doorId: string): void;
  /** A gateway is back: what waits for it is sent now. */
  retry(gatewayId: string): void;
  /** A lock reported something. */
  reported(mac: string): void;
  /** The RS-485 device of a door reported this relay. */
  relayReported(doorId: string, relay: WiredRelay, isClosed: boolean): void;
  /** This lock was sent the command to stand open, and was not seen locked since. What is stored may lag behind. */
  keepsOpen(mac: string): boolean;
  /** Doors that are to stand open. */
  count(): number;
  of(doorId: string): Readonly<Standing> | undefined;
  /** The lock or the device has shown that it is open, and nothing says that this is over. */
  isOn(doorId: string): boolean;
  /** For supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openStandOpen(options: OpeningContext): StandOpen {
  const { table, clock } = options;
  const all: Standings = new Map();
  const holds = openRelayHolds(clock, options.rs485);
  const waking = openWaking(clock);
  const changes = standingChanges(options, all, holds);
  const now = momentOf(options);
  /** Relays that a former run held: lost until a pulse of this run is confirmed. */
  const interrupted: Standing[] = [];
  for (const row of table.standOpens.all()) {
    // Of what waits nothing was sent to a lock, and the caller may have gone.
    const giveUpAt = clock.monotonic();
    const mayArriveUntil = mayArriveAfterStart(row, clock);
    const standing = { ...newStanding(row, leftAfterStart(row, now()), clock), giveUpAt, mayArriveUntil };
    all.set(row.door_id, standing);
    if (row.device_id === null) continue;
    holds.formerly(row.door_id);
    if (isGivenUp(row)) {
      standing.failure = { code: 'INTERRUPTED', message: UNSTORED, at: clock.now() };
      continue;
    }
    if (row.phase === 'open') interrupted.push(standing);
    standing.row = { ...row, phase: 'lost', since: null };
  }
  const parts: Parts = { all, holds, changes, now };
  const deliver = deliverIn(options, parts);
  const orders = openOrders();
  const begin = beginIn(options, { ...parts, orders }, deliver, waking.wake);
  const look = lookIn(options, parts, retryIn(options, changes, deliver));

  return {
    begin(doorId, body, caller) {
      const { promise: stored, resolve } = Promise.withResolvers<void>();
      const { id } = existing(table, doorId);
      const begun = options.actuations.exclusive(`door/${id}`, () => begin(id, body, caller, resolve));
      return Promise.race([begun, stored.then(() => answerInTime(begun, clock, () => SENT_UNANSWERED))]);
    },
    async end(doorId, reason, caller) {
      await orders.withdraw(doorId, reason);
      const standing = all.get(doorId);
      await (standing?.isEnding ? standing.ending : standing && changes.stop(standing, reason, caller));
    },
    isBeginning: orders.has,
    isLettingGo: holds.isLettingGo,
    wake(doorId) {
      if (all.has(doorId)) waking.wake();
    },
    retry(gatewayId) {
      for (const standing of all.values())
        if (standing.row.gateway_id === gatewayId) standing.retryAt = clock.monotonic();
      waking.wake();
    },
    reported(mac) {
      for (const standing of all.values())
        if (standing.row.mac === mac && !standing.isEnding) void changes.reported(standing);
    },
    relayReported(doorId, relay, isClosed) {
      const outcome = holds.reported(doorId, relay, isClosed);
      const standing = all.get(doorId);
      if (outcome && standing && !standing.isEnding) void changes.held(standing, outcome);
    },
    keepsOpen: (mac) =>
      [...all.values()].some(({ row }) => row.mac === mac && !['waiting', 'lost'].includes(row.phase)),
    count: () => all.size,
    of: (doorId) => all.get(doorId),
    isOn(doorId) {
      const row = all.get(doorId)?.row;
      return row?.device_id == null ? row?.phase === 'open' : holds.isOn(doorId);
    },
    async run(signal) {
      try {
        await Promise.all(interrupted.splice(0).map(changes.interrupted));
        return await waking.run(signal, look);
      } finally {
        holds.dropAll();
      }
    },
  };
}

function momentOf({ clock, clockSynchronised, bootId }: OpeningContext) {
  return (): Moment => ({
    wall: clock.now(),
    monotonic: clock.monotonic(),
    synchronised: clockSynchronised(),
    bootId,
  });
}

/**
 * What a former run has sent may still arrive: `sent` was stored before the first frame, and what shows the lock open may be
 * something else. How long ago it was sent is not asked: the wall clock may have been set since.
 */
function mayArriveAfterStart({ mac, phase }: StandOpenRow, clock: Clock): number {
  const mayArrive = mac !== null && phase !== 'waiting';
  return mayArrive ? clock.monotonic() + HELD_AT_MOST_MS : Number.NEGATIVE_INFINITY;
}

function beginIn(
  options: OpeningContext,
  { all, holds, changes, now, orders }: Parts & { orders: Orders },
  deliver: Deliver,
  wake: () => void,
) {
  const { table, clock, catalogue, actuations, lockLinks, rs485 } = options;
  const delivered = deliveredIn(options, deliver);

  /** `stored` is called once the request is durable: the caller may be answered. */
  return (doorId: string, body: StandOpenBody, caller: Caller, stored: () => void): Promise<Attempted> =>
    orders.during(doorId, (order, settled) => {
      const isStored = () => {
        settled();
        stored();
      };
      return beginStored(doorId, body, caller, order, isStored);
    });

  async function beginStored(
    doorId: string,
    body: StandOpenBody,
    caller: Caller,
    order: Order,
    stored: () => void,
  ): Promise<Attempted> {
    const door = existing(table, doorId);
    assertAllowed(door, catalogue);
    const target = targetOf(door, options);
    if (target.device_id !== null) rs485.assertRelayProven(target.device_id);
    const at = now();
    const { until, endsAt, giveUpAt, latest } = timesOf(body, at, caller);
    const isLate = () => clock.monotonic() > latest;
    if (isLate()) throw offline(door, TOO_LATE);
    let other = all.get(doorId);
    if (other && !other.isEnding && !isSameTarget(other.row, target)) {
      await changes.stop(other, 'the door was given another lock or relay');
      other = undefined;
    }
    const before = other?.isEnding ? undefined : other?.row;
    const row = orderedRow(door, target, before, caller, at.wall, keptTime(until - at.wall, until, at));
    const isShown = before?.phase === 'open';
    const lock = addressOf(row);
    const reason = row.mac === null || isShown ? undefined : lockLinks.unreachable(lock);
    if (row.mac !== null && !isShown && reason === undefined) row.phase = 'sent';
    const intent = { ...intentOf(row), arrivedAt: caller.arrivedAt };
    const detail = {
      ...auditedTarget(target),
      until: new Date(until).toISOString(),
      extended: before !== undefined,
    };
    // Nothing ends what was before while this takes its place.
    if (other) other.isEnding = true;
    await actuations
      .begin(intent, detail, () => table.storeStandOpen(row))
      .catch((error) => {
        if (other) other.isEnding = before === undefined;
        throw error;
      });
    const isGone = await caller.isGone?.();
    const late = isGone
      ? 'the client disconnected before the command was sent'
      : (order.withdrawn ?? endedStrictly(row, options) ?? (isLate() ? TOO_LATE : undefined));
    if (late !== undefined) {
      if (other) other.isEnding = before === undefined;
      const refusal = offline(door, late);
      const reason = { code: refusal.code, message: late };
      const error = await actuations.unsent(intent, detail, reason, () => changes.withdraw(row));
      if (error !== undefined) changes.withdrawLater(row, error);
      throw refusal;
    }
    const standing = { ...newStanding(row, endsAt - clock.monotonic(), clock), giveUpAt };
    if (isShown && other) standing.judgedFrom = other.judgedFrom;
    if (other) standing.mayArriveUntil = other.mayArriveUntil;
    if (other && row.device_id !== null) standing.failure = other.failure;
    all.set(doorId, standing);
    // Its lock or its device may have reported while this was stored.
    if (isShown && row.device_id === null) void changes.reported(standing);
    else if (isShown && !holds.isOn(doorId)) void changes.held(standing, RELAY_REPORTED_OPEN);
    stored();
    const how = { isShown, reason, before: before?.phase };
    const delivery = await delivered(standing, how).catch(refusedIn(options, standing, intent, detail));
    await actuations.end(intent, AUDITED[delivery.outcome], { ...detail, ...delivery });
    wake();
    return delivery;
  }
}

/** Counted from when it arrived: `until` in epoch milliseconds, the others by the monotonic clock. Throws VALIDATION_FAILED. */
function timesOf(body: StandOpenBody, at: Moment, { arrivedAt = at.monotonic }: Caller) {
  const until = untilOf(body, at.wall, at.monotonic - arrivedAt);
  const endsAt = at.monotonic + until - at.wall;
  const giveUpAt = arrivedAt + BEGINS_WITHIN_MS;
  // A parent may hold the frame, which has as long as that of an unlock.
  const sentBefore = Math.max(endsAt, arrivedAt + DEADLINE_MS) - HELD_FRAME_MS;
  return { until, endsAt, giveUpAt, latest: Math.min(sentBefore, giveUpAt - DEADLINE_MS) };
}

/** It was withdrawn before anything was sent. */
function refusedIn({ actuations }: OpeningContext, standing: Standing, intent: Intent, detail: object) {
  return async (error: unknown): Promise<never> => {
    if (error instanceof GatehouseError) {
      const { code, message } = error;
      await actuations.unsent(intent, detail, { code, message: standing.endedBy ?? message });
    }
    throw error;
  };
}

function deliveredIn({ clock }: OpeningContext, deliver: Deliver) {
  return async (
    standing: Standing,
    how: { isShown: boolean; reason: string | undefined; before: StandOpenPhase | undefined },
  ): Promise<Attempted> => {
    const { door_id: id, gateway_id } = standing.row;
    if (how.isShown)
      return standing.row.phase === 'open'
        ? { outcome: 'confirmed', reason: null }
        : closedMeanwhile(standing.row);
    const { message } = offline({ id, gateway_id }, how.reason ?? '');
    const isUnreachable = how.reason !== undefined;
    standing.isSending = true;
    try {
      const delivery: Attempted = isUnreachable
        ? { outcome: 'waiting', reason: message }
        : await deliver(standing, how.before);
      postpone(standing, delivery, clock);
      return delivery;
    } finally {
      standing.isSending = false;
    }
  };
}

/** Requests for standing open that are being stored. A caller that closes the door meanwhile withdraws them: nothing opens later. */
interface Order {
  /** Why nothing is to be sent. */
  withdrawn: string | undefined;
}

interface Orders {
  has(doorId: string): boolean;
  /**
   * `settled` is called when the order takes effect; one that fails is over as well. One a door at a time (`exclusive` of
   * src/services/actuations/actuations.ts).
   */
  during<T>(doorId: string, work: (order: Order, settled: () => void) => Promise<T>): Promise<T>;
  /** Resolves when the order has been given up, or had taken effect before. */
  withdraw(doorId: string, reason: string): Promise<void>;
}

function openOrders(): Orders {
  const orders = new Map<string, Order & { over: Promise<void> }>();
  return {
    has: (doorId) => orders.has(doorId),
    async during(doorId, work) {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      const order = { withdrawn: undefined, over };
      const settled = () => {
        if (orders.get(doorId) === order) orders.delete(doorId);
        resolve();
      };
      orders.set(doorId, order);
      try {
        return await work(order, settled);
      } finally {
        settled();
      }
    },
    async withdraw(doorId, reason) {
      const order = orders.get(doorId);
      if (!order) return;
      order.withdrawn = reason;
      await order.over;
    },
  };
}
