/** When something is read again: every so often, and soon after an event. One reading at a time. */

/** Several events come together, such as those of one gateway that is lost. */
const SETTLE_MS = 250;

export interface Rereading {
  /** The first event has it read at once, those that follow it together. */
  changed(): void;
  now(): void;
  stop(): void;
}

/** Begins at once. `read` never rejects. */
export function openRereading(read: () => Promise<void>, everyMs: number): Rereading {
  let timer: ReturnType<typeof setTimeout>;
  let isOpen = true;
  let isReading = false;
  let isDue = false;
  let begunAt = Number.NEGATIVE_INFINITY;
  const plan = (milliseconds: number) => {
    clearTimeout(timer);
    timer = setTimeout(look, milliseconds);
  };
  const look = async () => {
    isReading = true;
    isDue = false;
    begunAt = performance.now();
    await read();
    isReading = false;
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
    now: () => soon(0),
    stop() {
      isOpen = false;
      clearTimeout(timer);
    },
  };
}
