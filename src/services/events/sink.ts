/**
 * One sink of the log of events: where it stands, what waits for it, and what it never got. Its forwarder (forward.ts) owns
 * the cursor; each sink has one of its own, so that a slow one holds up no other.
 */
import type { KnownTime } from '../../platform/known-time.ts';
import type { Gap } from './cloud-event.ts';
import type { FillRate } from './fill-rate.ts';
import type { SinkTable, Waiting } from './sink-table.ts';

/** What the forwarder knows and the rest of this slice needs. */
export interface LinkState {
  /** Everything up to here is in the hands of the open connection; 0 without one. */
  heldThrough: number;
  /** Everything up to here may have been sent, now or in an earlier run, apart from `ahead`. */
  sentThrough: number;
  /** Beyond both: events that have overtaken the backlog (queue.ts), in the hands of the connection or acknowledged. */
  ahead: Set<number>;
  /** The newest of them that may have been sent. */
  aheadThrough: number;
  /** Acknowledged, and on the disk at the next save (outbox.ts): how many, and the last of those without a gap. */
  unsaved: Waiting & { through: number };
  connectedSince: number | null;
  /** Why the last connection ended; until an event is taken, for a connection alone shows nothing of that. */
  lastError: string | null;
}

/** What a sink is to keep, from the configuration. */
export interface SinkBounds {
  name: string;
  /** Milliseconds. */
  maxAge: number;
  maxBytes: number;
}

/** What waits for a sink, and what never reached it. */
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
  /** How long an outage that begins now, or goes on, may last before the first event is dropped; null: nothing is recorded. */
  autonomyMs: number | null;
  /** Epoch milliseconds; null while there is no connection. */
  connectedSince: number | null;
  lastError: string | null;
}

export interface Sink {
  readonly bounds: SinkBounds;
  readonly table: SinkTable;
  readonly link: LinkState;
  /** Inside a commit job. Joins the encoder's latest gap when the two are one and that one is not sent yet. */
  gap(gap: Gap): void;
  backlog(): Backlog;
}

export interface SinkOptions {
  bounds: SinkBounds;
  table: SinkTable;
  time: Pick<KnownTime, 'now'>;
  fillRate: FillRate;
  /** Records what was not delivered, for this sink alone (events.ts); returns its seq. */
  recordGap: (gap: Gap) => number;
}

export function openSink({ bounds, table, time, fillRate, recordGap }: SinkOptions): Sink {
  const link: LinkState = {
    heldThrough: 0,
    sentThrough: Math.min(table.cursor().sent, table.newest()),
    ahead: new Set(),
    aheadThrough: 0,
    unsaved: { events: 0, bytes: 0, through: 0 },
    connectedSince: null,
    lastError: null,
  };
  /** Events that gaps stand for, since this start; once more where a commit has to be repeated. */
  let dropped = 0;

  /** Takes back the encoder's latest gap if `gap` continues it and it cannot have been seen; returns where it began. */
  function takeBack({ encoderId, first, reason }: Gap): number | undefined {
    const latest = table.latestGap(
      encoderId,
      Math.max(link.heldThrough, link.sentThrough, link.aheadThrough),
    );
    if (latest?.last !== first - 1 || link.ahead.has(latest.seq) || latest.reason !== reason)
      return undefined;
    table.countAll();
    table.countDown(table.between(latest.seq - 1, latest.seq));
    table.removeGap(latest.seq);
    return latest.first;
  }

  return {
    bounds,
    table,
    link,
    gap(gap) {
      const whole = { ...gap, first: takeBack(gap) ?? gap.first };
      if (table.hasGap(whole)) return;
      dropped += gap.last - gap.first + 1;
      table.insertGap(recordGap(whole), whole, time.now());
    },
    backlog() {
      const waiting = table.waiting();
      const { events, bytes, through } = link.unsaved;
      const [oldest] = table.page(Math.max(table.cursor().acked, through), 1);
      const waitingBytes = waiting.bytes - bytes;
      const oldestAgeMs = oldest ? Math.max(0, time.now() - oldest.recordedAt) : null;
      return {
        waiting: waiting.events - events,
        waitingBytes,
        oldestAgeMs,
        autonomyMs: autonomy(bounds, { waitingBytes, oldestAgeMs }, fillRate.bytesPerSecond()),
        ...table.recordCounts(),
        dropped,
        connectedSince: link.connectedSince,
        lastError: link.lastError,
      };
    },
  };
}

/** Until the bytes that may wait are full, or the oldest event that waits is too old, whatever comes first. */
function autonomy(
  { maxAge, maxBytes }: SinkBounds,
  { waitingBytes, oldestAgeMs }: { waitingBytes: number; oldestAgeMs: number | null },
  bytesPerSecond: number,
): number | null {
  if (bytesPerSecond === 0 && oldestAgeMs === null) return null;
  const untilFull = bytesPerSecond === 0 ? maxAge : ((maxBytes - waitingBytes) / bytesPerSecond) * 1_000;
  return Math.max(0, Math.min(untilFull, maxAge - (oldestAgeMs ?? 0)));
}
