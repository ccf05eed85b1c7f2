/** Addresses where two devices may answer (conflict-evidence.ts): detects them, warns, and keeps them from disturbing the others. */
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import type { Clock } from '../contract/driver.ts';
import { isConflict, nextEvidence, wasFollowed } from './conflict-evidence.ts';
import type { Exchange } from './exchange.ts';
import type { Conversation } from './line.ts';
import { openMissedRequests } from './outstanding-requests.ts';
import { isAnswer } from './reply.ts';
import type { Station } from './station.ts';

export interface AddressConflicts {
  /** The exchange to use: after a doubt it goes on listening behind the reply. */
  asked<Reply>(station: Station, exchange: Exchange<Reply>, by: 'poll' | 'order'): Exchange<Reply>;
  ended(station: Station, conversation: Conversation): void;
  /** The wait for its reply was cut short: the reply may still come. */
  yielded(station: Station, conversation: Conversation): void;
  /** A reply of it was heard late. */
  spokeLate(station: Station): void;
  /** They answered with no question open. */
  answeredAgain(addresses: readonly number[]): void;
  /** As in bus.ts. */
  isContested(address: number): boolean;
  /** How long not to poll it again. */
  spacingMs(station: Station): number;
  warnings(): BusWarning[];
}

/** Listening on holds the wire for a whole turnaround: a tenth of its time at most. */
const LISTENING_SHARE = 0.1;
/** Of a suspected address; often enough to notice soon that it has been repaired. */
const SUSPECT_EVERY_MS = 1_000;

export function openAddressConflicts(
  stations: ReadonlyMap<number, Station>,
  clock: Clock,
  turnaroundMaxMs: number,
): AddressConflicts {
  const listeningEveryMs = turnaroundMaxMs / LISTENING_SHARE;
  let last: { station: Station; endedAt: number } | undefined;
  let listensFrom = Number.NEGATIVE_INFINITY;
  const missed = openMissedRequests();

  function isSuspect(station: Station): boolean {
    const others = [...stations.values()]
      .filter((other) => other !== station)
      .map(({ evidence }) => evidence);
    return isConflict(station.evidence, others, clock.monotonic());
  }

  /** A late reply of the same device may be all that is wrong with this exchange. */
  function isExplained({ address }: Station, { outcome, isFollowed, endedAt }: Conversation): boolean {
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
