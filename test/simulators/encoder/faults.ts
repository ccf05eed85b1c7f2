/** The scripted faults that wait for an entry to come to a moment, each striking once. */
import type { Command, Moment } from './commands.ts';

export type Fault = Extract<Command, { at?: Moment }>;

export interface Faults {
  arm(fault: Fault): void;
  /** Strikes what is armed for this moment. */
  reached(moment: Moment): void;
}

export function openFaults(strike: (fault: Fault) => void): Faults {
  const armed: Fault[] = [];
  return {
    arm: (fault) => void armed.push(fault),
    reached({ status, when }) {
      const index = armed.findIndex(({ at }) => at?.status === status && at.when === when);
      const [fault] = index < 0 ? [] : armed.splice(index, 1);
      if (fault) strike(fault);
    },
  };
}
