/**
 * What the library makes for each frame and nothing reads: an error for each request and each wait, in case it fails, whose
 * stack takes long to make, and the text of each frame that comes, for its debug log (herdsman.ts).
 */

/** Of the library. */
export interface Waits {
  waitFor(...given: unknown[]): { ID: number; start(): unknown };
}
/** Of the library's endpoint. */
export interface Requests {
  sendRequest(...given: unknown[]): Promise<unknown>;
}

export function spareWork(waits: Waits, requests: Requests, frames: object): void {
  const { waitFor } = waits;
  const { sendRequest } = requests;
  waits.waitFor = function (this: Waits, ...given) {
    const { ID, start } = waitFor.apply(this, given);
    return { ID, start: () => withoutStacks(start) };
  };
  requests.sendRequest = function (this: Requests, ...given) {
    return withoutStacks(() => sendRequest.apply(this, given));
  };
  frames.toString = () => 'a frame';
}

function withoutStacks<T>(work: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return work();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
