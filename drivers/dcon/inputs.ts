/**
 * Activations of inputs: counted from readings, and from the module's latch for those shorter than a poll. They are
 * told without holding up a poll: what comes while one is being stored goes into the next event.
 */
import { openBell } from '../bus/pause.ts';
import type { Clock, DriverEvent, DriverLog } from '../driver.ts';
import type { InputEvent } from '../rs485.ts';
import { INPUT_PINS, type IoPins } from '../settings.ts';

type InputPin = (typeof INPUT_PINS)[number];

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
  edges(): Record<string, { total: number; at: number }>;
  /** Emits until the signal fires. */
  run(signal: AbortSignal): Promise<never>;
}

export interface InputsOptions {
  hwId: string;
  clock: Clock;
  log: DriverLog;
  /** Pins not in use tell nothing. */
  inUse(): Partial<IoPins>;
  emit(event: DriverEvent, signal: AbortSignal): Promise<void>;
}

export function openInputs({ hwId, clock, log, inUse, emit }: InputsOptions): Inputs {
  const seen = new Map<InputPin, { total: number; at: number; untold: number }>();
  const bell = openBell(clock);
  let levels: number | undefined;
  /** Levels of the reading before, for what the latch remembers lies between two. */
  let before = 0;
  /** Remembered by the latch, and not seen in the levels so far. */
  let short = 0;
  /** What the latch told last, and may tell again. */
  let known = 0;

  function count(mask: number): void {
    INPUT_PINS.forEach((input, channel) => {
      if (((mask >> channel) & 1) === 0 || inUse()[input] === false) return;
      const { total = 0, untold = 0 } = seen.get(input) ?? {};
      seen.set(input, { total: total + 1, untold: untold + 1, at: clock.now() });
    });
    bell.ring();
  }

  return {
    read(now) {
      const activated = (levels === undefined ? 0 : now & ~levels) | short;
      before = levels ?? now;
      levels = now;
      short = 0;
      if (activated !== 0) count(activated);
    },
    latched(mask) {
      const over = mask & ~(levels ?? 0);
      short |= over & ~before & ~known;
      known = mask;
      return over !== 0;
    },
    forget() {
      levels = undefined;
      short = 0;
      known = 0;
    },
    edges: () => Object.fromEntries([...seen].map(([input, { total, at }]) => [input, { total, at }])),
    async run(signal) {
      signal.addEventListener('abort', bell.ring, { once: true });
      for (;;) {
        signal.throwIfAborted();
        const next = [...seen].find(([, { untold }]) => untold > 0);
        if (!next) {
          await bell.wait(Number.POSITIVE_INFINITY);
          continue;
        }
        const [input, { total, at, untold: activations }] = next;
        seen.set(input, { total, at, untold: 0 });
        const data = { hwId, input, activations, total, at } satisfies InputEvent;
        await emit({ id: `${hwId}-${input}-${total}-${at}`, kind: 'input', data }, signal).catch(
          (error: unknown) => {
            signal.throwIfAborted();
            log.warn({ hwId, input, err: String(error) }, 'an activation of an input was not stored');
          },
        );
      }
    },
  };
}
