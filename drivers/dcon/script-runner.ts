/** Speaks a script (scripts.ts) to a module over the bus. */
import type { Bus } from '../bus/bus.ts';
import { type Exchange, type Order, type OrderClass, whenAsked } from '../bus/exchange.ts';
import { confirmedReply } from '../bus/reply-confirmation.ts';
import { type Clock, DriverError } from '../contract/driver.ts';
import type { Framing } from './frame.ts';
import type { Question } from './messages.ts';
import type { Script } from './scripts.ts';
import { exchangeOf } from './wire.ts';

export interface ScriptRunner {
  /** Throws DriverErrors as the bus and the script do. */
  perform<Result>(script: Script<Result>, order: ScriptOrder, signal: AbortSignal): Promise<Result>;
}

export interface ScriptOrder {
  /** Of what switches no output off: that is `off`. */
  class: Exclude<OrderClass, 'off'>;
  /** Monotonic milliseconds: nothing is switched on later; absent: nothing at all is. */
  opensBy?: number;
  /** What switches an output on has its turn. Throws where it may not be sent any more. */
  opening?(): void;
  /** Its own answer. */
  opened?(reply: unknown): void;
  /** What switches these outputs off has its turn. */
  closing?(outputs: number): void;
  /** OFF is sent also to a module that is taken for dead. */
  insists?: boolean;
}

/** A question that switches nothing on: how long it may wait for its turn. */
const TURN_WAIT_MS = 2_000;
/** Any of them may be repeated; the bus takes a device for dead after as many misses. */
const ATTEMPTS = 3;

/** `armed`: the watchdog of the module counts its whole time again. `unarmed`: why nothing may be switched on at this moment. */
export function openScriptRunner(
  bus: Pick<Bus, 'exchange' | 'outstanding'>,
  framing: Framing,
  clock: Clock,
  armed: () => void,
  unarmed: () => string | undefined,
): ScriptRunner {
  /** Checked when the request has its turn: the watchdog may have run out while it waited. */
  function assertArmed(): void {
    const reason = unarmed();
    if (reason !== undefined) throw new DriverError('DEVICE_OFFLINE', `nothing was sent, as ${reason}`);
  }

  function guarded(question: Question<unknown>, { opening, closing }: ScriptOrder): Exchange<unknown> {
    return whenAsked(exchangeOf(question, framing), () => {
      if (question.opens) assertArmed();
      if (question.opens) opening?.();
      if (question.closes !== undefined) closing?.(question.closes);
    });
  }

  /** What refuses to switch an output on may be the late answer to another request: it does not prove that it is off. */
  function isOthers(question: Question<unknown>, heard: { reply: unknown } | { error: unknown }): boolean {
    if (!question.opens || bus.outstanding() === 0) return false;
    return 'reply' in heard
      ? heard.reply !== 'done'
      : heard.error instanceof DriverError && heard.error.code === 'REFUSED';
  }

  async function asked(
    question: Question<unknown>,
    exchange: Exchange<unknown>,
    order: Order,
    signal: AbortSignal,
  ): Promise<unknown> {
    const ask = () => bus.exchange(exchange, order, signal);
    const reply = await (question.reads || question.arms ? confirmedReply(ask, bus.outstanding) : ask());
    if (question.arms) armed();
    return reply;
  }

  return {
    async perform(script, order, signal) {
      const send = async (question: Question<unknown>) => {
        const patience = clock.monotonic() + TURN_WAIT_MS;
        const wanted: Order = {
          class: question.closes !== undefined ? 'off' : question.opens ? 'command' : order.class,
          insists: question.closes !== undefined && order.insists === true,
          deadline: question.opens ? (order.opensBy ?? 0) : patience,
          // What switches an output on is repeated by its script, which has to know of each attempt.
          attempts: question.mayBeUnknown || question.opens || question.showsPresence ? 1 : ATTEMPTS,
          asksOn: question.showsPresence === true,
          // What a module shows of its outputs decides the outcome of a pulse.
          isFresh: true,
        };
        const heard = await asked(question, guarded(question, order), wanted, signal).then(
          (reply) => ({ reply }),
          (error: unknown) => ({ error }),
        );
        if (!isOthers(question, heard)) {
          if (question.opens && 'reply' in heard) order.opened?.(heard.reply);
          return heard;
        }
        return {
          error: new DriverError('NO_REPLY', 'what was heard may be a late answer to another request'),
        };
      };
      let step = script.next();
      while (!step.done) {
        const question = step.value;
        const heard = await send(question);
        step = 'reply' in heard ? script.next(heard.reply) : script.throw(heard.error);
      }
      return step.value;
    },
  };
}
