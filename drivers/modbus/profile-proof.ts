/** What a proof of the watchdog of a product holds for. */
import type { Plain } from '../driver.ts';
import { proofOf } from '../rs485/watchdog-proof.ts';
import type { Profile } from './profile-shape.ts';

/** What must have been proved before a relay of this product is fired; null: the device opens it by itself. */
export function proofOfProfile({ pulse, outputs }: Profile): { proof: string; milliseconds: number } | null {
  if (pulse?.way !== 'switched') return null;
  const { milliseconds } = pulse.watchdog;
  return { proof: proofOf({ pulse, outputs } as Plain), milliseconds };
}
