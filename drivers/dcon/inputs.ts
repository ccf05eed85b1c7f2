/** Activations of inputs: counted from readings, and from the module's latch for those shorter than a poll. */
import type { Clock } from '../contract/driver.ts';
import { INPUT_PINS, type IoPins } from '../contract/settings.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import { type InputCounts, openInputCounts } from '../rs485/input-counts.ts';

export interface Inputs {
  /** Bit 0 is input 0. */
  read(levels: number): void;
  /**
   * Those that were active since the latch was cleared; returns whether it should be cleared now. They are counted with
   * the next reading of the levels, and once where they show in it: an activation that had just begun.
   */
  latched(mask: number): boolean;
  /** What was read before says nothing about what is read next. */
  forget(): void;
  /** By the name of the input. */
  edges: InputCounts['edges'];
}

export interface InputsOptions {
  hwId: string;
  clock: Clock;
  /** Pins not in use report nothing. */
  inUse(): Partial<IoPins>;
  addEvent(event: DeviceEvent): void;
}

export function openInputs({ hwId, clock, inUse, addEvent }: InputsOptions): Inputs {
  const counts = openInputCounts(clock, addEvent);
  let levels: number | undefined;
  /** Levels of the reading before, for what the latch remembers lies between two. */
  let before = 0;
  /** Remembered by the latch, and not seen in the levels so far. */
  let short = 0;
  /** What the latch showed last, and may show again. */
  let known = 0;
  let levelsAt: number | null = null;
  let latchAt: number | null = null;
  /** Of the reading of the latch before the one that showed what is `short`: it holds what happened while no one asked. */
  let shortSince: number | null = null;

  function count(mask: number): void {
    INPUT_PINS.forEach((input, channel) => {
      const since = (short >> channel) & 1 ? shortSince : levelsAt;
      counts.add(hwId, input, (mask >> channel) & 1, inUse(), since);
    });
  }

  return {
    read(now) {
      const activated = (levels === undefined ? 0 : now & ~levels) | short;
      before = levels ?? now;
      levels = now;
      if (activated !== 0) count(activated);
      short = 0;
      levelsAt = clock.monotonic();
    },
    latched(mask) {
      const over = mask & ~(levels ?? 0);
      if (short === 0) shortSince = latchAt;
      short |= over & ~before & ~known;
      known = mask;
      latchAt = clock.monotonic();
      return over !== 0;
    },
    forget() {
      levels = undefined;
      short = 0;
      known = 0;
    },
    edges: counts.edges,
  };
}
