import { onTestFinished } from 'vitest';
import { DriverError, type DriverErrorCode } from '../../../drivers/contract/driver.ts';
import { silentLog } from '../../../src/platform/log.ts';
import {
  type Due,
  openReconciler,
  type ReconcilerOptions,
} from '../../../src/services/reconcile/reconcile.ts';
import { manualClock } from '../../manual-clock.ts';

/** A table of wanted and applied versions, and devices that settle an attempt only when the test says so. */
export function openTestReconciler(overrides: Partial<ReconcilerOptions> = {}) {
  const clock = manualClock();
  const wanted = new Map<string, number>();
  const applied = new Map<string, number>();
  /** What was read of the table: an id, or all. */
  const read: (string | undefined)[] = [];
  const attempts: (Due & { signal: AbortSignal; done(): void; fail(e: unknown): void })[] = [];
  const options: ReconcilerOptions = {
    name: 'settings',
    due(one) {
      read.push(one);
      return [...wanted]
        .filter(([id, version]) => (one ?? id) === id && applied.get(id) !== version)
        .map(([id, version]) => ({ id, version }));
    },
    apply({ id, version }, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const done = () => {
        applied.set(id, version);
        resolve();
      };
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      attempts.push({ id, version, signal, done, fail: reject });
      return promise;
    },
    clock,
    log: silentLog,
    random: () => 0.999_999,
    ...overrides,
  };
  const reconciler = openReconciler(options);
  const run = () => {
    const stop = new AbortController();
    const ended = reconciler.run(stop.signal).catch((error: unknown) => error);
    const end = async () => {
      stop.abort(new Error('over'));
      return ended;
    };
    onTestFinished(async () => void (await end()));
    return { end, ended };
  };
  const want = (id: string, version: number) => {
    wanted.set(id, version);
    reconciler.wake(id);
  };
  /** The attempt begun last. */
  const last = () => {
    const attempt = attempts.at(-1);
    if (!attempt) throw new Error('nothing was attempted');
    return attempt;
  };
  return { clock, wanted, applied, attempts, reconciler, run, want, last, read };
}

export const refusal = (code: DriverErrorCode) => new DriverError(code, `it said ${code}`);
