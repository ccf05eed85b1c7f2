/** The pulses of one module: which outputs may be on, and until when. Times are monotonic milliseconds. */
import { openPulseEnds } from '../rs485/pulse-ends.ts';
import { channelsOf } from './scripts.ts';

export interface LivePulses {
  /** A pulse begins or is made longer, never shorter. What is returned takes that back, where nothing was switched. */
  begin(channel: number, endsAt: number, now: number): () => void;
  /** The output was read back as on; nothing, where the pulse is over. */
  confirm(channel: number): void;
  /** Over, whatever was meant. */
  drop(mask: number): void;
  /** Outputs that are meant to be on. */
  live(now: number): number;
  /** Those of them that were seen on. */
  confirmed(now: number): number;
  /** When the next of the live ones ends; Infinity: there is none. */
  nextEnd(now: number): number;
  /** The one that lasts longest. */
  current(now: number): { relay: number; remainingMilliseconds: number } | null;
}

export function openLivePulses(): LivePulses {
  const ends = openPulseEnds();
  /** Outputs that were seen on in their pulse, a mask. */
  let seenOn = 0;
  const live = (now: number) => ends.live(now).reduce((mask, { relay }) => mask | (1 << relay), 0);

  return {
    begin(channel, endsAt, now) {
      const bit = 1 << channel;
      const before = ends.endsAt(channel, now);
      // A pulse that is over says nothing of this one: its output is off, and a poll may still say so.
      if (before === undefined) seenOn &= ~bit;
      const wasSeenOn = seenOn & bit;
      ends.begin(channel, endsAt, now);
      return () => {
        ends.end(channel);
        seenOn = (seenOn & ~bit) | wasSeenOn;
        if (before !== undefined) ends.begin(channel, before, now);
      };
    },
    confirm(channel) {
      seenOn |= 1 << channel;
    },
    drop(mask) {
      for (const channel of channelsOf(mask)) ends.end(channel);
      seenOn &= ~mask;
    },
    live,
    confirmed: (now) => live(now) & seenOn,
    nextEnd: (now) => Math.min(...ends.live(now).map(({ endsAt }) => endsAt), Number.POSITIVE_INFINITY),
    current(now) {
      const [longest] = ends.live(now).sort((a, b) => b.endsAt - a.endsAt);
      return longest
        ? { relay: longest.relay, remainingMilliseconds: Math.ceil(longest.endsAt - now) }
        : null;
    },
  };
}
