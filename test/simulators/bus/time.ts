/** Time as a simulated bus has it. */
const WAIT = new Int32Array(new SharedArrayBuffer(4));
/** Atomics.wait comes so much too late at times; the rest is spun. */
const OVERSLEEP_MS = 0.15;

/** Milliseconds of CLOCK_MONOTONIC: the same in every process of the machine. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** The wall time of a moment. */
export function epochMs(monotonic: number): number {
  return Date.now() + monotonic - monotonicMs();
}

/** Returns at `deadline` to some microseconds. Nothing else of this process runs until then. */
export function blockUntil(deadline: number): void {
  const sleepMs = deadline - monotonicMs() - OVERSLEEP_MS;
  if (sleepMs > 0) Atomics.wait(WAIT, 0, 0, sleepMs);
  while (monotonicMs() < deadline);
}
