/** The commands that wait for one device, and what becomes of them. */
import type { OrderClass } from '../bus/exchange.ts';
import { DriverError } from '../contract/driver.ts';
import { type Command, NAK, type Reply } from './protocol/messages.ts';
import { isQuestion, type Outcome } from './protocol/state.ts';

export interface Errand {
  readonly command: Command;
  readonly class: OrderClass;
  /** Monotonic milliseconds: it is not sent later, by whatever turn. */
  readonly deadline: number;
  /** It was on the wire. */
  sent: boolean;
  isSettled: boolean;
  /** With the answer; rejects with a DriverError. */
  readonly result: Promise<Reply>;
  /** Fires when it is settled. */
  readonly over: AbortSignal;
}

export interface Errands {
  /** Throws BUSY. */
  add(command: Command, asking: { class: OrderClass; deadline: number }): Errand;
  remove(errand: Errand): void;
  /** The one of this command. */
  of(command: Command | undefined): Errand | undefined;
  /** The one to send next at this time. */
  first(now: number): Errand | undefined;
  finish(errand: Errand, outcome: Outcome): void;
  /** The session has ended: what was sent in it may have been done. */
  abandonSent(): void;
  /** The device that they were for is gone. `reason`: why nothing was sent. */
  dismiss(reason: DriverError): void;
}

/** Of a class; more come from something that has gone wrong. */
const ERRANDS_MAX = 16;

export function openErrands(): Errands {
  const settle = new WeakMap<Errand, (result: Promise<Reply>) => void>();
  let waiting: readonly Errand[] = [];

  function remove(errand: Errand): void {
    waiting = waiting.filter((one) => one !== errand);
  }

  function finish(errand: Errand, outcome: Outcome): void {
    if (outcome.kind === 'again' || outcome.kind === 'silent') return;
    remove(errand);
    settle.get(errand)?.(resultOf(outcome));
  }

  return {
    remove,
    finish,
    add(command, { class: orderClass, deadline }) {
      if (waiting.filter((one) => one.class === orderClass).length >= ERRANDS_MAX)
        throw new DriverError('BUSY', 'too many commands wait for this device');
      const { promise, resolve } = Promise.withResolvers<Reply>();
      const over = new AbortController();
      const errand: Errand = {
        command,
        class: orderClass,
        deadline,
        sent: false,
        isSettled: false,
        result: promise,
        over: over.signal,
      };
      settle.set(errand, (result) => {
        // The caller may not wait any more.
        result.catch(() => undefined);
        errand.isSettled = true;
        resolve(result);
        over.abort();
      });
      const before = waiting.filter((one) => orderClass !== 'command' || one.class === 'command');
      waiting = [...before, errand, ...waiting.filter((one) => !before.includes(one))];
      return errand;
    },
    of: (command) => waiting.find((one) => one.command === command),
    first: (now) => waiting.find(({ deadline }) => now < deadline),
    abandonSent() {
      for (const errand of waiting.filter(({ sent }) => sent)) finish(errand, { kind: 'unknown' });
    },
    dismiss(reason) {
      for (const errand of waiting) {
        if (errand.sent) finish(errand, { kind: 'unknown' });
        else settle.get(errand)?.(Promise.reject(reason));
      }
      waiting = [];
    },
  };
}

/** The error for the caller, when the command is not sent any more. */
export function endedBy({ sent, command }: Errand, error: unknown, signal: AbortSignal): unknown {
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

/** 7.3. */
const NAK_TEXTS: Record<number, string> = {
  [NAK.check]: 'the check was wrong',
  [NAK.length]: 'the length was wrong',
  [NAK.unknownCommand]: 'it does not know the command',
  [NAK.sequence]: 'the number was wrong',
  [NAK.securityBlock]: 'it does not take this security',
  [NAK.securityRequired]: 'it wants a secure channel',
  [NAK.biometricType]: 'it does not know this type of biometric',
  [NAK.biometricFormat]: 'it does not know this format of biometric',
  [NAK.record]: 'it cannot do what the command says',
};

export function nakText(code: number): string {
  return `the device says no: ${NAK_TEXTS[code] ?? 'for a reason of its own'} (NAK ${code})`;
}
