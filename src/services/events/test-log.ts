/** A log of events with its database and forwarder, for tests of this slice. */
import { onTestFinished } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { migratedFile, temporaryFolder } from '../../../test/temporary.ts';
import type { Clock } from '../../platform/clock.ts';
import { systemClock } from '../../platform/clock.ts';
import { type Database, openDatabase } from '../../platform/database/database.ts';
import { silentLog } from '../../platform/log.ts';
import { supervise } from '../../platform/supervise.ts';
import type { WriteProgress } from './cloud-event.ts';
import { type EventLog, openEvents } from './events.ts';
import { type Forwarder, type ForwarderOptions, openForwarder } from './forward.ts';
import type { WaitingBounds } from './retention.ts';

export const SYSTEM_ID = '3c8f7a52-6a25-4be8-9f0a-0a2d6c1b7e11';

export interface TestLog extends AsyncDisposable {
  database: Database;
  events: EventLog;
  clock: Clock;
  synchronised: boolean;
  /** Of the wall clock, before the known time. */
  aheadMs: number;
  /** Records events `from` to `to` of the encoder, in one commit, and wakes. */
  record(from: number, to: number, encoderId?: string): Promise<void>;
  forwarder(upstream: Partial<ForwarderOptions['upstream']> & { url: string }): Forwarder;
  /** Forwards under the supervisor, with a short back-off, until stopped or the test ends. */
  forward(upstream: Partial<ForwarderOptions['upstream']> & { url: string }): { stop(): Promise<void> };
}

export interface TestLogOptions {
  /** A folder opened before: its database is opened again, as after a restart. */
  folder?: string;
  clock?: Clock;
  bounds?: WaitingBounds;
}

export function progress(n: number, encoderId = 'desk-1'): WriteProgress {
  return {
    encoderId,
    requestId: `r-${n}`,
    jobId: `job-of-${encoderId}`,
    keyId: `k-${n}`,
    entryIndex: 0,
    entryCount: 1,
    status: 'written',
    totals: { written: 1, open: 0 },
    correlationId: 'c-1',
  };
}

export async function openTestLog(options: TestLogOptions = {}): Promise<TestLog> {
  const { folder = temporaryFolder(), clock = manualClock(), bounds } = options;
  const file = await migratedFile(folder);
  const database = await openDatabase({ file, monotonic: () => 0, failed: () => {} });
  const common = { database, clock, systemId: SYSTEM_ID, log: silentLog };
  const time = { now: () => clock.now() - log.aheadMs, synchronised: () => log.synchronised };
  const events = openEvents({ ...common, time, bounds });
  const stops: (() => Promise<void>)[] = [];
  let closed = false;
  const log: TestLog = {
    database,
    events,
    clock,
    synchronised: true,
    aheadMs: 0,
    async record(from, to, encoderId) {
      await database.commit(() => {
        for (let n = from; n <= to; n += 1) events.writeProgress(progress(n, encoderId));
      });
      events.wake();
    },
    forwarder: (upstream) =>
      openForwarder({
        ...common,
        time,
        events,
        upstream: { protocolVersion: 5, window: 16, maxAge: 30 * 86_400_000, ...upstream },
      }),
    forward(upstream) {
      const ending = new AbortController();
      const { run } = log.forwarder(upstream);
      const backoff = { firstMs: 2, longestMs: 10, healthyMs: 60_000 };
      const { signal } = ending;
      const done = supervise({ name: 'upstream', run, signal, clock: systemClock, log: silentLog, backoff });
      const stop = async () => {
        ending.abort(new Error('the test ends'));
        await done;
      };
      stops.push(stop);
      return { stop };
    },
    async [Symbol.asyncDispose]() {
      if (closed) return;
      closed = true;
      for (const stop of stops) await stop();
      await database[Symbol.asyncDispose]();
    },
  };
  onTestFinished(() => log[Symbol.asyncDispose]());
  return log;
}

/** Looks again at every turn of the event loop until it is so. */
export async function until(
  condition: () => boolean,
  what = 'the condition',
  timeoutMs = 15_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`${what} did not come true within ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
