/**
 * What the library does when an EmberZNet coordinator says something by itself (emberAdapter.js, ezsp.js). These are
 * listeners, some asynchronous: what a frame makes them throw would end the process.
 */
import { rejectWaiters, type Waiters } from './answers.ts';

const LISTENERS = ['onStackStatus', 'onMessageSent', 'onTrustCenterJoin', 'watchdogCounters'] as const;

/** Of the library's EmberAdapter. */
export type EmberListeners = Record<(typeof LISTENERS)[number], (...values: unknown[]) => Promise<void>> & {
  oneWaitress: { waiters: Waiters };
  ezsp: CallbackReader;
  onNcpNeedsResetAndInit(status: unknown): void;
};
/** Of the library's Ezsp. */
export interface CallbackReader {
  callbackDispatch(): void;
  /** Closes the port. */
  stop(): Promise<void>;
  /** What waits for the answer to the command under way. */
  responseWaiter?: { timer?: NodeJS.Timeout; resolve(status: number): void } | undefined;
}
/** EzspStatus of the library: NOT_CONNECTED. */
export const NOT_CONNECTED = 0x28;

export function guardEmberListeners(adapter: EmberListeners, reader: CallbackReader): void {
  for (const name of LISTENERS) {
    const listen = adapter[name];
    // What was to be done of it is not: a frame is not understood, or the coordinator has gone.
    adapter[name] = function (this: EmberListeners, ...values) {
      return listen.apply(this, values).catch(() => undefined);
    };
  }
  const { callbackDispatch, stop } = reader;
  reader.callbackDispatch = function (this: CallbackReader) {
    try {
      callbackDispatch.call(this);
    } catch {
      // Shorter than the library believes.
    }
  };
  reader.stop = function (this: CallbackReader) {
    endWaiting(this);
    return stop.call(this);
  };
  const { onNcpNeedsResetAndInit } = adapter;
  adapter.onNcpNeedsResetAndInit = function (this: EmberListeners, status) {
    endWaiting(this.ezsp);
    rejectWaiters(this.oneWaitress.waiters);
    onNcpNeedsResetAndInit.call(this, status);
  };
}

/** The library would wait for an answer out of a closed port for 14 s; what waits behind it fails once this does. */
function endWaiting({ responseWaiter }: CallbackReader): void {
  clearTimeout(responseWaiter?.timer);
  responseWaiter?.resolve(NOT_CONNECTED);
}
