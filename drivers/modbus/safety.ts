/**
 * What must be so before a product that does not time pulses itself is used: every output without a live pulse is off,
 * and its watchdog switches off what a dead gateway leaves on.
 */

import type { Safety } from './device.ts';
import { write } from './exchanges.ts';
import type { LivePulses } from './live-pulses.ts';
import type { Profile } from './profile-shape.ts';
import { bitsAt, numberAt } from './registers.ts';

const NOTHING: Safety = { steps: () => [], spans: [], fault: () => undefined };

export function safetyOf(unit: number, profile: Profile, pulses: LivePulses): Safety {
  const { outputs, pulse } = profile;
  if (pulse?.way !== 'switched' || !outputs) return NOTHING;
  const { address, unitMilliseconds, milliseconds } = pulse.watchdog;
  const watchdog = Math.ceil(milliseconds / unitMilliseconds);
  const isLive = () =>
    Array.from({ length: outputs.count }, (_, relay) => pulses.endsAt(relay) !== undefined);
  const step = (request: Parameters<typeof write>[1]) => ({
    exchange: write(unit, request),
    take: () => undefined,
  });
  return {
    steps: () => [
      step({ functionCode: 15, address: outputs.address, values: isLive() }),
      step({ functionCode: 6, address, value: watchdog }),
    ],
    spans: [{ table: 'holding', address, quantity: 1 }],
    fault(image) {
      if (numberAt(image, { address }) !== watchdog)
        return `${profile.product} at address ${unit} does not take its watchdog time of ${milliseconds} ms: no relay is closed without it`;
      const live = isLive();
      const on = (bitsAt(image, outputs) ?? []).findIndex((level, relay) => level === 1 && !live[relay]);
      return on < 0 ? undefined : `output${on} of ${profile.product} at address ${unit} does not go off`;
    },
  };
}
