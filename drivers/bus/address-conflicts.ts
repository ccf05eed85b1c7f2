/**
 * Addresses where two devices may answer: detects them, warns, and keeps them from disturbing the others. When both speak at once, what
 * is heard there is damaged, and nowhere else; when one speaks behind the other, it disturbs the exchange that follows.
 */
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import type { Clock } from '../contract/driver.ts';
import type { Exchange } from './exchange.ts';
import type { Conversation } from './line.ts';
import { openMissedRequests } from './outstanding-requests.ts';
import { isAnswer } from './reply.ts';

/** A station, as far as a second device may be at its address. */
export interface Contestable {
  readonly address: number;
  /** As its poll was informed; undefined until the first answer or the third miss. */
  isAlive: boolean | undefined;
  evidence: ConflictEvidence;
  /** The exchange after its last one was disturbed: the next poll listens for a second device behind the reply. */
  isSuspected: boolean;
}

export interface AddressConflicts {
  /** The exchange to use: after a doubt it goes on listening behind the reply. */
  asked<Reply>(station: Contestable, exchange: Exchange<Reply>, by: 'poll' | 'order'): Exchange<Reply>;
  ended(station: Contestable, conversation: Conversation): void;
  /** The wait for its reply was cut short: the reply may still come. */
  yielded(station: Contestable, conversation: Conversation): void;
  /** A reply of it was heard late. */
  spokeLate(station: Contestable): void;
  /** They answered with no question open. */
  answeredAgain(addresses: readonly number[]): void;
  /** As in bus.ts. */
  isContested(address: number): boolean;
  /** How long not to poll it again. */
  spacingMs(station: Contestable): number;
  warnings(): BusWarning[];
}

/** Listening on holds the wire for a whole turnaround: a tenth of its time at most. */
const LISTENING_SHARE = 0.1;
/** Of a suspected address; often enough to notice soon that it has been repaired. */
const SUSPECT_EVERY_MS = 1_000;

export function openAddressConflicts(
  stations: ReadonlyMap<number, Contestable>,
  clock: Clock,
  turnaroundMaxMs: number,
): AddressConflicts {
  const listeningEveryMs = turnaroundMaxMs / LISTENING_SHARE;
  let last: { station: Contestable; endedAt: number } | undefined;
  let listensFrom = Number.NEGATIVE_INFINITY;
  const missed = openMissedRequests();

  function isSuspect(station: Contestable): boolean {
    const others = [...stations.values()]
      .filter((other) => other !== station)
      .map(({ evidence }) => evidence);
    return isConflict(station.evidence, others, clock.monotonic());
  }

  /** A late reply of the same device may be all that is wrong with this exchange. */
  function isExplained({ address }: Contestable, { outcome, isFollowed, endedAt }: Conversation): boolean {
    return (outcome.kind === 'foreign' || isFollowed === true) && missed.explains(address, endedAt);
  }

  return {
    asked(station, exchange, by) {
      if (by !== 'poll' || exchange.exhaustive || clock.monotonic() < listensFrom) return exchange;
      if (!station.isSuspected && !wasFollowed(station.evidence, clock.monotonic())) return exchange;
      station.isSuspected = false;
      listensFrom = clock.monotonic() + listeningEveryMs;
      // Values, not getters: they belong to the request that was just built.
      return { ...exchange, exhaustive: true };
    },
    ended(station, conversation) {
      const { outcome, heardAt, otherSenders, sentAt, endedAt } = conversation;
      const heard = heardAt >= sentAt;
      const isLate = isExplained(station, conversation);
      // The sound reply of another device, which is late, says nothing of this address.
      const isDamaged = heard && !isAnswer(outcome.kind) && otherSenders.length === 0 && !isLate;
      const isFollowed = isLate ? undefined : conversation.isFollowed;
      if (heard) station.evidence = nextEvidence(station.evidence, { isDamaged, isFollowed, at: endedAt });
      if (outcome.kind === 'timeout' || (outcome.kind === 'foreign' && !isDamaged))
        missed.missed(station.address, sentAt);
      // An absent device is silent, whichever device was asked before.
      const isSilent = outcome.kind === 'timeout' && station.isAlive && otherSenders.length === 0;
      const isBehind = last && last.station !== station && sentAt - last.endedAt < turnaroundMaxMs;
      const isByLast = last && otherSenders.includes(last.station.address);
      const isDisturbed = isDamaged || isSilent || isByLast;
      if (isDisturbed && isBehind && last && !isSuspect(station)) last.station.isSuspected = true;
      last = isAnswer(outcome.kind) ? { station, endedAt } : undefined;
    },
    yielded: ({ address }, { sentAt }) => missed.missed(address, sentAt),
    answeredAgain(addresses) {
      for (const address of addresses) {
        const station = stations.get(address);
        if (station) station.isSuspected = true;
      }
    },
    spokeLate: ({ address }) => missed.spokeLate(address),
    isContested(address) {
      const station = stations.get(address);
      return station !== undefined && wasFollowed(station.evidence, clock.monotonic());
    },
    spacingMs(station) {
      // No sooner than it may listen on again, so that each poll does.
      if (wasFollowed(station.evidence, clock.monotonic()))
        return Math.max(listeningEveryMs, SUSPECT_EVERY_MS);
      return isSuspect(station) ? SUSPECT_EVERY_MS : 0;
    },
    warnings: () =>
      [...stations.values()]
        .filter(isSuspect)
        .map(({ address }) => busWarning('ADDRESS_TWICE_SUSPECTED', { address })),
  };
}

// The evidence at one address.

interface ConflictEvidence {
  /** 0 to 1: how much of what was heard lately was damaged. */
  readonly damage: number;
  /** Exchanges in which anything was heard. */
  readonly heard: number;
  /** Monotonic: when something came behind its reply. */
  readonly followedAt: number;
  /** Exchanges since then that listened on and heard nothing. */
  readonly alone: number;
}

export const NO_EVIDENCE: ConflictEvidence = {
  damage: 0,
  heard: 0,
  followedAt: Number.NEGATIVE_INFINITY,
  alone: 0,
};

const GAIN = 1 / 8;
/** Fewer exchanges say too little. */
const HEARD_LEAST = 6;
/** A bad wire spoils a tenth, and at all addresses. */
const DAMAGE_HERE = 0.4;
const DAMAGE_ELSEWHERE = 0.15;
const FOLLOWED_FOR_MS = 60_000;
/** After so many the second device counts as gone, so that a technician sees it at once. */
const ALONE_ENOUGH = 2;

function nextEvidence(
  evidence: ConflictEvidence,
  /** `isFollowed`: undefined where it was not listened for. */
  { isDamaged, isFollowed, at }: { isDamaged: boolean; isFollowed: boolean | undefined; at: number },
): ConflictEvidence {
  const alone = isFollowed === false ? evidence.alone + 1 : evidence.alone;
  return {
    damage: evidence.damage + GAIN * (Number(isDamaged) - evidence.damage),
    heard: evidence.heard + 1,
    followedAt: isFollowed ? at : evidence.followedAt,
    alone: isFollowed ? 0 : alone,
  };
}

function wasFollowed({ followedAt, alone }: ConflictEvidence, now: number): boolean {
  return now - followedAt < FOLLOWED_FOR_MS && alone < ALONE_ENOUGH;
}

/** `others`: of the other addresses of the bus. */
function isConflict(evidence: ConflictEvidence, others: readonly ConflictEvidence[], now: number): boolean {
  if (wasFollowed(evidence, now)) return true;
  if (evidence.heard < HEARD_LEAST || evidence.damage < DAMAGE_HERE) return false;
  const known = others.filter(({ heard }) => heard >= HEARD_LEAST);
  return known.length > 0 && known.every(({ damage }) => damage < DAMAGE_ELSEWHERE);
}
