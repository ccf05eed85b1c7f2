/** What a proof of the watchdog of a product holds for. */
import type { Plain } from '../contract/driver.ts';
import { proofOf } from '../rs485/watchdog-proof.ts';
import type { Profile, Watchdog } from './profile-shape.ts';

/** What must have been proved before a relay of this product is fired; null: the device opens it by itself. */
export function proofOfProfile({ pulse, outputs }: Profile): { proof: string; milliseconds: number } | null {
  if (pulse?.way !== 'switched') return null;
  const { milliseconds } = pulse.watchdog;
  const tested = { ...pulse, watchdog: asSent(pulse.watchdog) };
  return { proof: proofOf({ pulse: tested, outputs } as Plain), milliseconds };
}

/** Without what only helps to check a profile: a change of that makes no proof void. */
function asSent({ time, inForce, ...watchdog }: Watchdog) {
  const { unitsMax: _, ...sent } = time;
  return { ...watchdog, time: sent, inForce: inForce.map(({ shows: __, ...place }) => place) };
}
