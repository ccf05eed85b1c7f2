/**
 * Holds the relays of doors that stand open by short pulses, each renewed well before it is over. When the gateway, its host or
 * the bus dies, the device lets the relay go by itself, HOLD_MS later at the latest.
 *
 * A relay is on while its last confirmed pulse goes on (`endsAt`), uncertain while one of unknown outcome may (`uncertainEndAt`), else off.
 *
 * | input           | on                                          | uncertain           | off                 |
 * |-----------------|---------------------------------------------|---------------------|---------------------|
 * | pulse confirmed | on: held                                    | on: held            | on: held            |
 * | pulse unknown   | on: failing, the second in a row lost       | uncertain: the same | uncertain: the same |
 * | pulse not sent  | on: failing, the second in a row lost       | uncertain: the same | off: the same       |
 * | reported closed | on                                          | on: held            | off                 |
 * | reported open   | off: lost, unless as before its first pulse | off                 | off                 |
 * | drop            | letting go until no pulse can go on         | the same            | gone                |
 */
import { HOLD_MS } from '../../../drivers/contract/rs485.ts';
import { settles } from '../../../drivers/contract/waiting.ts';
import type { Clock } from '../../platform/clock.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { AWAKE } from '../../platform/waking.ts';
import type { Relay, WiredRelay } from '../rs485/relays.ts';
import type { Rs485 } from '../rs485/rs485.ts';
import { INTERNAL } from './outcome.ts';

/** Twice in each pulse, so that one renewal may fail and the door stays open. */
export const RENEW_EVERY_MS = 8_000;
/** Of one renewal; shorter than the time to the next, so that none comes after what was decided later. */
const ATTEMPT_MS = 5_000;
/** A pulse that was withdrawn has its outcome by then; a door is not kept open for a host that says nothing. */
const SETTLES_MS = 2_000;
const UNSETTLED: HoldOutcome = { kind: 'calledOff', fired: 'unknown' };
/** In a row, before a relay counts as lost. The first one leaves the door open, or is a link that has just been started. */
const FAILURES_TO_BE_LOST = 2;
/**
 * A report may show the relay as it was read before the pulse. After a confirmed pulse a relay that was not reported closed
 * yet counts as open only after this time, which is several polls and one repetition of the report.
 */
const STALE_REPORT_MS = 6_000;

export interface HoldFault {
  code: string;
  message: string;
  /** A fault of ours, with its stack. */
  err?: unknown;
}

/** held: a pulse was confirmed · failing: the one before may go on · lost: none does · calledOff: it is to be held no more; the pulse had left, perhaps */
export type HoldOutcome =
  | { kind: 'held' }
  | { kind: 'calledOff'; fired: 'yes' | 'no' | 'unknown' }
  | { kind: 'failing' | 'lost'; fault: HoldFault };

interface Hold {
  readonly relay: WiredRelay;
  renewAt: number;
  /** Of the last pulse that was confirmed. */
  endsAt: number;
  /** Of the last pulse that may have reached the relay. */
  mayEndAt: number;
  /** Of the last pulse whose outcome is unknown. */
  uncertainEndAt: number;
  /** When the relay began to be held without interruption. */
  heldSince: number;
  /** The device has reported the relay closed since then. */
  isReportedClosed: boolean;
  failures: number;
  /** Of the renewal under way. */
  attempt: { stop: AbortController; outcome: Promise<HoldOutcome> } | undefined;
}

export interface RelayHolds {
  /** Sends the next pulse when it is due; undefined when it is not, or the last one is under way. */
  renew(doorId: string, relay: WiredRelay): Promise<HoldOutcome> | undefined;
  /** The device reported its relay. */
  reported(doorId: string, relay: WiredRelay, isClosed: boolean): HoldOutcome | undefined;
  /** The relay lets go when its pulse is over. */
  drop(doorId: string): void;
  /** A former run of the gateway held it: its last pulse may go on. */
  formerly(doorId: string): void;
  /** It is held no more, and a pulse that may have reached it is not over yet. */
  isLettingGo(doorId: string): boolean;
  dropAll(): void;
  /** The renewal under way. */
  firing(doorId: string): Promise<HoldOutcome> | undefined;
  /** Withdraws the renewal under way, and waits for what came of it. */
  callOff(doorId: string): Promise<HoldOutcome | undefined>;
  /** A pulse that was confirmed goes on, and the device has not reported the relay open since. */
  isOn(doorId: string): boolean;
  /** Milliseconds to the next renewal. */
  restMs(): number;
}

export function openRelayHolds(clock: Clock, rs485: Pick<Rs485, 'holdRelay'>): RelayHolds {
  const holds = new Map<string, Hold>();
  /** Of doors whose relay is held no more: when the last pulse that may have reached it is over, monotonic milliseconds. */
  const lettingGo = new Map<string, number>();

  async function attempt(hold: Hold, { signal }: AbortController): Promise<HoldOutcome> {
    const order = { milliseconds: HOLD_MS, timeoutMs: ATTEMPT_MS };
    const fault = await rs485
      .holdRelay(hold.relay, order, signal)
      .then(({ outcome }) => (outcome === 'confirmed' ? undefined : UNCONFIRMED), faultOf);
    hold.attempt = undefined;
    const fired = firedBy(fault);
    if (fired !== 'no') hold.mayEndAt = clock.monotonic() + HOLD_MS;
    if (signal.aborted) return { kind: 'calledOff', fired };
    if (fault) {
      if (fired === 'unknown') hold.uncertainEndAt = hold.mayEndAt;
      hold.failures += 1;
      return { kind: hold.failures < FAILURES_TO_BE_LOST ? 'failing' : 'lost', fault };
    }
    const now = clock.monotonic();
    if (hold.endsAt <= now) Object.assign(hold, { heldSince: now, isReportedClosed: false });
    hold.endsAt = hold.mayEndAt;
    hold.failures = 0;
    return { kind: 'held' };
  }

  /** Returns what the report changes; undefined: nothing. */
  function reported(doorId: string, relay: WiredRelay, isClosed: boolean): HoldOutcome | undefined {
    const hold = holds.get(doorId);
    if (!hold || !isSameRelay(hold.relay, relay)) return undefined;
    const now = clock.monotonic();
    const isHeld = hold.endsAt > now;
    if (isClosed) {
      hold.isReportedClosed = true;
      if (isHeld || hold.uncertainEndAt <= now) return undefined;
      Object.assign(hold, { endsAt: hold.uncertainEndAt, heldSince: now, failures: 0 });
      return { kind: 'held' };
    }
    hold.uncertainEndAt = Number.NEGATIVE_INFINITY;
    if (!isHeld || (!hold.isReportedClosed && now - hold.heldSince < STALE_REPORT_MS)) return undefined;
    hold.endsAt = now;
    return RELAY_REPORTED_OPEN;
  }

  return {
    renew(doorId, relay) {
      const now = clock.monotonic();
      const hold = holds.get(doorId) ?? newHold(relay, lettingGo.get(doorId));
      lettingGo.delete(doorId);
      holds.set(doorId, hold);
      if (hold.attempt || hold.renewAt > now) return undefined;
      hold.renewAt = now + RENEW_EVERY_MS;
      const stop = new AbortController();
      hold.attempt = { stop, outcome: attempt(hold, stop) };
      return hold.attempt.outcome;
    },
    reported,
    drop(doorId) {
      const hold = holds.get(doorId);
      if (!hold) return;
      const { attempt, mayEndAt } = hold;
      const now = clock.monotonic();
      for (const [id, endsAt] of lettingGo) if (endsAt <= now) lettingGo.delete(id);
      // A pulse under way may have left.
      const endsAt = attempt ? now + HOLD_MS : mayEndAt;
      if (endsAt > now) lettingGo.set(doorId, endsAt);
      attempt?.stop.abort(AWAKE);
      holds.delete(doorId);
    },
    formerly(doorId) {
      lettingGo.set(doorId, clock.monotonic() + HOLD_MS);
    },
    isLettingGo: (doorId) => (lettingGo.get(doorId) ?? 0) > clock.monotonic(),
    dropAll() {
      for (const { attempt } of holds.values()) attempt?.stop.abort(AWAKE);
      holds.clear();
    },
    firing: (doorId) => holds.get(doorId)?.attempt?.outcome,
    callOff: async (doorId) => await calledOff(holds.get(doorId)?.attempt, clock),
    isOn: (doorId) => (holds.get(doorId)?.endsAt ?? 0) > clock.monotonic(),
    restMs: () => Math.min(...[...holds.values()].map(({ renewAt }) => renewAt - clock.monotonic())),
  };
}

async function calledOff(attempt: Hold['attempt'], clock: Clock): Promise<HoldOutcome | undefined> {
  if (!attempt) return undefined;
  attempt.stop.abort(AWAKE);
  return (await settles(attempt.outcome, SETTLES_MS, clock)) ? attempt.outcome : UNSETTLED;
}

export function isSameRelay(one: Omit<Relay, 'settled'>, other: Omit<Relay, 'settled'>): boolean {
  const { deviceId, bus, hwId, relayIndex } = other;
  const isSameHardware = one.deviceId === deviceId && one.bus === bus && one.hwId === hwId;
  return isSameHardware && one.relayIndex === relayIndex;
}

const UNCONFIRMED: HoldFault = {
  code: 'OUTCOME_UNKNOWN',
  message: 'the command to close the relay was sent, and the device did not confirm it',
};

/** The relay of a door that stands open. */
export const RELAY_REPORTED_OPEN = {
  kind: 'lost',
  fault: {
    code: 'REPORTED_OPEN',
    message: `the device reports that its relay is open; the gateway closes it again at the next renewal, within ${RENEW_EVERY_MS / 1_000} s`,
  },
} as const satisfies HoldOutcome;

/** After all other faults nothing was sent. */
export function mayHaveFired(fault: HoldFault): boolean {
  return fault === UNCONFIRMED || fault.err !== undefined;
}

function firedBy(fault: HoldFault | undefined): 'yes' | 'no' | 'unknown' {
  if (!fault) return 'yes';
  return mayHaveFired(fault) ? 'unknown' : 'no';
}

/** That a device is away needs no stack; a fault of ours, `err`, does. */
function faultOf(err: unknown): HoldFault {
  if (err instanceof GatehouseError) return { code: err.code, message: err.message };
  return { ...INTERNAL, err };
}

function newHold(relay: WiredRelay, mayEndAt = Number.NEGATIVE_INFINITY): Hold {
  return {
    relay,
    attempt: undefined,
    renewAt: Number.NEGATIVE_INFINITY,
    endsAt: Number.NEGATIVE_INFINITY,
    mayEndAt,
    uncertainEndAt: Number.NEGATIVE_INFINITY,
    heldSince: Number.NEGATIVE_INFINITY,
    isReportedClosed: false,
    failures: 0,
  };
}
