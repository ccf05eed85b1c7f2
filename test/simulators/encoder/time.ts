/** The encoder's monotonic clock. It has no other: nothing in the protocol needs to know what day it is. */
import { setTimeout as timer } from 'node:timers/promises';

export interface EncoderClock {
  monotonic(): number;
  /** Rejects with the signal's reason. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

export const realClock: EncoderClock = {
  monotonic: () => performance.now(),
  async sleep(milliseconds, signal) {
    signal?.throwIfAborted();
    if (milliseconds <= 0) return;
    try {
      await timer(milliseconds, undefined, signal ? { signal } : {});
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};
