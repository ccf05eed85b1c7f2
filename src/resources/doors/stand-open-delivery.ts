/**
 * What opens a door for a time, the command to its lock or the pulses of its relay, and what time does to it: ends, renewals, and
 * commands to locks that were sent none yet. Part of stand-open.ts.
 */
import { HELD_AT_MOST_MS } from '../../../drivers/contract/zgate.ts';
import type { Clock } from '../../platform/clock.ts';
import { whenUnreadable } from '../../platform/database/last-read.ts';
import { addressOf, DEADLINE_MS, deadlineOf } from './lock-links.ts';
import type { OpeningContext } from './opening-context.ts';
import type { StandOpenPhase, StandOpenRow } from './openings-table.ts';
import { type Attempted, AUDITED, type End, endOf, offline } from './outcome.ts';
import { mayHaveFired, type RelayHolds } from './relay-hold.ts';
import { endedBy, endedStrictly, isGivenUp, notFiredBecause, relayOf } from './stand-open-order.ts';
import { isOutdated, keptTime, type Moment } from './stand-open-time.ts';
import { intentOf, postpone, type Standing, type StandingChanges, type Standings } from './standing.ts';

export interface StandOpenParts {
  all: Standings;
  holds: RelayHolds;
  changes: StandingChanges;
  now(): Moment;
}

export type Deliver = (standing: Standing, before: StandOpenPhase | undefined) => Promise<Attempted>;

const ENDED_MEANWHILE = {
  outcome: 'unknown',
  reason: 'it was ended before its outcome was known',
} as const;
const STOPPING = 'the gateway is being stopped';
const NOT_SHOWN = 'the command was sent, and the lock has not shown that it is open';

/** `before`: the phase it had when this was decided. Throws DEVICE_OFFLINE: it was withdrawn before anything was sent. */
export function deliverIn(options: OpeningContext, { all, holds, changes }: StandOpenParts): Deliver {
  async function sendToLock(
    standing: Standing,
    mac: string,
    before: StandOpenPhase | undefined,
  ): Promise<Attempted> {
    const { door_id: id, gateway_id } = standing.row;
    const lock = addressOf(standing.row);
    const data = { hwId: mac, pin: options.rfPins.pinOf(mac) };
    const leftMs = Math.min(standing.endsAt, standing.giveUpAt) - options.clock.monotonic();
    const timeoutMs = deadlineOf('standOpen', leftMs);
    const heldBefore = standing.mayArriveUntil;
    standing.mayArriveUntil = Number.POSITIVE_INFINITY;
    const sending = options.lockLinks.actuate(lock, { kind: 'standOpen', data }, timeoutMs);
    const end = await endOf(sending, { id, gateway_id }, options.log);
    standing.mayArriveUntil = heldUntil(end, heldBefore, options.clock);
    if (all.get(id) !== standing || standing.isEnding) return ENDED_MEANWHILE;
    if ('refusal' in end) {
      // An earlier one may have arrived all the same.
      const phase = before === 'sent' || before === 'lost' ? before : 'waiting';
      await changes.keep(standing, { phase });
      return { outcome: 'waiting', reason: end.refusal.message };
    }
    const { outcome, reason } = end.result;
    if (outcome === 'confirmed') await changes.opened(standing);
    if (outcome === 'unknown' && standing.row.phase === 'sent')
      standing.failure = { code: 'OUTCOME_UNKNOWN', message: reason ?? NOT_SHOWN, at: options.clock.now() };
    if (outcome === 'jammed' || outcome === 'refused') {
      // Nothing is on its way any more, and the lock is closed all the same: it may have taken a part of it.
      standing.row = { ...standing.row, phase: 'lost' };
      await changes.stop(standing, reason ?? 'the bolt of the lock did not move');
    }
    return end.result;
  }

  /** Nothing was sent, and what ended it meanwhile is the answer. Throws DEVICE_OFFLINE. */
  async function assertWanted(standing: Standing, isCalledOff: boolean): Promise<void> {
    const { row } = standing;
    const ended = standing.endedBy ?? endedStrictly(row, options) ?? (isCalledOff ? STOPPING : undefined);
    if (ended === undefined) return;
    if (standing.isEnding) await standing.ending;
    else if (!isCalledOff || ended !== STOPPING) await changes.stop(standing, ended);
    throw offline({ id: row.door_id, gateway_id: row.gateway_id }, ended);
  }

  return async (standing, before) => {
    const { door_id: id, mac, phase } = standing.row;
    if (mac !== null) return sendToLock(standing, mac, before);
    if (phase === 'open' && holds.isOn(id)) return { outcome: 'confirmed', reason: null };
    const relay = relayOf(standing.row);
    const outcome = relay && (await (holds.renew(id, relay) ?? holds.firing(id)));
    if (outcome) await changes.held(standing, outcome);
    // It may have been ended since then.
    const isConfirmed = outcome?.kind === 'calledOff' ? outcome.fired === 'yes' : outcome?.kind === 'held';
    if (isConfirmed || holds.isOn(id)) return { outcome: 'confirmed', reason: null };
    if (outcome?.kind === 'calledOff' && outcome.fired === 'unknown') return ENDED_MEANWHILE;
    const isSent = outcome && 'fault' in outcome && mayHaveFired(outcome.fault);
    if (!isSent && standing.row.phase === 'waiting')
      await assertWanted(standing, outcome?.kind === 'calledOff');
    const reason = standing.failure?.message ?? 'its relay is being closed';
    return { outcome: isSent || standing.row.phase === 'sent' ? 'unknown' : 'waiting', reason };
  };
}

/** A lock that has answered has all that was sent, and of a refusal nothing was sent. */
function heldUntil(end: End, heldBefore: number, clock: Clock): number {
  if ('refusal' in end) return heldBefore;
  return end.result.outcome === 'unknown' ? clock.monotonic() + HELD_AT_MOST_MS : Number.NEGATIVE_INFINITY;
}

/** So often clocks and ends are looked at. */
const TICK_MS = 1_000;
const REST_MS = 60_000;

type Retry = (standing: Standing) => Promise<void>;

/** Sends the command to a lock that was sent none yet. */
export function retryIn(options: OpeningContext, { store }: StandingChanges, deliver: Deliver): Retry {
  const { clock, actuations } = options;
  async function retry(standing: Standing): Promise<void> {
    const { row } = standing;
    const sent: StandOpenRow = { ...row, phase: 'sent' };
    const detail = { mac: row.mac, until: new Date(row.until_at).toISOString(), again: true };
    const intent = intentOf(row);
    await actuations.begin(intent, detail, () => void store(sent));
    let delivery: Attempted = { outcome: 'waiting', reason: 'it was ended before it was sent' };
    // Another lock may have been given to the door in the same commit.
    if (!standing.isEnding && endedStrictly(row, options) === undefined) {
      standing.row = sent;
      standing.judgedFrom = clock.monotonic();
      delivery = await deliver(standing, row.phase);
    }
    postpone(standing, delivery, clock);
    await actuations.end(intent, AUDITED[delivery.outcome], { ...detail, ...delivery });
  }
  return async (standing) => {
    const door = `door/${standing.row.door_id}`;
    if (actuations.isBusy(door)) return;
    standing.isSending = true;
    try {
      await actuations.exclusive(door, () => retry(standing));
    } finally {
      standing.isSending = false;
    }
  };
}

export function lookIn(options: OpeningContext, { all, holds, changes, now }: StandOpenParts, retry: Retry) {
  const { log } = options;
  /** The next look does it again. */
  const keep = (standing: Standing, work: Promise<unknown> | undefined) =>
    void work?.catch((error) =>
      log.error({ door: standing.row.door_id, err: error }, 'a door that stands open was not looked after'),
    );

  /** No clock lengthens it. */
  function latch(standing: Standing, at: Moment): void {
    const { row } = standing;
    const left = Math.min(standing.endsAt - at.monotonic, row.until_at - at.wall);
    standing.endsAt = at.monotonic + left;
    if (left > 0 && isOutdated(row, at))
      void changes.keep(standing, keptTime(left, Math.floor(at.wall + left), at));
  }

  function goOn(standing: Standing, at: Moment): void {
    const { door_id: id, mac, phase } = standing.row;
    const relay = relayOf(standing.row);
    if (relay) {
      keep(
        standing,
        holds.renew(id, relay)?.then((outcome) => changes.held(standing, outcome)),
      );
      return;
    }
    if (mac === null || phase !== 'waiting' || standing.isSending) return;
    const isDue = standing.retryAt <= at.monotonic;
    const isInTime = at.monotonic + DEADLINE_MS <= Math.min(standing.giveUpAt, standing.endsAt);
    const lock = addressOf(standing.row);
    if (isDue && isInTime && options.lockLinks.unreachable(lock) === undefined)
      keep(standing, retry(standing));
  }

  function lookAt(standing: Standing, at: Moment): void {
    latch(standing, at);
    const { row, isSending } = standing;
    const reason = standing.endsAt <= at.monotonic ? 'its time is over' : endedNow(row, options);
    const isLate = isGivenUp(row) && standing.giveUpAt <= at.monotonic && !isSending;
    if (reason !== undefined) keep(standing, changes.stop(standing, reason));
    else if (isLate) keep(standing, changes.expire(standing));
    else goOn(standing, at);
  }

  return (): number => {
    const at = now();
    for (const standing of all.values()) {
      if (standing.isEnding) continue;
      try {
        lookAt(standing, at);
      } catch (error) {
        // The others end at their times all the same.
        keep(standing, Promise.reject(error));
      }
    }
    return all.size === 0 ? REST_MS : Math.max(0, Math.min(TICK_MS, holds.restMs()));
  };
}

/** Why it has to end now. What cannot be read ends nothing, and its time is known without that. */
function endedNow(row: StandOpenRow, options: OpeningContext): string | undefined {
  return whenUnreadable(
    () => endedBy(row, options.lastRead.door(row.door_id), options) ?? notFiredBecause(row, options),
    () => undefined,
  );
}
