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
  /** The device has refused the pulse of this id. */
  refused(id: number): void;
  /** Monotonic milliseconds; undefined: none is under way. */
  endsAt(relay: number): number | undefined;
  shown(image: Image): NonNullable<Rs485Report['pulse']> | null;
}

/** Those that were lost or refused since the one that a device shows: of more the relay is not known. */
const IDS_MAX = 8;

export function openLivePulses({ pulse, outputs }: Profile, clock: Clock): LivePulses {
  const ends = openPulseEnds();
  let last: { relay: number } | undefined;
  let given: readonly { id: number; relay: number }[] = [];
  const endsAt = (relay: number) => ends.endsAt(relay, clock.monotonic());

  return {
    endsAt,
    ended: ends.end,
    refused(id) {
      given = given.filter((one) => one.id !== id);
    },
    began(relay, end, id) {
      ends.begin(relay, end, clock.monotonic());
      last = { relay };
      if (id !== undefined) given = [...given, { id, relay }].slice(-IDS_MAX);
    },
    shown(image) {
      if (pulse?.way === 'block') {
        const remainingMilliseconds = numberAt(image, pulse.remaining) ?? 0;
        if (remainingMilliseconds === 0) return null;
        const id = numberAt(image, pulse.lastId);
        return { relay: given.findLast((one) => one.id === id)?.relay ?? null, remainingMilliseconds };
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
