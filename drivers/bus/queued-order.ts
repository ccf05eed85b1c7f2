/** An order that waits for its turn, or for another one. */
import { DriverError } from '../contract/driver.ts';
import type { Exchange, Order } from './exchange.ts';
import type { Outcome } from './receiver.ts';
import type { Station } from './station.ts';

export interface QueuedOrder {
  readonly station: Station;
  readonly exchange: Exchange<unknown>;
  readonly order: Order;
  /** How often it was sent, and what came of it. */
  attempts: number;
  lastError: DriverError | undefined;
  /** Monotonic: its first attempt. */
  firstSentAt: number | undefined;
  /** The first of these settles it. */
  resolve(reply: unknown): void;
  reject(error: unknown): void;
  isSettled(): boolean;
}

/** Rejected with the signal's reason when that fires; the first to settle it has the say. */
export function newQueuedOrder(
  what: Pick<QueuedOrder, 'station' | 'exchange' | 'order'>,
  signal: AbortSignal,
  { resolve, reject }: Pick<QueuedOrder, 'resolve' | 'reject'>,
): QueuedOrder {
  let isSettled = false;
  function settle(call: () => void): void {
    if (isSettled) return;
    isSettled = true;
    signal.removeEventListener('abort', abort);
    call();
  }
  const queued: QueuedOrder = {
    ...what,
    attempts: 0,
    lastError: undefined,
    firstSentAt: undefined,
    resolve: (reply) => settle(() => resolve(reply)),
    reject: (error) => settle(() => reject(error)),
    isSettled: () => isSettled,
  };
  const abort = () => queued.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  return queued;
}

export function errorOf(outcome: Exclude<Outcome, { kind: 'reply' }>, address: number): DriverError {
  switch (outcome.kind) {
    case 'refused':
      return new DriverError('REFUSED', `device ${address} refused: ${outcome.reason}`);
    case 'busy':
      // It did nothing, and will: unlike a refusal this is not for good.
      return new DriverError('BUSY', `device ${address} is busy: try again in a moment`);
    case 'failed':
      return new DriverError('BAD_REPLY', `device ${address} failed: ${outcome.reason}`);
    case 'unreached':
      return new DriverError('DEVICE_OFFLINE', `device ${address} was not reached: ${outcome.reason}`);
    case 'unanswered':
      return new DriverError('NO_REPLY', `device ${address} did not answer: ${outcome.reason}`);
    case 'timeout':
      return new DriverError('NO_REPLY', `device ${address} did not answer in time`);
    case 'crc':
      return new DriverError('BAD_REPLY', `the reply of device ${address} was damaged on the wire`);
    case 'framing':
      return new DriverError('BAD_REPLY', `what came instead of a reply of device ${address} is no frame`);
    case 'foreign':
      return new DriverError('BAD_REPLY', `what came is no answer to what device ${address} was asked`);
    case 'collision':
      return new DriverError('BAD_REPLY', `what was sent to device ${address} was disturbed on the wire`);
  }
}
