/** A log of events with its database and forwarder, for tests of this slice. */
import { onTestFinished } from 'vitest';
import type { Clock } from '../../../src/platform/clock.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { configSchema } from '../../../src/platform/config/config.ts';
import { type SinkConfig, sinksOf } from '../../../src/platform/config/sinks.ts';
import { type Database, openDatabase } from '../../../src/platform/database/database.ts';
import { type Log, silentLog } from '../../../src/platform/log.ts';
import { supervise } from '../../../src/platform/supervise.ts';
import type { WriteProgress } from '../../../src/services/events/cloud-event.ts';
import { type EventLog, openEvents } from '../../../src/services/events/events.ts';
import { type Forwarder, openForwarder } from '../../../src/services/events/forward.ts';
import type { Sink, SinkBounds } from '../../../src/services/events/sink.ts';
import { openTransport } from '../../../src/services/events/transports.ts';
import { manualClock } from '../../manual-clock.ts';
import { migratedFile, temporaryFolder } from '../../temporary.ts';

export const SYSTEM_ID = '3c8f7a52-6a25-4be8-9f0a-0a2d6c1b7e11';

export interface TestLog extends AsyncDisposable {
  database: Database;
  /** With what is of its first sink. */
  events: EventLog & Sink;
  clock: Clock;
  synchronised: boolean;
  /** Of the wall clock, before the known time. */
  aheadMs: number;
  /** Records events `from` to `to` of the encoder, in one commit, and wakes. */
  record(from: number, to: number, encoderId?: string): Promise<void>;
  forwarder(settings: TestSink): Forwarder;
  /** Forwards under the supervisor, with a short back-off, until stopped or the test ends. */
  forward(settings: TestSink): { stop(): Promise<void> };
}

export interface TestLogOptions {
  /** A folder opened before: its database is opened again, as after a restart. */
  folder?: string;
  clock?: Clock;
  /** silentLog when absent. */
  log?: Log;
  bounds?: Omit<SinkBounds, 'name'>;
  /** Names of the sinks. */
  names?: string[];
}

/** Settings of an MQTT sink, or of another kind; of the first sink unless it is named. */
export type TestSink = { name?: string; maxAge?: number; window?: number } & (
  | { url: string; [setting: string]: unknown }
  | { kind: SinkConfig['kind']; [setting: string]: unknown }
);

const DAY_MS = 86_400_000;

/** As the configuration has it, with ages in milliseconds. */
function sinkOf({ name = 'upstream', maxAge = 30 * DAY_MS, ...settings }: TestSink): SinkConfig {
  const written =
    'kind' in settings ? { sinks: [{ name, ...settings }] } : { upstream: { window: 16, ...settings } };
  const [sink] = sinksOf(configSchema.parse(written));
  return { ...(sink as SinkConfig), name, maxAge };
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
  const {
    folder = temporaryFolder(),
    clock = manualClock(),
    names = ['upstream'],
    log: written = silentLog,
  } = options;
  const bounds = { maxAge: 30 * DAY_MS, maxBytes: 1e9, ...options.bounds };
  const file = await migratedFile(folder);
  const database = await openDatabase({ file, monotonic: () => 0, failed: () => {} });
  const common = { database, clock, systemId: SYSTEM_ID, log: written };
  const wall = { synchronised: true, aheadMs: 0 };
  const time = { now: () => clock.now() - wall.aheadMs, synchronised: () => wall.synchronised };
  const sinks = names.map((name) => ({ name, ...bounds }));
  const events = await openEvents({ ...common, time, sinks });
  const first = events.sinks[0] as Sink;
  const stops: (() => Promise<void>)[] = [];
  let closed = false;
  const log: TestLog = {
    database,
    events: { ...events, ...first, table: { ...events.table, ...first.table } },
    clock,
    get synchronised() {
      return wall.synchronised;
    },
    set synchronised(is) {
      wall.synchronised = is;
    },
    get aheadMs() {
      return wall.aheadMs;
    },
    set aheadMs(ms) {
      wall.aheadMs = ms;
    },
    async record(from, to, encoderId) {
      await database.commit(() => {
        for (let n = from; n <= to; n += 1) events.writeProgress(progress(n, encoderId));
      });
      events.wake();
    },
    forwarder(settings) {
      const configured = sinkOf(settings);
      const sink = events.sinks.find(({ bounds }) => bounds.name === configured.name);
      if (!sink) throw new Error(`the test has no sink ${configured.name}`);
      if (settings.maxAge !== undefined) sink.bounds.maxAge = settings.maxAge;
      const transport = openTransport(configured, SYSTEM_ID, clock);
      return openForwarder({
        ...common,
        time,
        events,
        sink,
        transport,
        window: 'window' in configured ? configured.window : configured.batch,
      });
    },
    forward(settings) {
      const ending = new AbortController();
      const { run } = log.forwarder(settings);
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
