/**
 * The retry loop of tasks. A task runs until it breaks and then throws; what happens next is decided here and nowhere else:
 * wait (capped exponential back-off with full jitter, so that a site's links do not return in step), run again, and
 * inform the operator once rather than every time.
 */
import type { DriverLog } from '../../drivers/contract/driver.ts';
import type { Clock } from './clock.ts';

export interface Backoff {
  /** Ceiling of the first wait, milliseconds; it doubles with each failure in a row. */
  firstMs: number;
  /** Ceiling of every wait. */
  longestMs: number;
  /** A run that lasts this long is healthy: the next failure waits like a first one. */
  healthyMs: number;
}

/** A blip is over in a second; a dead peer is asked once a minute at the rarest, so that its return is noticed. */
export const DEFAULT_BACKOFF: Backoff = { firstMs: 1_000, longestMs: 60_000, healthyMs: 60_000 };
/** A task that still runs this long after its signal is a defect; it is named in the log, for shutdown hangs on it. */
export const ENDING_DEADLINE_MS = 5_000;
/** Different failures counted apart before the rest share one count: bounds memory when messages contain numbers. */
const FAILURES_COUNTED_MAX = 16;

export interface SuperviseOptions {
  /** What an operator calls the task, such as "link desk". */
  name: string;
  /** Runs until it breaks. Its signal fires when supervision ends, and also when the run itself has ended. */
  run: (signal: AbortSignal) => Promise<unknown>;
  signal: AbortSignal;
  clock: Clock;
  log: DriverLog;
  backoff?: Backoff;
  /** From 0 up to 1; Math.random when absent. */
  random?: () => number;
}

/**
 * Runs the task again and again until the signal fires; resolves once the running task has ended. Never rejects. A
 * task that returns although no one asked it to has failed, too.
 */
export async function supervise(options: SuperviseOptions): Promise<void> {
  const { name, signal, clock, log, backoff = DEFAULT_BACKOFF, random = Math.random } = options;
  let failuresInARow = 0;
  let counts = new Map<string, number>();
  while (!signal.aborted) {
    const failed = failuresInARow > 0;
    const error = await runOnce(options, backoff.healthyMs, () => {
      failuresInARow = 0;
      counts = new Map();
      if (failed) log.info({ task: name }, `${name} has recovered`);
    });
    if (signal.aborted) return;
    failuresInARow += 1;
    const waitMs = waitBefore(failuresInARow, backoff, random());
    const occurrences = countFailure(counts, error);
    if (isReported(occurrences)) {
      const fields = { task: name, occurrences, retryInMs: Math.round(waitMs) };
      // An error without a stack says no more than its message.
      const isMessageOnly = error instanceof Error && !error.stack;
      log.warn({ ...fields, ...(!isMessageOnly && { err: error }) }, `${name} failed: ${messageOf(error)}`);
    }
    // Rejects only when the signal fires, which the loop condition sees.
    await clock.sleep(waitMs, signal).catch(() => undefined);
  }
}

/**
 * Full jitter: anywhere between nothing and the ceiling, which doubles with each failure in a row (from 1). `random` 1: no
 * jitter, where a person waits.
 */
export function waitBefore(
  failuresInARow: number,
  { firstMs, longestMs }: Pick<Backoff, 'firstMs' | 'longestMs'>,
  random: number,
): number {
  return random * Math.min(longestMs, firstMs * 2 ** (failuresInARow - 1));
}

/** The 1st, 2nd, 4th, 8th … occurrence: at the longest wait that is a line after minutes, then hours, then days. */
export function isReported(occurrences: number): boolean {
  return Number.isInteger(Math.log2(occurrences));
}

/** Runs the task to its end and returns why it ended; calls `healthy` when it has lasted long enough. */
async function runOnce(options: SuperviseOptions, healthyMs: number, healthy: () => void): Promise<unknown> {
  const { name, run, signal, clock, log } = options;
  const attempt = new AbortController();
  const over = new AbortController();
  const end = () => {
    attempt.abort(signal.reason);
    const report = () =>
      log.error({ task: name }, `${name} still runs ${ENDING_DEADLINE_MS} ms after it was asked to end`);
    clock.sleep(ENDING_DEADLINE_MS, over.signal).then(report, () => undefined);
  };
  signal.addEventListener('abort', end, { once: true });
  clock.sleep(healthyMs, attempt.signal).then(healthy, () => undefined);
  try {
    await run(attempt.signal);
    return new Error('ended although no one asked it to');
  } catch (error) {
    return error;
  } finally {
    signal.removeEventListener('abort', end);
    over.abort();
    attempt.abort();
  }
}

function countFailure(counts: Map<string, number>, error: unknown): number {
  const message = messageOf(error);
  const key = counts.has(message) || counts.size < FAILURES_COUNTED_MAX ? message : 'further failures';
  const occurrences = (counts.get(key) ?? 0) + 1;
  counts.set(key, occurrences);
  return occurrences;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export interface Tasks extends AsyncDisposable {
  /** Supervises a task until disposal. */
  start(name: string, run: SuperviseOptions['run'], backoff?: Backoff): void;
}

/** Tasks that run until they are closed together, which waits until the last has ended. */
export function openTasks(clock: Clock, log: DriverLog): Tasks {
  const stop = new AbortController();
  const running: Promise<void>[] = [];
  return {
    start(name, run, backoff = DEFAULT_BACKOFF) {
      running.push(supervise({ name, run, signal: stop.signal, clock, log, backoff }));
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(running);
    },
  };
}
