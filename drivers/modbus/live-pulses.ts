/** The pulses of one device that this driver has begun: what the device cannot say of them itself. */
import type { Clock } from '../contract/driver.ts';
import type { Rs485Report } from '../contract/settings.ts';
import { openPulseEnds } from '../rs485/pulse-ends.ts';
import type { Profile } from './profile-shape.ts';
import { bitsAt, type Image, numberAt } from './registers.ts';

export interface LivePulses {
  began(relay: number, endsAt: number, id?: number): void;
  /** It was none after all. */
  ended(relay: number): void;
  /** Monotonic milliseconds; undefined: none is under way. */
  endsAt(relay: number): number | undefined;
  shown(image: Image): NonNullable<Rs485Report['pulse']> | null;
}

export function openLivePulses({ pulse, outputs }: Profile, clock: Clock): LivePulses {
  const ends = openPulseEnds();
  let last: { id: number | undefined; relay: number } | undefined;
  const endsAt = (relay: number) => ends.endsAt(relay, clock.monotonic());

  return {
    endsAt,
    ended: ends.end,
    began(relay, end, id) {
      ends.begin(relay, end, clock.monotonic());
      last = { id, relay };
    },
    shown(image) {
      if (pulse?.way === 'block') {
        const remainingMilliseconds = numberAt(image, pulse.remaining) ?? 0;
        const isOurs = last !== undefined && last.id === numberAt(image, pulse.lastId);
        return remainingMilliseconds > 0
          ? { relay: isOurs ? (last?.relay ?? null) : null, remainingMilliseconds }
          : null;
      }
      // It may have been cut: by its watchdog, a restart, or somebody else.
      if (last && outputs && bitsAt(image, outputs)?.[last.relay] === 0) return null;
      const end = last && endsAt(last.relay);
      return last && end !== undefined
        ? { relay: last.relay, remainingMilliseconds: Math.ceil(end - clock.monotonic()) }
        : null;
    },
  };
}
