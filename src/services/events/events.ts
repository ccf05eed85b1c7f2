/** The log of events: recorded in the transaction of the fact, forwarded to each sink by forward.ts, streamed by live.ts. */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import {
  type EncodedEvent,
  type Gap,
  gapEvent,
  type LiveEvent,
  liveEvent,
  type Recorded,
  type WriteProgress,
  writeProgressEvent,
} from './cloud-event.ts';
import { type FillRate, openFillRate } from './fill-rate.ts';
import { openRetention, type Retention } from './retention.ts';
import { openSink, type Sink, type SinkBounds } from './sink.ts';
import { openSinkNames, openSinkTable, type SinkTable } from './sink-table.ts';
import { type EventTable, openEventTable } from './table.ts';

export interface Events {
  /**
   * Inside the commit job that stores the status of the key, and so once for each step. The event's id derives from
   * (jobId, keyId, status).
   */
  writeProgress(progress: WriteProgress): void;
  /** After the commit: wakes the forwarders. */
  wake(): void;
}

export interface LiveEvents {
  /** Inside a commit job. */
  publish(event: LiveEvent): void;
  /** After the commit: publishes to the live readers. */
  wake(): void;
}

export interface EventLog extends Events, LiveEvents {
  /** In the order of the configuration. */
  readonly sinks: readonly Sink[];
  readonly fillRate: FillRate;
  /** Keeps the log within its bounds; for supervise. Ends only by its signal or a failing disk. */
  keep: Retention['keep'];
  /** Calls `listener` at every wake(), until disposed. */
  listen(listener: () => void): Disposable;
  readonly table: EventTable;
}

export interface EventLogOptions {
  database: Database;
  clock: Clock;
  systemId: string;
  /** Of ages; `synchronised`: whether the wall clock can be trusted. */
  time: Pick<KnownTime, 'now' | 'synchronised'>;
  log: Log;
  sinks: readonly SinkBounds[];
}

export async function openEvents(options: EventLogOptions): Promise<EventLog> {
  const { database, clock, time, log } = options;
  const table = openEventTable(database);
  const listeners = new Set<() => void>();
  const wake = () => {
    for (const listener of listeners) listener();
  };
  const numbers = await numberSinks(options);
  const tables = options.sinks.map(({ name }) => openSinkTable(database, numbers.get(name) ?? 0));
  const fillRate = openFillRate(clock, longestBacklog(tables, time.now()));
  const recorder = openRecorder(options, table, (seq, bytes) => {
    fillRate.add(bytes);
    for (const sink of sinks) sink.table.countUp(seq);
  });
  const sinks = tables.map((table, index): Sink => {
    const bounds = options.sinks[index] as SinkBounds;
    const { name } = bounds;
    const id = numbers.get(name) ?? 0;
    return openSink({ bounds, time, fillRate, recordGap: (gap) => recorder.gap(gap, { id, name }), table });
  });
  return {
    writeProgress: recorder.writeProgress,
    publish: recorder.publish,
    wake,
    listen(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    keep: openRetention({ database, table, sinks, clock, time, log, wake }).keep,
    sinks,
    fillRate,
    table,
  };
}

/** What is known of the rate at a start: how much waits for the sink that is behind most, and since when. */
function longestBacklog(tables: readonly SinkTable[], now: number): { bytes: number; forMs: number } {
  const backlogs = tables.map((table) => {
    const [oldest] = table.page(table.cursor().acked, 1);
    return { bytes: table.waiting().bytes, forMs: oldest ? Math.max(0, now - oldest.recordedAt) : 0 };
  });
  return backlogs.toSorted((one, other) => other.forMs - one.forMs)[0] ?? { bytes: 0, forMs: 0 };
}

/** Removes the sinks that are not configured any more, adds the new ones, and returns their numbers by name. */
async function numberSinks({ database, log, sinks }: EventLogOptions): Promise<Map<string, number>> {
  const names = openSinkNames(database);
  const stored = names.all();
  const gone = stored.filter(({ name }) => !sinks.some((sink) => sink.name === name));
  const added = sinks.filter(({ name }) => !stored.some((sink) => sink.name === name));
  if (gone.length + added.length > 0)
    await database.commit(() => {
      for (const { id } of gone) names.remove(id);
      for (const { name } of added) names.add(name);
    });
  // The schema begins with one named upstream, which few sites lack.
  for (const { name } of gone.filter(({ isUsed }) => isUsed === 1))
    log.warn(
      { sink: name },
      `the sink ${name} is not configured any more: its cursor, its dead letters and its gap records are removed`,
    );
  for (const { name } of added)
    log.info({ sink: name }, `the sink ${name} is new: it begins at the oldest event that is kept`);
  return new Map(names.all().map(({ name, id }) => [name, id]));
}

/** Appends to the log. All of it runs inside a commit job, so a fact and its event are durable together. */
function openRecorder(
  { clock, systemId, time }: EventLogOptions,
  table: EventTable,
  /** After each event, which may be for all sinks. */
  recorded: (seq: number, bytes: number) => void,
): Pick<EventLog, 'writeProgress' | 'publish'> & {
  /** What was not delivered, as an event for the sink of that number alone; returns its seq. */
  gap(gap: Gap, sink: { id: number; name: string }): number;
} {
  function append(
    event: EncodedEvent,
    { clockSynchronised }: Recorded,
    whose: { encoderId: string; sequence: number | null; sink: number | null },
  ): number {
    const { encoderId, sequence, sink } = whose;
    const head = {
      encoderId,
      sequence,
      recordedAt: time.now(),
      clockSynchronised: clockSynchronised ? 1 : 0,
      bytes: Buffer.byteLength(event.body),
    };
    const seq = table.insert(event, head, sink);
    recorded(seq, head.bytes);
    return seq;
  }

  const now = (): Recorded => ({ systemId, at: clock.now(), clockSynchronised: time.synchronised() });

  return {
    writeProgress(progress) {
      const { encoderId } = progress;
      const at = now();
      const number = table.nextSequence(encoderId);
      const { sequence } = number;
      append(writeProgressEvent(progress, number, at), at, { encoderId, sequence, sink: null });
    },
    publish(event) {
      table.insertLive(event.type, time.now(), liveEvent(event, now()));
    },
    gap(gap, { id, name }) {
      const at = now();
      return append(gapEvent(gap, name, at), at, { encoderId: gap.encoderId, sequence: null, sink: id });
    },
  };
}
