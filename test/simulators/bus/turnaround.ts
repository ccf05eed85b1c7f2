/** Replies that devices have ready, and keep back until their turnaround time is over: a part of wire.ts. */
import { type Due, earliest } from './talks.ts';

export interface Turnaround {
  hold(bytes: Uint8Array, until: number): void;
  isEmpty(): boolean;
  next(): Due | undefined;
  clear(): void;
}

export function openTurnaround(say: (bytes: Uint8Array, at: number) => void): Turnaround {
  const replies = new Set<{ bytes: Uint8Array; until: number }>();
  return {
    hold: (bytes, until) => void replies.add({ bytes, until }),
    isEmpty: () => replies.size === 0,
    next: () =>
      earliest(
        replies.values().map((reply) => ({
          at: reply.until,
          happen(at: number) {
            replies.delete(reply);
            say(reply.bytes, at);
          },
        })),
      ),
    clear: () => replies.clear(),
  };
}
