/** Speaks a script (scripts.ts) to a module over the bus. */
import type { Bus } from '../bus/bus.ts';
import type { OrderClass } from '../bus/exchange.ts';
import type { Clock } from '../driver.ts';
import type { Framing } from './frame.ts';
import type { Question } from './messages.ts';
import type { Script } from './scripts.ts';
import { exchangeOf } from './wire.ts';

export interface Talk {
  /** `opensBy`: monotonic milliseconds; nothing is switched on later. Throws DriverErrors as the bus and the script do. */
  perform<Result>(
    script: Script<Result>,
    order: { class: OrderClass; opensBy?: number },
    signal: AbortSignal,
  ): Promise<Result>;
}

/** A question that switches nothing on: how long it may wait for its turn. */
const PATIENCE_MS = 2_000;
/** Any of them may be repeated; the bus takes a device for dead after as many misses. */
const ATTEMPTS = 3;

export function openTalk({ bus, framing, clock }: { bus: Bus; framing: Framing; clock: Clock }): Talk {
  return {
    async perform(script, order, signal) {
      const send = (question: Question<unknown>) => {
        const patience = clock.monotonic() + PATIENCE_MS;
        return bus.exchange(
          exchangeOf(question, framing),
          {
            // Outputs are switched off as urgently as on.
            class: question.switches ? 'command' : order.class,
            deadline: question.opens ? (order.opensBy ?? patience) : patience,
            attempts: question.mayBeUnknown ? 1 : ATTEMPTS,
            // What a module shows of its outputs decides the outcome of a pulse.
            isFresh: true,
          },
          signal,
        );
      };
      let step = script.next();
      while (!step.done) {
        const question = step.value;
        const heard = await send(question).then(
          (reply) => ({ reply }),
          (error: unknown) => ({ error }),
        );
        step = 'reply' in heard ? script.next(heard.reply) : script.throw(heard.error);
      }
      return step.value;
    },
  };
}
