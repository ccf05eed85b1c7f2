/**
 * Keeps the log of events within its bounds: what waits for a sink for too long or is too much is dropped for that sink,
 * oldest first, and named in a gap record; what is forwarded, and what live readers see, stays for a while. In small batches, so that the
 * disk is shared with those at the desk.
 */
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import type { Gap, GapReason } from './cloud-event.ts';
import type { Sink } from './sink.ts';
import type { EventHead, EventTable } from './table.ts';

const DAY_MS = 86_400_000;
/** A burst may exceed the bounds for this long. */
export const KEEP_INTERVAL_MS = 10_000;
const HOUR_MS = 3_600_000;
/** Less than this before the first event is dropped: time for a person to act. */
const AUTONOMY_LOW_MS = 24 * HOUR_MS;
/** Rows of one transaction: a few milliseconds. */
const BATCH_ROWS = 500;
/** For live readers: one that was away over a long weekend misses nothing. */
const LIVE_AGE_MS = 7 * DAY_MS;
/** About 70 MB. */
const LIVE_ROWS = 100_000;
/** Dead letters and gap records are for the operator, who may come once a quarter. */
const RECORD_AGE_MS = 180 * DAY_MS;
const RECORD_ROWS = 10_000;

export interface Retention {
  keep(signal: AbortSignal): Promise<never>;
}

export interface RetentionOptions {
  database: Database;
  table: EventTable;
  sinks: readonly Sink[];
  clock: Clock;
  time: Pick<KnownTime, 'now' | 'synchronised'>;
  log: Log;
  wake: () => void;
}

export function openRetention(options: RetentionOptions): Retention {
  const { database, table, sinks, clock, time, log, wake } = options;
  const warnOfDrops = openWarning(log);
  return {
    async keep(signal) {
      for (;;) {
        await clock.sleep(KEEP_INTERVAL_MS, signal);
        for (const sink of sinks) {
          warnOfDrops(sink);
          const dropped = await inBatches(database, signal, () => dropBatch(sink, options));
          if (dropped === 0) continue;
          const { name } = sink.bounds;
          log.warn({ sink: name, dropped }, `${dropped} events were dropped before ${name} could get them`);
          wake();
        }
        // A clock that is not synchronised may be years ahead; then only the counts bound the log.
        const now = time.synchronised() ? time.now() : 0;
        await inBatches(database, signal, () => pruneLive(table, now - LIVE_AGE_MS));
        await inBatches(database, signal, () => pruneForwarded(options));
        for (const sink of sinks)
          await database.commit(() =>
            sink.table.pruneRecords(sink.table.cursor().acked, now - RECORD_AGE_MS, RECORD_ROWS, BATCH_ROWS),
          );
      }
    },
  };
}

/** Says once in an outage that the first events will soon be dropped, while there is time to act. */
function openWarning(log: Log): (sink: Sink) => void {
  const warned = new Set<Sink>();
  return (sink) => {
    const { waiting, autonomyMs } = sink.backlog();
    if (waiting === 0) warned.delete(sink);
    if (waiting === 0 || autonomyMs === null || autonomyMs >= AUTONOMY_LOW_MS || warned.has(sink)) return;
    warned.add(sink);
    const { name } = sink.bounds;
    const hours = Math.floor(autonomyMs / HOUR_MS);
    log.warn(
      { sink: name, waiting, autonomyMs },
      `${waiting} events wait for ${name}; the first is dropped in ${hours} hours: bring the service back, or raise maxAge or maxBytes`,
    );
  };
}

async function inBatches(database: Database, signal: AbortSignal, batch: () => number): Promise<number> {
  let total = 0;
  for (;;) {
    signal.throwIfAborted();
    const done = await database.commit(batch);
    if (done === 0) return total;
    total += done;
  }
}

/** Drops what is too old, else what is too much; returns how many. What a connection holds may arrive: it stays. */
function dropBatch(sink: Sink, { table: log, time }: RetentionOptions): number {
  const { table, link, bounds } = sink;
  const { maxAge, maxBytes } = bounds;
  const { acked } = table.cursor();
  const after = Math.max(acked, link.heldThrough);
  const oldest = table.droppable(after, BATCH_ROWS).filter(({ seq }) => !link.ahead.has(seq));
  const old = time.synchronised() ? tooOld(oldest, time.now() - maxAge) : 0;
  const [count, reason]: [number, GapReason] =
    old > 0 ? [old, 'AGE'] : [tooMany(oldest, table.waiting().bytes - maxBytes), 'SIZE'];
  const dropped = oldest.slice(0, count);
  if (dropped.length === 0) return 0;
  table.countAll();
  table.countDown({
    events: dropped.length,
    bytes: dropped.reduce((sum, { bytes }) => sum + bytes, 0),
  });
  for (const { seq } of dropped)
    if (table.isNeededElsewhere(seq)) table.addAhead(seq);
    else log.drop(seq);
  for (const gap of ranges(dropped, reason)) sink.gap(gap);
  return dropped.length;
}

/** How many from the beginning are recorded before `cutoff`; those of an untrusted clock go with trusted ones behind them. */
function tooOld(oldest: EventHead[], cutoff: number): number {
  return oldest.findLastIndex((head) => head.clockSynchronised === 1 && head.recordedAt < cutoff) + 1;
}

/** How many from the beginning hold at least `excess` bytes. */
function tooMany(oldest: EventHead[], excess: number): number {
  let left = excess;
  let count = 0;
  for (const { bytes } of oldest) {
    if (left <= 0) break;
    left -= bytes;
    count += 1;
  }
  return count;
}

/** The sequence numbers, per encoder, without those in between that were not dropped. */
function ranges(dropped: EventHead[], reason: GapReason): Gap[] {
  const gaps: Gap[] = [];
  const open = new Map<string, Gap>();
  for (const { encoderId, sequence } of dropped) {
    if (sequence === null) continue;
    const current = open.get(encoderId);
    if (current?.last === sequence - 1) {
      current.last = sequence;
    } else {
      const gap = { encoderId, first: sequence, last: sequence, reason };
      open.set(encoderId, gap);
      gaps.push(gap);
    }
  }
  return gaps;
}

/** What every sink has and live readers no longer see. */
function pruneForwarded({ table, sinks }: RetentionOptions): number {
  const acked = sinks.map((sink) => sink.table.cursor().acked);
  return table.pruneEvents(Math.min(...acked, table.liveFrom()), BATCH_ROWS);
}

/** Returns how many live readers do not find any more. */
function pruneLive(table: EventTable, before: number): number {
  const floor = table.newestLive() - LIVE_ROWS;
  const oldest = table.oldestLive(BATCH_ROWS);
  const kept = oldest.findIndex(({ seq, recordedAt }) => seq > floor && recordedAt >= before);
  const gone = kept === -1 ? oldest.length : kept;
  const last = oldest[gone - 1];
  if (last) table.pruneLive(last.seq);
  return gone;
}
