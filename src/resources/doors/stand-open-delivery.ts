/** What opens a door for a time: the command to its lock, or the first pulse of its relay. Part of stand-open.ts. */
import type { Clock } from '../../platform/clock.ts';
import type { Busy } from './busy.ts';
import { addressOf, deadlineOf, HELD_AT_MOST_MS } from './lock-links.ts';
import type { StandOpenPhase } from './openings-table.ts';
import { type End, endOf, offline } from './outcome.ts';
import { mayHaveFired, type RelayHolds } from './relay-hold.ts';
import type { TargetOptions } from './stand-open-order.ts';
import { endedStrictly, relayOf } from './stand-open-order.ts';
import type { Moment } from './stand-open-time.ts';
import type { Delivery, Standing, StandingChanges, StandingOptions, Standings } from './standing.ts';

export interface StandOpenOptions extends StandingOptions, TargetOptions {
  busy: Busy;
}

export interface StandOpenParts {
  all: Standings;
  holds: RelayHolds;
  changes: StandingChanges;
  now(): Moment;
}

export type Deliver = (standing: Standing, before: StandOpenPhase | undefined) => Promise<Delivery>;

const ENDED_MEANWHILE = {
  outcome: 'unknown',
  reason: 'it was ended before its outcome was known',
} as const;
const STOPPING = 'the gateway is being stopped';
const NOT_SHOWN = 'the command was sent, and the lock has not shown that it is open';

/** `before`: the phase it had when this was decided. Throws DEVICE_OFFLINE: it was withdrawn before anything was sent. */
export function deliverIn(options: StandOpenOptions, { all, holds, changes }: StandOpenParts): Deliver {
  async function sendToLock(
    standing: Standing,
    mac: string,
    before: StandOpenPhase | undefined,
  ): Promise<Delivery> {
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
