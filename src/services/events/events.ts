/** The log of events: recorded in the transaction of the fact, forwarded upstream by forward.ts, streamed by live.ts. */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import type { LiveEvent, WriteProgress } from './cloud-event.ts';
import { openRecorder, type Recorder } from './recorder.ts';
import { openRetention, type Retention, type WaitingBounds } from './retention.ts';
import { type EventTable, type LinkState, openEventTable } from './table.ts';

export interface Events {
  /**
   * Inside the commit job that stores the status of the key, and so once for each step. The event's id derives from
   * (jobId, keyId, status).
   */
  writeProgress(progress: WriteProgress): void;
  /** After the commit: wakes the forwarder. */
  wake(): void;
}

export interface LiveEvents {
  /** Inside a commit job. */
  publish(event: LiveEvent): void;
  /** After the commit: publishes to the live readers. */
  wake(): void;
}

/** What waits for the notification service, and what never reached it. */
export interface Backlog {
  waiting: number;
  waitingBytes: number;
  /** Milliseconds since the oldest waiting event was recorded; null when none waits. */
  oldestAgeMs: number | null;
  /** Events the service would not take; kept on this host. */
  deadLetters: number;
  /** Records of what was not delivered. */
  gaps: number;
  /** Events that will never be delivered, since this start. */
  dropped: number;
  /** Epoch milliseconds; null while there is no connection. */
  connectedSince: number | null;
  lastError: string | null;
}

export interface EventLog extends Events, LiveEvents {
  backlog(): Backlog;
  /** Keeps the log within its bounds; for supervise. Ends only by its signal or a failing disk. */
  keep: Retention['keep'];
  /** Calls `listener` at every wake(), until disposed. */
  listen(listener: () => void): Disposable;
  readonly table: EventTable;
  readonly recorder: Recorder;
  readonly link: LinkState;
}

export interface EventLogOptions {
  database: Database;
  clock: Clock;
  systemId: string;
  /** Of ages; `synchronised`: whether the wall clock can be trusted. */
  time: Pick<KnownTime, 'now' | 'synchronised'>;
  log: Log;
  /** Of what waits for the notification service; by default those of the configuration. */
  bounds?: WaitingBounds | undefined;
}

export function openEvents(options: EventLogOptions): EventLog {
  const { database, time } = options;
  const table = openEventTable(database);
  const link: LinkState = {
    heldThrough: 0,
    sentThrough: Math.min(table.cursor().sent, table.newest()),
    ahead: new Set(),
    aheadThrough: 0,
    unsaved: { events: 0, bytes: 0, through: 0 },
    connectedSince: null,
    lastError: null,
  };
  const listeners = new Set<() => void>();
  const wake = () => {
    for (const listener of listeners) listener();
  };
  const recorder = openRecorder({ ...options, table, link });
  return {
    writeProgress: recorder.writeProgress,
    publish: recorder.publish,
    wake,
    listen(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    keep: openRetention({ ...options, table, recorder, link, wake }).keep,
    backlog() {
      const waiting = table.waiting();
      const { events, bytes, through } = link.unsaved;
      const [oldest] = table.page(Math.max(table.cursor().acked, through), 1);
      return {
        waiting: waiting.events - events,
        waitingBytes: waiting.bytes - bytes,
        oldestAgeMs: oldest ? Math.max(0, time.now() - oldest.recordedAt) : null,
        ...table.recordCounts(),
        dropped: recorder.dropped(),
        connectedSince: link.connectedSince,
        lastError: link.lastError,
      };
    },
    table,
    recorder,
    link,
  };
}
