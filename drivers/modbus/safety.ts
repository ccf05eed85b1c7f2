/**
 * What must be so before a product that does not time pulses itself is used: every output without a live pulse is off,
 * and its watchdog switches off what a dead gateway leaves on.
 */

import type { Safety } from './device.ts';
import { readBits, write } from './exchanges.ts';
import type { LivePulses } from './live-pulses.ts';
import type { Profile } from './profile-shape.ts';
import { bitsAt, numberAt } from './registers.ts';

const NOTHING: Safety = { steps: () => [], spans: [], fault: () => undefined };

export function safetyOf(unit: number, profile: Profile, pulses: LivePulses): Safety {
  const { outputs, pulse } = profile;
  if (pulse?.way !== 'switched' || !outputs) return NOTHING;
  const { address, unitMilliseconds, milliseconds } = pulse.watchdog;
  const watchdog = Math.ceil(milliseconds / unitMilliseconds);
  const isLive = (relay: number) => pulses.endsAt(relay) !== undefined;
  const relays = Array.from({ length: outputs.count }, (_, relay) => relay);
  const nothing = () => undefined;
  const allOff = () =>
    write(unit, { functionCode: 15, address: outputs.address, values: relays.map(() => false) });
  /** Never on: a device that was away for the rest of a pulse would be told late. */
  const offUnlessLive = (relay: number) => () => {
    const address = outputs.address + relay;
    return isLive(relay)
      ? readBits(unit, { functionCode: 1, address, quantity: 1 })
      : write(unit, { functionCode: 5, address, value: false });
  };
  return {
    steps: () => [
      ...(relays.some(isLive) ? relays.map(offUnlessLive) : [allOff]).map((exchange) => ({
        exchange,
        take: nothing,
      })),
      { exchange: () => write(unit, { functionCode: 6, address, value: watchdog }), take: nothing },
    ],
    spans: [{ table: 'holding', address, quantity: 1 }],
    fault(image) {
      if (numberAt(image, { address }) !== watchdog)
        return `${profile.product} at address ${unit} does not take its watchdog time of ${milliseconds} ms: no relay is closed without it`;
      const on = (bitsAt(image, outputs) ?? []).findIndex((level, relay) => level === 1 && !isLive(relay));
      return on < 0 ? undefined : `output${on} of ${profile.product} at address ${unit} does not go off`;
    },
  };
}
