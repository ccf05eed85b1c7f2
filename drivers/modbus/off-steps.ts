/** Switching off what is on without a live pulse, as a device is met. */

import type { Step } from './contact-steps.ts';
import { readBits, write } from './exchanges.ts';
import type { LivePulses } from './live-pulses.ts';
import type { Profile } from './profile-shape.ts';

type Outputs = NonNullable<Profile['outputs']>;

/** Decided when it is sent: a pulse may have begun since the contact did. */
export function offUnlessLive(unit: number, { address, count }: Outputs, pulses: LivePulses): Step {
  const relays = Array.from({ length: count }, (_, relay) => relay);
  let isAnyLive = false;
  return {
    opens: true,
    exchange() {
      isAnyLive = relays.some((relay) => pulses.endsAt(relay) !== undefined);
      return isAnyLive
        ? readBits(unit, { functionCode: 1, address, quantity: count })
        : write(unit, { functionCode: 15, address, values: relays.map(() => false) });
    },
    take: () => undefined,
    more: () => (isAnyLive ? relays.map((relay) => oneOff(unit, { address, relay }, pulses)) : []),
  };
}

/** Never on: a device that was away for the rest of a pulse would get the order late. */
function oneOff(
  unit: number,
  { address, relay }: { address: number; relay: number },
  pulses: LivePulses,
): Step {
  const coil = { address: address + relay };
  let isRead = false;
  return {
    opens: true,
    exchange() {
      isRead = pulses.endsAt(relay) !== undefined;
      return isRead
        ? readBits(unit, { functionCode: 1, ...coil, quantity: 1 })
        : write(unit, { functionCode: 5, ...coil, value: false });
    },
    take(reply) {
      if (isRead && (reply as boolean[])[0] === false) pulses.ended(relay);
    },
  };
}
