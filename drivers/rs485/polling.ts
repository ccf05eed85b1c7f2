/** The polls of one device, which can be held back: a watchdog is tested by silence. */
import type { Bus } from '../bus/bus.ts';
import type { Poll } from '../bus/exchange.ts';

/**
 * Between two questions to a device that is not known yet, however seldom it is polled then. One that never answers is
 * asked more rarely by the bus (drivers/bus/circuit-breaker.ts).
 */
export const MEET_EVERY_MS = 1_000;

export interface Polling extends Disposable {
  /** None until what is returned is disposed, and what every other pause returned. */
  pause(): Disposable;
}

export function openPolling(bus: Pick<Bus, 'poll'>, poll: Poll): Polling {
  let polled: Disposable | undefined = bus.poll(poll);
  let isOver = false;
  let pauses = 0;
  function stop(): void {
    polled?.[Symbol.dispose]();
    polled = undefined;
  }
  return {
    pause() {
      stop();
      pauses += 1;
      return {
        [Symbol.dispose]() {
          pauses -= 1;
          if (!isOver && pauses === 0) polled = bus.poll(poll);
        },
      };
    },
    [Symbol.dispose]() {
      isOver = true;
      stop();
    },
  };
}
