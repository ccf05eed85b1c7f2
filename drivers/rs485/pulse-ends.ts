/** Until when the relays of one device are closed by pulses that were begun here. Times are monotonic milliseconds. */

export interface PulseEnd {
  relay: number;
  begunAt: number;
  endsAt: number;
}

export interface PulseEnds {
  /** A pulse begins, or is made longer, never shorter. */
  begin(relay: number, endsAt: number, now: number): void;
  /** The relay is open, or there was no pulse after all. */
  end(relay: number): void;
  /** undefined: no pulse of the relay is under way. */
  endsAt(relay: number, now: number): number | undefined;
  /** Those under way. */
  live(now: number): PulseEnd[];
  /** The one that was begun last, under way or over. */
  latest(): PulseEnd | undefined;
}

export function openPulseEnds(): PulseEnds {
  /** In the order in which they were begun. */
  const pulses = new Map<number, PulseEnd>();
  const live = (now: number) => [...pulses.values()].filter(({ endsAt }) => endsAt > now);
  return {
    begin(relay, end, now) {
      const endsAt = Math.max(end, pulses.get(relay)?.endsAt ?? end);
      pulses.delete(relay);
      pulses.set(relay, { relay, begunAt: now, endsAt });
    },
    end: (relay) => void pulses.delete(relay),
    endsAt(relay, now) {
      const end = pulses.get(relay)?.endsAt;
      return end !== undefined && end > now ? end : undefined;
    },
    live,
    latest: () => [...pulses.values()].at(-1),
  };
}
