/** The pulses of one module: which outputs may be on, and until when. Times are monotonic milliseconds. */

export interface Pulses {
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

export function openPulses(): Pulses {
  const pulses = new Map<number, { endsAt: number; confirmed: boolean }>();
  const liveOnes = (now: number) => [...pulses].filter(([, { endsAt }]) => endsAt > now);
  const maskOf = (channels: number[]) => channels.reduce((mask, channel) => mask | (1 << channel), 0);

  return {
    begin(channel, endsAt, now) {
      const last = pulses.get(channel);
      // One that is over says nothing of this one: its output is off, and a poll may still tell so.
      const before = last && last.endsAt > now ? last : undefined;
      const longer = Math.max(endsAt, before?.endsAt ?? endsAt);
      pulses.set(channel, { endsAt: longer, confirmed: before?.confirmed ?? false });
      return () => {
        if (before) pulses.set(channel, before);
        else pulses.delete(channel);
      };
    },
    confirm(channel) {
      const pulse = pulses.get(channel);
      if (pulse) pulses.set(channel, { ...pulse, confirmed: true });
    },
    drop(mask) {
      for (const channel of pulses.keys()) if ((mask >> channel) & 1) pulses.delete(channel);
    },
    live: (now) => maskOf(liveOnes(now).map(([channel]) => channel)),
    confirmed: (now) =>
      maskOf(
        liveOnes(now)
          .filter(([, { confirmed }]) => confirmed)
          .map(([channel]) => channel),
      ),
    nextEnd: (now) => Math.min(...liveOnes(now).map(([, { endsAt }]) => endsAt), Number.POSITIVE_INFINITY),
    current(now) {
      const [longest] = liveOnes(now).sort(([, a], [, b]) => b.endsAt - a.endsAt);
      if (!longest) return null;
      return { relay: longest[0], remainingMilliseconds: Math.ceil(longest[1].endsAt - now) };
    },
  };
}
