/** What is lost by chance, what fails because it was set to, and how well a frame is heard. */
import { openRandom } from '../../bus/random.ts';
import type { ConfirmFaults } from '../plan.ts';
import type { AirOptions, Node } from './frames.ts';

export interface Losses {
  isLost(): boolean;
  /** What the confirm of a frame is to say. */
  fault(node: Node | undefined): ConfirmFaults | undefined;
  /** Of one frame over a link with this LQI. */
  heardLqi(lqi: number): number;
  change(changes: Partial<AirOptions>): void;
  options(): AirOptions;
  fail(fault: ConfirmFaults | null): void;
}

const LQI_MAX = 255;

export function openLosses(initial: AirOptions, lost: () => void): Losses {
  let options = initial;
  let random = openRandom(options.seed);
  const noise = openRandom(options.seed);
  let failing: ConfirmFaults | null = null;
  return {
    isLost() {
      if (options.lossRate === 0 || random() >= options.lossRate) return false;
      lost();
      return true;
    },
    fault(node) {
      const own = node?.confirmFault();
      if (own || !failing) return own;
      const fault = failing;
      failing = fault.frames > 1 ? { ...fault, frames: fault.frames - 1 } : null;
      return fault;
    },
    heardLqi(lqi) {
      const heard = lqi + Math.round((2 * noise() - 1) * options.lqiSpread);
      return Math.min(LQI_MAX, Math.max(0, heard));
    },
    change(changes) {
      options = { ...options, ...changes };
      if (changes.seed !== undefined || changes.lossRate !== undefined) random = openRandom(options.seed);
    },
    options: () => options,
    fail(fault) {
      failing = fault;
    },
  };
}
