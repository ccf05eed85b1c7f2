/**
 * Where two devices may have one address. When both speak at once, what is heard there is damaged, and nowhere else; when
 * one speaks behind the other, it disturbs the exchange that follows. Pure.
 */

export interface ConflictEvidence {
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

export function nextEvidence(
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

export function wasFollowed({ followedAt, alone }: ConflictEvidence, now: number): boolean {
  return now - followedAt < FOLLOWED_FOR_MS && alone < ALONE_ENOUGH;
}

/** `others`: of the other addresses of the bus. */
export function isConflict(
  evidence: ConflictEvidence,
  others: readonly ConflictEvidence[],
  now: number,
): boolean {
  if (wasFollowed(evidence, now)) return true;
  if (evidence.heard < HEARD_LEAST || evidence.damage < DAMAGE_HERE) return false;
  const known = others.filter(({ heard }) => heard >= HEARD_LEAST);
  return known.length > 0 && known.every(({ damage }) => damage < DAMAGE_ELSEWHERE);
}
