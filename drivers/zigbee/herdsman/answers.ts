/**
 * The library's waiting for the answer of a device: until it comes, or for its whole timeout, nothing else goes to that
 * device. Who knows already what became of a command frees the device for the next.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

/** Of the library's adapter. */
export interface Answers {
  waitForInternal(...matcher: unknown[]): Waiting;
}
interface Waiting {
  start(): { promise: Promise<unknown> };
  cancel(): void;
}

/** What is sent waits for its answer until the signal fires; an answer that comes later is nobody's. */
export type WaitUntil = <T>(known: AbortSignal | undefined, send: () => Promise<T>) => Promise<T>;

export function guardAnswers(adapter: Answers): WaitUntil {
  const sending = new AsyncLocalStorage<AbortSignal>();
  const { waitForInternal } = adapter;
  adapter.waitForInternal = function (this: Answers, ...matcher) {
    const waiting = waitForInternal.apply(this, matcher);
    const known = sending.getStore();
    if (!known) return waiting;
    return { ...waiting, start: () => ({ promise: until(known, waiting) }) };
  };
  return (known, send) => (known ? sending.run(known, send) : send());
}

function until(known: AbortSignal, waiting: Waiting): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const end = () => {
      waiting.cancel();
      reject(new Error('its answer is not needed any more'));
    };
    if (known.aborted) return end();
    known.addEventListener('abort', end, { once: true });
    waiting
      .start()
      .promise.then(resolve, reject)
      .finally(() => known.removeEventListener('abort', end));
  });
}
