/** When something is read again: every so often, and soon after an event. One reading at a time. */

/** Several events come together, such as those of one gateway that is lost. */
const SETTLE_MS = 250;

export interface Rereading {
  /** The first event has it read at once, those that follow it together. */
  changed(): void;
  /** Resolves when a reading that began after this call has ended, or none will begin. */
  now(): Promise<void>;
  stop(): void;
}

/** Begins at once. `read` never rejects. */
export function openRereading(read: () => Promise<void>, everyMs: number): Rereading {
  let timer: ReturnType<typeof setTimeout>;
  let isOpen = true;
  let isReading = false;
  let isDue = false;
  let begunAt = Number.NEGATIVE_INFINITY;
  /** The end of the first reading that is not begun yet. */
  let next = Promise.withResolvers<void>();
  const plan = (milliseconds: number) => {
    clearTimeout(timer);
    timer = setTimeout(look, milliseconds);
  };
  const look = async () => {
    isReading = true;
    isDue = false;
    begunAt = performance.now();
    const { resolve } = next;
    next = Promise.withResolvers();
    await read();
    isReading = false;
    resolve();
    // What happened meanwhile may not be in the answer.
    if (isOpen) plan(isDue ? SETTLE_MS : everyMs);
  };
  const soon = (milliseconds: number) => {
    isDue = true;
    if (!isReading) plan(milliseconds);
  };
  plan(0);
  return {
    changed() {
      if (!isDue) soon(Math.max(0, begunAt + SETTLE_MS - performance.now()));
    },
    now() {
      if (isOpen) soon(0);
      return next.promise;
    },
    stop() {
      isOpen = false;
      clearTimeout(timer);
      next.resolve();
    },
  };
}
