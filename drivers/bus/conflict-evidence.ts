/**
 * Where two devices may have one address. When both speak at once, what is heard there is damaged, and nowhere else; when
 * one speaks behind the other, it disturbs the exchange that follows. Pure.
 */

export interface Voices {
  /** 0 to 1: how much of what was heard lately was damaged. */
  readonly damage: number;
  /** Exchanges in which anything was heard. */
  readonly heard: number;
  /** Monotonic: when something came behind its reply. */
  readonly followedAt: number;
  /** Exchanges since then that listened on and heard nothing. */
  readonly alone: number;
}

export const ONE_VOICE: Voices = { damage: 0, heard: 0, followedAt: Number.NEGATIVE_INFINITY, alone: 0 };

const GAIN = 1 / 8;
/** Fewer exchanges say too little. */
const HEARD_LEAST = 6;
/** A bad wire spoils a tenth, and at all addresses. */
const DAMAGE_HERE = 0.4;
const DAMAGE_ELSEWHERE = 0.15;
const FOLLOWED_FOR_MS = 60_000;
/** After so many the second device counts as gone, so that a technician sees it at once. */
const ALONE_ENOUGH = 2;

export function nextVoices(
  voices: Voices,
  /** `isFollowed`: undefined where it was not listened for. */
  { isDamaged, isFollowed, at }: { isDamaged: boolean; isFollowed: boolean | undefined; at: number },
): Voices {
  const alone = isFollowed === false ? voices.alone + 1 : voices.alone;
  return {
    damage: voices.damage + GAIN * (Number(isDamaged) - voices.damage),
    heard: voices.heard + 1,
    followedAt: isFollowed ? at : voices.followedAt,
    alone: isFollowed ? 0 : alone,
  };
}

export function wasFollowed({ followedAt, alone }: Voices, now: number): boolean {
  return now - followedAt < FOLLOWED_FOR_MS && alone < ALONE_ENOUGH;
}

/** `others`: of the other addresses of the bus. */
export function speaksTwice(voices: Voices, others: readonly Voices[], now: number): boolean {
  if (wasFollowed(voices, now)) return true;
  if (voices.heard < HEARD_LEAST || voices.damage < DAMAGE_HERE) return false;
  const known = others.filter(({ heard }) => heard >= HEARD_LEAST);
  return known.length > 0 && known.every(({ damage }) => damage < DAMAGE_ELSEWHERE);
}
