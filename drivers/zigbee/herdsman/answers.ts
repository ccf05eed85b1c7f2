/**
 * The library's waiting for the answer of a device: until it comes, or for its whole timeout, nothing else goes to that
 * device. The library gives it up after a negative confirmation, although the device may have the frame and answer.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { unlessAborted } from '../../contract/waiting.ts';
import { KNOWN, type ZclReply, type ZclRequest } from '../radio.ts';
import { unconfirmedByZStack } from './frame-status.ts';

/** Of the library's adapter. */
export interface Answers {
  waitForInternal(...matcher: unknown[]): Waiting;
  /** The status of AF_DATA_CONFIRM, or a number of its own above a byte when none came. */
  dataRequest(...request: unknown[]): Promise<number>;
}
interface Waiting {
  start(): { promise: Promise<unknown> };
  cancel(): void;
}

const STATUS_SUCCESS = 0;

/** What is sent waits for its answer as ZclRequest (radio.ts) says. */
export type WaitAs = <T>(request: ReplyHandling, send: () => Promise<T>) => Promise<T>;
export type ReplyHandling = Pick<ZclRequest, 'known' | 'unconfirmed'>;

export function guardAnswers(adapter: Answers): WaitAs {
  const sending = new AsyncLocalStorage<ReplyHandling>();
  const { waitForInternal, dataRequest } = adapter;
  adapter.waitForInternal = function (this: Answers, ...matcher) {
    const waiting = waitForInternal.apply(this, matcher);
    const known = sending.getStore()?.known;
    if (!known) return waiting;
    return { ...waiting, start: () => ({ promise: until(known, waiting) }) };
  };
  adapter.dataRequest = async function (this: Answers, ...one) {
    const request = sending.getStore();
    const status = (await unless(request?.known, dataRequest.apply(this, one))) ?? STATUS_SUCCESS;
    if (status === STATUS_SUCCESS || !request?.unconfirmed) return status;
    request.unconfirmed(unconfirmedByZStack(status));
    return STATUS_SUCCESS;
  };
  return (request, send) => sending.run(request, send);
}

function until(known: AbortSignal, waiting: Waiting): Promise<unknown> {
  return unless(known, waiting.start().promise).finally(() => waiting.cancel());
}

/** Of the library: requests that wait for a frame of the coordinator. */
export type Waiters = ReadonlyMap<
  number,
  {
    /** undefined: no one waits for it yet. */
    timer?: NodeJS.Timeout;
    timedout: boolean;
    reject(error: Error): void;
  }
>;

/** The library would wait for answers out of a closed port, for seconds each. */
export function rejectWaiters(waiters: Waiters): void {
  for (const waiter of waiters.values()) {
    if (!waiter.timer) continue;
    clearTimeout(waiter.timer);
    waiter.timedout = true;
    waiter.reject(new Error('the connection to the coordinator is gone'));
  }
}

/**
 * The promise, unless the signal fires first. With KNOWN it resolves with undefined then: the library writes a text with the
 * stack of each failure, and the caller that waits for the outcome would wait for that as well.
 */
export async function unless<T>(known: AbortSignal | undefined, promise: Promise<T>): Promise<T | undefined> {
  if (!known) return promise;
  try {
    return await unlessAborted(promise, known);
  } catch (error) {
    if (known.reason === KNOWN) return undefined;
    throw known.aborted ? new Error('its answer is not needed any more') : error;
  }
}

/** Thrown through the library's own code: the coordinator itself said what became of the frame. */
export class KnownReply extends Error {
  readonly reply: ZclReply;
  constructor(reply: ZclReply) {
    super('what became of the frame is known');
    this.reply = reply;
  }
}
