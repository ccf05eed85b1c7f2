/**
 * When the device at an address has shown last which one it is: by its name; or, in a poll that follows half a second later at most, by
 * the version of its settings, where no other device of the link has that one. So a device that is polled is not asked for its name
 * before each order, and one that takes its place is noticed by the next poll.
 */
import type { Profile } from './profile-shape.ts';
import { type Image, isWithin, numberAt, type Span, spanOf } from './registers.ts';

/** No request to a relay says a name. So long after the device at its address has shown its own, no other one can be in its place. */
export const NAMED_FOR_MS = 500;

export interface Naming {
  /** Monotonic; -Infinity: it has not, or it has no name. */
  namedAt(): number;
  /** `image`: with what was read. `isSame`: the name in it is as before. */
  taken(span: Span, image: Image, { askedAt, isSame }: { askedAt: number; isSame(): boolean }): void;
  /** A reply was missed. */
  doubt(): void;
  /** Another one may be there, as a missed reply or its version shows: its name is to be read. */
  isDoubted(): boolean;
}

export function openNaming({ identity, settings }: Profile, isAlone: (version: number) => boolean): Naming {
  const name = identity.hwId && spanOf(identity.hwId);
  const inForce = settings && spanOf(settings.inForce);
  let namedAt = Number.NEGATIVE_INFINITY;
  /** Of its settings, as it was read before its name. When it is read again after the name, it belongs to that name, also if devices changed places in between. */
  let version: number | undefined;
  let isDoubted = false;

  function doubt(): void {
    isDoubted = true;
    namedAt = Number.NEGATIVE_INFINITY;
    version = undefined;
  }

  return {
    namedAt: () => namedAt,
    doubt,
    isDoubted: () => isDoubted,
    taken(span, image, { askedAt, isSame }) {
      const shown = settings && numberAt(image, settings.inForce);
      if (name && isWithin(name, span)) {
        isDoubted = false;
        if (!isSame()) return doubt();
        namedAt = Math.max(namedAt, askedAt);
        version = shown;
      }
      if (!inForce || !isWithin(inForce, span)) return;
      if (shown !== version) return doubt();
      const mayFollow = askedAt - namedAt <= NAMED_FOR_MS;
      // 0: as it came from the factory.
      if (shown && mayFollow && isAlone(shown)) namedAt = Math.max(namedAt, askedAt);
    },
  };
}
