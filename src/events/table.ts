/** The SQL of the event log. What changes rows runs inside a commit job of the caller. */
import type { Prepare } from '../database/database.ts';
import type { EncodedEvent, Gap } from './cloud-event.ts';

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

export interface Cursor {
  acked: number;
  sent: number;
  waiting: number;
  waitingBytes: number;
  suspect: number;
  suspectFailures: number;
  buriedInARow: number;
}

export interface GapRow {
  seq: number;
  first: number;
  last: number;
  reason: string;
}

export type EventTable = ReturnType<typeof openEventTable>;

const HEAD = `seq, encoder_id AS encoderId, sequence, recorded_at AS recordedAt,
  clock_synchronised AS clockSynchronised, bytes`;
const NOT_DEAD = 'NOT EXISTS (SELECT 1 FROM dead_letter WHERE dead_letter.seq = event.seq)';
/** Of those beyond the cursor. */
const WAITS = `${NOT_DEAD} AND NOT EXISTS (SELECT 1 FROM forward_ahead WHERE forward_ahead.seq = event.seq)`;

export function openEventTable(database: Prepare) {
  return { ...openLog(database), ...openLive(database), ...openCursor(database), ...openRecords(database) };
}

function openLog(database: Prepare) {
  const exists = database.prepare<[string], { seq: number }>('SELECT seq FROM event WHERE id = ?');
  const nextSequence = database.prepare<[string], { last: number }>(
    `INSERT INTO event_sequence (encoder_id, last) VALUES (?, 1)
     ON CONFLICT (encoder_id) DO UPDATE SET last = last + 1 RETURNING last`,
  );
  const insert = database.prepare<
    [string, string, string, string, number | null, number, number, number, string]
  >(
    `INSERT INTO event (id, topic, type, encoder_id, sequence, recorded_at, clock_synchronised, bytes, body)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const page = database.prepare<[number, number], EventRow>(
    `SELECT ${HEAD}, id, topic, body FROM event WHERE seq > ? AND ${WAITS} ORDER BY seq LIMIT ?`,
  );
  const delivered = database.prepare<[number], EventRow>(
    `SELECT ${HEAD}, id, topic, body FROM event WHERE seq <= ? AND ${NOT_DEAD} ORDER BY seq DESC LIMIT 1`,
  );
  const droppable = database.prepare<[number, number], EventHead>(
    `SELECT ${HEAD} FROM event WHERE seq > ? AND sequence IS NOT NULL AND ${WAITS} ORDER BY seq LIMIT ?`,
  );
  const pageOf = database.prepare<[string, number, number], EventRow>(
    `SELECT ${HEAD}, id, topic, body FROM event WHERE encoder_id = ? AND seq > ? AND ${WAITS} ORDER BY seq LIMIT ?`,
  );
  const newcomers = database.prepare<[number, number], { seq: number; encoderId: string }>(
    'SELECT seq, encoder_id AS encoderId FROM event WHERE seq > ? ORDER BY seq LIMIT ?',
  );
  const drop = database.prepare<[number]>('DELETE FROM event WHERE seq = ?');
  const forwarded = database.prepare<[number, number], EventHead>(
    `SELECT ${HEAD} FROM event WHERE seq <= ? ORDER BY seq LIMIT ?`,
  );
  const prune = database.prepare<[number]>('DELETE FROM event WHERE seq <= ?');
  const newest = database.prepare<[], { seq: number | null }>('SELECT max(seq) AS seq FROM event');
  return {
    /** Whether an event of this id is in the log. */
    has: (id: string) => exists.get(id) !== undefined,
    /** Counts an event of the encoder; from 1. */
    nextSequence: (encoderId: string) => nextSequence.get(encoderId)?.last ?? 1,
    /** Returns the seq. */
    insert({ id, topic, type, body }: EncodedEvent, row: Omit<EventHead, 'seq'>): number {
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
      ] as const;
      return insert.run(...values).lastInsertRowid;
    },
    /** The next events to send after `seq`, in order. */
    page: (seq: number, limit: number) => page.all(seq, limit),
    /** The newest event up to `acked` that is no dead letter. */
    delivered: (acked: number) => delivered.get(acked),
    /** The oldest events after `seq` that may be dropped. */
    droppable: (seq: number, limit: number) => droppable.all(seq, limit),
    drop: (seq: number) => drop.run(seq).changes,
    /** The next events to send of one encoder, after `seq`, in order. */
    pageOf: (encoderId: string, seq: number, limit: number) => pageOf.all(encoderId, seq, limit),
    /** Whose events were recorded after `seq`, in order. */
    newcomers: (seq: number, limit: number) => newcomers.all(seq, limit),
    /** The oldest events up to `seq`. */
    forwarded: (seq: number, limit: number) => forwarded.all(seq, limit),
    pruneEvents: (through: number) => prune.run(through).changes,
    newest: () => newest.get()?.seq ?? 0,
  };
}

function openLive(database: Prepare) {
  const insert = database.prepare<[string, number, string]>(
    'INSERT INTO live_event (type, recorded_at, body) VALUES (?, ?, ?)',
  );
  const page = database.prepare<[number, number], LiveRow>(
    'SELECT seq, type, body FROM live_event WHERE seq > ? ORDER BY seq LIMIT ?',
  );
  const oldest = database.prepare<[], { seq: number | null }>('SELECT min(seq) AS seq FROM live_event');
  // The counter of AUTOINCREMENT, which stays when the rows are pruned.
  const newest = database.prepare<[], { seq: number }>(
    "SELECT seq FROM sqlite_sequence WHERE name = 'live_event'",
  );
  const heads = database.prepare<[number], { seq: number; recordedAt: number }>(
    'SELECT seq, recorded_at AS recordedAt FROM live_event ORDER BY seq LIMIT ?',
  );
  const prune = database.prepare<[number]>('DELETE FROM live_event WHERE seq <= ?');
  const databaseId = database.prepare<[], { id: string }>('SELECT database_id AS id FROM system');
  const newestLive = () => newest.get()?.seq ?? 0;
  return {
    insertLive: (type: string, recordedAt: number, body: string) => insert.run(type, recordedAt, body),
    /** What follows `seq`, in order, without holes. */
    livePage: (seq: number, limit: number) => page.all(seq, limit),
    newestLive,
    /** Everything after it is there; equal to newestLive() when nothing is. */
    liveFrom: () => (oldest.get()?.seq ?? newestLive() + 1) - 1,
    oldestLive: (limit: number) => heads.all(limit),
    pruneLive: (through: number) => prune.run(through).changes,
    databaseId: () => databaseId.get()?.id ?? '',
  };
}

function openCursor(database: Prepare) {
  const cursor = database.prepare<[], Cursor>(
    `SELECT acked_seq AS acked, sent_seq AS sent, waiting, waiting_bytes AS waitingBytes, suspect_seq AS suspect,
       suspect_failures AS suspectFailures, buried_in_a_row AS buriedInARow FROM forward_cursor`,
  );
  const count = database.prepare<[number, number]>(
    'UPDATE forward_cursor SET waiting = waiting + ?, waiting_bytes = waiting_bytes + ?',
  );
  const between = database.prepare<[number, number], { events: number; bytes: number }>(
    `SELECT count(*) AS events, coalesce(sum(bytes), 0) AS bytes FROM event
     WHERE seq > ? AND seq <= ? AND ${WAITS}`,
  );
  const advance = database.prepare<[number]>('UPDATE forward_cursor SET acked_seq = ?');
  const addAhead = database.prepare<[number]>(
    'INSERT INTO forward_ahead (seq) VALUES (?) ON CONFLICT DO NOTHING',
  );
  const pruneAhead = database.prepare<[number]>('DELETE FROM forward_ahead WHERE seq <= ?');
  const sent = database.prepare<[number]>('UPDATE forward_cursor SET sent_seq = ?');
  const suspect = database.prepare<[number, number]>(
    'UPDATE forward_cursor SET suspect_seq = ?, suspect_failures = ?',
  );
  const buried = database.prepare<[number]>('UPDATE forward_cursor SET buried_in_a_row = ?');
  return {
    cursor(): Cursor {
      const row = cursor.get();
      if (!row) throw new Error('the forward cursor is missing from the database');
      return row;
    },
    /** Changes what waits by so many events and bytes. */
    count: (events: number, bytes: number) => count.run(events, bytes),
    /** What waits after one seq, up to another. */
    between: (after: number, through: number) => between.get(after, through) ?? { events: 0, bytes: 0 },
    setAcked(seq: number): void {
      advance.run(seq);
      pruneAhead.run(seq);
    },
    /** Notes that an event beyond the cursor is acknowledged; false when that is known. */
    addAhead: (seq: number) => addAhead.run(seq).changes > 0,
    setSent: (seq: number) => sent.run(seq),
    setSuspect: (seq: number, failures: number) => suspect.run(seq, failures),
    setBuriedInARow: (count: number) => buried.run(count),
  };
}

function openRecords(database: Prepare) {
  const bury = database.prepare<[string, number, number]>(
    `INSERT INTO dead_letter (seq, id, topic, body, reason, dead_at)
     SELECT seq, id, topic, body, ?, ? FROM event WHERE seq = ? ON CONFLICT DO NOTHING`,
  );
  const latestGap = database.prepare<[string, number], GapRow>(
    `SELECT seq, first_sequence AS first, last_sequence AS last, reason FROM gap
     WHERE encoder_id = ? AND seq > ? ORDER BY seq DESC LIMIT 1`,
  );
  const insertGap = database.prepare<[number, string, number, number, string, number]>(
    `INSERT INTO gap (seq, encoder_id, first_sequence, last_sequence, reason, recorded_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
  );
  const removeGap = database.prepare<[number]>('DELETE FROM gap WHERE seq = ?');
  const removeEvent = database.prepare<[number]>('DELETE FROM event WHERE seq = ?');
  const counts = database.prepare<[], { deadLetters: number; gaps: number }>(
    'SELECT (SELECT count(*) FROM dead_letter) AS deadLetters, (SELECT count(*) FROM gap) AS gaps',
  );
  const oldLetters = database.prepare<[number, number, number, number]>(oldRecords('dead_letter', 'dead_at'));
  const oldGaps = database.prepare<[number, number, number, number]>(oldRecords('gap', 'recorded_at'));
  return {
    /** Copies an event to the dead letters; it is not sent again. */
    bury: (seq: number, reason: string, at: number) => bury.run(reason, at, seq).changes,
    /** The encoder's newest gap after `seq`. */
    latestGap: (encoderId: string, seq: number) => latestGap.get(encoderId, seq),
    insertGap: (seq: number, { encoderId, first, last, reason }: Gap, at: number) =>
      insertGap.run(seq, encoderId, first, last, reason, at),
    /** Removes a gap and the event that tells it. */
    removeGap(seq: number): void {
      removeGap.run(seq);
      removeEvent.run(seq);
    },
    recordCounts: () => counts.get() ?? { deadLetters: 0, gaps: 0 },
    /** Removes records of forwarded events that are older than `before` or beyond the newest `kept`. */
    pruneRecords(acked: number, before: number, kept: number, limit: number): void {
      oldLetters.run(acked, before, kept, limit);
      oldGaps.run(acked, before, kept, limit);
    },
  };
}

function oldRecords(table: string, time: string): string {
  return `DELETE FROM ${table} WHERE seq IN (SELECT seq FROM ${table} WHERE seq <= ? AND (${time} < ?
    OR seq <= (SELECT seq FROM ${table} ORDER BY seq DESC LIMIT 1 OFFSET ?)) ORDER BY seq LIMIT ?)`;
}
