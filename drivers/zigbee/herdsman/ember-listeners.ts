/**
 * What the library does when an EmberZNet coordinator says something by itself (emberAdapter.js, ezsp.js). These are
 * listeners, some asynchronous: what a frame makes them throw would end the process.
 */
const LISTENERS = ['onStackStatus', 'onMessageSent', 'onTrustCenterJoin', 'watchdogCounters'] as const;

/** Of the library's EmberAdapter. */
export type EmberListeners = Record<(typeof LISTENERS)[number], (...values: unknown[]) => Promise<void>> & {
  oneWaitress: { waiters: Map<number, Waiter> };
  onNcpNeedsResetAndInit(status: unknown): void;
};
interface Waiter {
  /** undefined: no one waits for it yet. */
  timer?: NodeJS.Timeout;
  timedout: boolean;
  reject(error: Error): void;
}
/** Of the library's Ezsp. */
export interface CallbackReader {
  callbackDispatch(): void;
}

export function guardEmberListeners(adapter: EmberListeners, reader: CallbackReader): void {
  for (const name of LISTENERS) {
    const listen = adapter[name];
    // What was to be done of it is not: a frame is not understood, or the coordinator has gone.
    adapter[name] = function (this: EmberListeners, ...values) {
      return listen.apply(this, values).catch(() => undefined);
    };
  }
  const { callbackDispatch } = reader;
  reader.callbackDispatch = function (this: CallbackReader) {
    try {
      callbackDispatch.call(this);
    } catch {
      // Shorter than the library believes.
    }
  };
  // The library would wait for answers out of a closed port, for 10 s each.
  const { onNcpNeedsResetAndInit } = adapter;
  adapter.onNcpNeedsResetAndInit = function (this: EmberListeners, status) {
    const { waiters } = this.oneWaitress;
    for (const waiter of waiters.values()) {
      if (!waiter.timer) continue;
      clearTimeout(waiter.timer);
      waiter.timedout = true;
      waiter.reject(new Error('the connection to the coordinator is gone'));
    }
    onNcpNeedsResetAndInit.call(this, status);
  };
}
