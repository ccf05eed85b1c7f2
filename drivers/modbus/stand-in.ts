/** Who answers in the place of a device: a gateway before it, or a server of another protocol. */
import type { Exchange } from '../bus/exchange.ts';

export interface StandIn {
  /** The same exchange, listened to. */
  begin(exchange: Exchange<unknown>): Exchange<unknown>;
  /** What it said in the last one; undefined: no one stood in. */
  reason(): string | undefined;
}

export function openStandIn(): StandIn {
  let reason: string | undefined;
  return {
    begin(exchange) {
      reason = undefined;
      return {
        ...exchange,
        read(received) {
          const reading = exchange.read(received);
          if (reading.kind === 'unanswered' || reading.kind === 'unreached') reason = reading.reason;
          return reading;
        },
      };
    },
    reason: () => reason,
  };
}
