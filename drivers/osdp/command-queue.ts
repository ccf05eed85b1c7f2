/** The commands that wait for one device, and the outcome of each. */
import type { OrderClass } from '../bus/exchange.ts';
import { DriverError } from '../contract/driver.ts';
import { type Command, nakText, type Reply } from './protocol/messages.ts';
import { isQuestion, type Outcome } from './protocol/state.ts';

export interface QueuedCommand {
  readonly command: Command;
  readonly class: OrderClass;
  /** Monotonic milliseconds. After it the command is not sent, not even in the exchange of a poll. */
  readonly deadline: number;
  /** It was on the wire at least once. */
  sent: boolean;
  /** Called when it has its turn for the first time. What is returned is why it is not sent. */
  readonly sends?: (() => DriverError | undefined) | undefined;
  /** Resolves with the answer; rejects with a DriverError. */
  readonly result: Promise<Reply>;
  /** Fires when `result` is settled. */
  readonly over: AbortSignal;
  settle(result: Promise<Reply>): void;
}

export interface CommandQueue {
  /** Throws BUSY. */
  add(command: Command, asking: Pick<QueuedCommand, 'class' | 'deadline' | 'sends'>): QueuedCommand;
  remove(queued: QueuedCommand): void;
  /** The entry of this command object; undefined where the command is none of the queue. */
  of(command: Command | undefined): QueuedCommand | undefined;
  /** The entry to send next; entries past their deadline are skipped. `now`: monotonic milliseconds. */
  first(now: number): QueuedCommand | undefined;
  finish(queued: QueuedCommand, outcome: Outcome): void;
  /** The session has ended: commands that were sent in it may have been carried out, so they end OUTCOME_UNKNOWN. */
  abandonSent(): void;
  /** The device is gone: ends all commands. Those that were not sent reject with `reason`. */
  dismiss(reason: DriverError): void;
}

/** Commands of one class. More of them come from a fault of the caller. */
const QUEUE_MAX = 16;

export function openCommandQueue(): CommandQueue {
  let waiting: readonly QueuedCommand[] = [];

  function remove(queued: QueuedCommand): void {
    waiting = waiting.filter((one) => one !== queued);
  }

  function finish(queued: QueuedCommand, outcome: Outcome): void {
    if (outcome.kind === 'again' || outcome.kind === 'silent') return;
    remove(queued);
    queued.settle(resultOf(outcome));
  }

  return {
    remove,
    finish,
    add(command, { class: orderClass, deadline, sends }) {
      if (waiting.filter((one) => one.class === orderClass).length >= QUEUE_MAX)
        throw new DriverError('BUSY', 'too many commands wait for this device: try again in a second');
      const { promise, resolve } = Promise.withResolvers<Reply>();
      const over = new AbortController();
      const queued: QueuedCommand = {
        command,
        class: orderClass,
        deadline,
        sends,
        sent: false,
        result: promise,
        over: over.signal,
        settle(result) {
          // Without a handler, a rejection after the caller has left would end the process.
          result.catch(() => undefined);
          resolve(result);
          over.abort();
        },
      };
      const before = waiting.filter((one) => orderClass !== 'command' || one.class === 'command');
      waiting = [...before, queued, ...waiting.filter((one) => !before.includes(one))];
      return queued;
    },
    of: (command) => waiting.find((one) => one.command === command),
    first: (now) =>
      waiting.find((queued) => {
        if (queued.over.aborted || now >= queued.deadline) return false;
        const reason = queued.sent ? undefined : queued.sends?.();
        if (reason) queued.settle(Promise.reject(reason));
        return !reason;
      }),
    abandonSent() {
      for (const queued of waiting.filter(({ sent }) => sent)) finish(queued, { kind: 'unknown' });
    },
    dismiss(reason) {
      for (const queued of waiting) {
        if (queued.sent) finish(queued, { kind: 'unknown' });
        else queued.settle(Promise.reject(reason));
      }
      waiting = [];
    },
  };
}

/** The error for the caller of a command that will not be sent again. */
export function endedBy({ sent, command }: QueuedCommand, error: unknown, signal: AbortSignal): unknown {
  if (sent && !isQuestion(command))
    return new DriverError('OUTCOME_UNKNOWN', 'it was sent, and no answer came', { cause: error });
  return signal.aborted
    ? new DriverError('DEADLINE_PASSED', 'nothing was sent in time', { cause: error })
    : error;
}

async function resultOf(outcome: Outcome): Promise<Reply> {
  switch (outcome.kind) {
    case 'answered':
      return outcome.reply;
    case 'refused':
      throw new DriverError('REFUSED', nakText(outcome.code));
    case 'unknown':
      throw new DriverError('OUTCOME_UNKNOWN', 'it was sent, and the session was lost before the answer');
    default:
      throw new DriverError('BAD_REPLY', 'the device answered what is no answer to it');
  }
}
