/** The SQL of the event log; that of each sink is in sink-table.ts. What changes rows runs inside a commit job of the caller. */
import type { Prepare } from '../../platform/database/database.ts';
import type { EncodedEvent } from './cloud-event.ts';

/** An event as it waits to be sent. */
export interface EventRow {
  seq: number;
  id: string;
  topic: string;
  encoderId: string;
  /** NULL: a gap record. */
  sequence: number | null;
  /** Epoch milliseconds. */
  recordedAt: number;
  /** 0 or 1. */
  clockSynchronised: number;
  bytes: number;
  body: string;
}

/** An event as live readers get it. */
export interface LiveRow {
  seq: number;
  type: string;
  body: string;
}

/** What a bound needs to know of an event. */
export type EventHead = Pick<
  EventRow,
  'seq' | 'encoderId' | 'sequence' | 'recordedAt' | 'clockSynchronised' | 'bytes'
>;

export type EventTable = ReturnType<typeof openEventTable>;

/** No encoder's id: the row of `event_sequence` that counts for all, made by a restore. */
const EVERY_ENCODER = '';

/** One sequence for both tables of the log. */
const NEXT_SEQ = "(SELECT max(seq) + 1 FROM sqlite_sequence WHERE name IN ('event', 'live_event'))";

/** What live readers find after a seq. The second parameter: the same, or where the two tables began to be one log. */
const liveOf = (columns: string) =>
  `SELECT ${columns} FROM live_event WHERE seq > ?
   UNION ALL SELECT ${columns} FROM event WHERE seq > ? AND sequence IS NOT NULL
   ORDER BY seq LIMIT +?`;

export function openEventTable(database: Prepare) {
  return { ...openLog(database), ...openLive(database) };
}

function openLog(database: Prepare) {
  const newestSequence = database.prepare<[string], { sequence: number }>(
    `SELECT sequence FROM event WHERE encoder_id IN (?) AND sequence IS NOT NULL ORDER BY seq DESC LIMIT 1`,
  );
  const keptSequence = database.prepare<[string], { last: number }>(
    'SELECT last FROM event_sequence WHERE encoder_id = ?',
  );
  const setFloor = database.prepare<[string, number]>(
    `INSERT INTO event_sequence (encoder_id, last) VALUES (?, ?)
     ON CONFLICT (encoder_id) DO UPDATE SET last = max(last, excluded.last)`,
  );
  const insert = database.prepare<
    [string, string, string, string, number | null, number, number, number, string, number | null]
  >(
    `INSERT INTO event (seq, id, topic, type, encoder_id, sequence, recorded_at, clock_synchronised, bytes, body, sink)
     VALUES (${NEXT_SEQ}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const drop = openRemoval(database, 'seq = ?');
  const toLive = database.prepare<[number]>(
    `INSERT INTO live_event (seq, type, recorded_at, body) SELECT seq, type, recorded_at, body FROM event
     WHERE seq = ? AND seq > (SELECT max(kept_after, joined_at) FROM live_cursor)`,
  );
  const oldest = database.prepare<[number, number], { seq: number }>(
    'SELECT seq FROM event WHERE seq <= ? ORDER BY seq LIMIT +?',
  );
  const prune = openRemoval(database, 'seq <= ?');
  const newest = database.prepare<[], { seq: number | null }>('SELECT max(seq) AS seq FROM event');
  return {
    /** Of the encoder's next event; `from`: where all encoders have begun to count, or have gone on after a restore. */
    nextSequence(encoderId: string): { sequence: number; from: number } {
      const newest = newestSequence.get(encoderId)?.sequence ?? 0;
      const kept = keptSequence.get(encoderId)?.last ?? 0;
      const floor = keptSequence.get(EVERY_ENCODER)?.last ?? 0;
      return { sequence: Math.max(newest, kept, floor) + 1, from: floor + 1 };
    },
    /** Every encoder goes on above it, also one that has no event yet. */
    setSequenceFloor: (last: number) => setFloor.run(EVERY_ENCODER, last),
    /** Returns the seq. `sink`: the only one that gets it, or null: all get it. */
    insert(
      { id, topic, type, body }: EncodedEvent,
      row: Omit<EventHead, 'seq'>,
      sink: number | null,
    ): number {
      const { encoderId, sequence, recordedAt, clockSynchronised, bytes } = row;
      const values = [
        id,
        topic,
        type,
        encoderId,
        sequence,
        recordedAt,
        clockSynchronised,
        bytes,
        body,
        sink,
      ] as const;
      return insert.run(...values).lastInsertRowid;
    },
    /** Removes an event that no sink waits for; live readers still find it. */
    drop(seq: number): void {
      toLive.run(seq);
      drop(seq);
    },
    /** Removes the oldest events up to `through`, so many at most; returns how many. */
    pruneEvents(through: number, limit: number): number {
      const last = oldest.all(through, limit).at(-1);
      return last ? prune(last.seq) : 0;
    },
    newest: () => newest.get()?.seq ?? 0,
  };
}

/** Removes events; their encoders' sequences go on all the same. */
function openRemoval(database: Prepare, which: string): (seq: number) => number {
  const keep = database.prepare<[number]>(
    `INSERT INTO event_sequence (encoder_id, last)
       SELECT encoder_id, max(sequence) FROM event WHERE ${which} AND sequence IS NOT NULL GROUP BY encoder_id
     ON CONFLICT (encoder_id) DO UPDATE SET last = max(last, excluded.last)`,
  );
  const remove = database.prepare<[number]>(`DELETE FROM event WHERE ${which}`);
  return (seq) => {
    keep.run(seq);
    return remove.run(seq).changes;
  };
}

function openLive(database: Prepare) {
  const insert = database.prepare<[string, number, string]>(
    `INSERT INTO live_event (seq, type, recorded_at, body) VALUES (${NEXT_SEQ}, ?, ?, ?)`,
  );
  const page = database.prepare<[number, number, number], LiveRow>(liveOf('seq, type, body'));
  const heads = database.prepare<[number, number, number], { seq: number; recordedAt: number }>(
    liveOf('seq, recorded_at AS recordedAt'),
  );
  // The counters of AUTOINCREMENT, which stay when the rows are pruned.
  const newest = database.prepare<[], { seq: number | null }>(
    "SELECT max(seq) AS seq FROM sqlite_sequence WHERE name IN ('event', 'live_event')",
  );
  const cursor = database.prepare<[], { keptAfter: number; joinedAt: number }>(
    'SELECT kept_after AS keptAfter, joined_at AS joinedAt FROM live_cursor',
  );
  const keepAfter = database.prepare<[number]>('UPDATE live_cursor SET kept_after = ?');
  const prune = database.prepare<[number]>('DELETE FROM live_event WHERE seq <= ?');
  const joinedAt = cursor.get()?.joinedAt ?? 0;
  const databaseId = database.prepare<[], { id: string }>('SELECT database_id AS id FROM system');
  const newestLive = () => newest.get()?.seq ?? 0;
  return {
    insertLive: (type: string, recordedAt: number, body: string) => insert.run(type, recordedAt, body),
    /** What follows `seq`, in order; everything, when that is not before liveFrom(). */
    livePage: (seq: number, limit: number) => page.all(seq, Math.max(seq, joinedAt), limit),
    newestLive,
    /** Everything after it is there. */
    liveFrom: () => cursor.get()?.keptAfter ?? 0,
    oldestLive(limit: number) {
      const after = cursor.get()?.keptAfter ?? 0;
      return heads.all(after, Math.max(after, joinedAt), limit);
    },
    /** What is forwarded, too, stays in the log of events until that is pruned. */
    pruneLive(through: number): void {
      keepAfter.run(through);
      prune.run(through);
    },
    databaseId: () => databaseId.get()?.id ?? '',
  };
}
