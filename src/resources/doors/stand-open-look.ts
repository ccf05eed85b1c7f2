/** Doors that stand open, as time passes: their ends, the pulses of relays, and commands to locks. Part of stand-open.ts. */
import { whenUnreadable } from '../../platform/database/last-read.ts';
import { addressOf, DEADLINE_MS } from './lock-links.ts';
import type { StandOpenRow } from './openings-table.ts';
import type { Deliver, StandOpenParts as Parts, StandOpenOptions } from './stand-open-delivery.ts';
import { endedBy, endedStrictly, isGivenUp, notFiredBecause, relayOf } from './stand-open-order.ts';
import { isOutdated, keptTime, type Moment } from './stand-open-time.ts';
import {
  auditedAs,
  type Delivery,
  intentOf,
  postpone,
  type Standing,
  type StandingChanges,
} from './standing.ts';

/** So often clocks and ends are looked at. */
const TICK_MS = 1_000;
const REST_MS = 60_000;

type Retry = (standing: Standing) => Promise<void>;

/** Sends the command to a lock that was sent none yet. */
export function retryIn(options: StandOpenOptions, { store }: StandingChanges, deliver: Deliver): Retry {
  const { clock, actuations, busy } = options;
  async function retry(standing: Standing): Promise<void> {
    const { row } = standing;
    const sent: StandOpenRow = { ...row, phase: 'sent' };
    const detail = { mac: row.mac, until: new Date(row.until_at).toISOString(), again: true };
    const intent = intentOf(row);
    await actuations.begin(intent, detail, () => void store(sent));
    let delivery: Delivery = { outcome: 'waiting', reason: 'it was ended before it was sent' };
    // Another lock may have been given to the door in the same commit.
    if (!standing.isEnding && endedStrictly(row, options) === undefined) {
      standing.row = sent;
      standing.judgedFrom = clock.monotonic();
      delivery = await deliver(standing, row.phase);
    }
    postpone(standing, delivery, clock);
    await actuations.end(intent, auditedAs(delivery), { ...detail, ...delivery });
  }
  return async (standing) => {
    if (busy.has(standing.row.door_id)) return;
    standing.isSending = true;
    try {
      await busy.during(standing.row.door_id, () => retry(standing));
    } finally {
      standing.isSending = false;
    }
  };
}

export function lookIn(options: StandOpenOptions, { all, holds, changes, now }: Parts, retry: Retry) {
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
function endedNow(row: StandOpenRow, options: StandOpenOptions): string | undefined {
  return whenUnreadable(
    () => endedBy(row, options.lastRead.door(row.door_id), options) ?? notFiredBecause(row, options),
    () => undefined,
  );
}
