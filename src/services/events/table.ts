/** The SQL of the event log. What changes rows runs inside a commit job of the caller. */
import type { Prepare } from '../../platform/database/database.ts';
import type { EncodedEvent, Gap } from './cloud-event.ts';

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
  lastError: string | null;
}

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

/** How much waits to be sent. */
export interface Waiting {
  events: number;
  bytes: number;
}

/** What a bound needs to know of an event. */
export type EventHead = Pick<
  EventRow,
  'seq' | 'encoderId' | 'sequence' | 'recordedAt' | 'clockSynchronised' | 'bytes'
>;

export interface Cursor {
  acked: number;
  sent: number;
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

/** Events that are counted at once: a look at so many takes some hundred microseconds. */
const COUNTED_TOGETHER = 256;

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
  return { ...openLog(database), ...openLive(database), ...openCursor(database), ...openRecords(database) };
}

function openLog(database: Prepare) {
  const newestSequence = database.prepare<[string], { sequence: number }>(
    `SELECT sequence FROM event WHERE encoder_id IN (?) AND sequence IS NOT NULL ORDER BY seq DESC LIMIT 1`,
  );
  const keptSequence = database.prepare<[string, string], { last: number | null }>(
    'SELECT max(last) AS last FROM event_sequence WHERE encoder_id IN (?, ?)',
  );
  const setFloor = database.prepare<[string, number]>(
    `INSERT INTO event_sequence (encoder_id, last) VALUES (?, ?)
     ON CONFLICT (encoder_id) DO UPDATE SET last = max(last, excluded.last)`,
  );
  const insert = database.prepare<
    [string, string, string, string, number | null, number, number, number, string]
  >(
    `INSERT INTO event (seq, id, topic, type, encoder_id, sequence, recorded_at, clock_synchronised, bytes, body)
     VALUES (${NEXT_SEQ}, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const page = database.prepare<[number, number], EventRow>(
    `SELECT ${HEAD}, id, topic, body FROM event WHERE seq > ? AND ${WAITS} ORDER BY seq LIMIT +?`,
  );
  const delivered = database.prepare<[number], EventRow>(
    `SELECT ${HEAD}, id, topic, body FROM event WHERE seq <= ? AND ${NOT_DEAD} ORDER BY seq DESC LIMIT 1`,
  );
  const droppable = database.prepare<[number, number], EventHead>(
    `SELECT ${HEAD} FROM event WHERE seq > ? AND sequence IS NOT NULL AND ${WAITS} ORDER BY seq LIMIT +?`,
  );
  const pageOf = database.prepare<[string, number, number], EventRow>(
    `SELECT ${HEAD}, id, topic, body FROM event WHERE encoder_id IN (?) AND seq > ? AND ${WAITS} ORDER BY seq LIMIT +?`,
  );
  const newcomers = database.prepare<[number, number], { seq: number; encoderId: string }>(
    'SELECT seq, encoder_id AS encoderId FROM event WHERE seq > ? ORDER BY seq LIMIT +?',
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
    /** Of the encoder's next event; from 1. */
    nextSequence(encoderId: string): number {
      const newest = newestSequence.get(encoderId)?.sequence ?? 0;
      return Math.max(newest, keptSequence.get(encoderId, EVERY_ENCODER)?.last ?? 0) + 1;
    },
    /** Every encoder goes on above it, also one that has no event yet. */
    setSequenceFloor: (last: number) => setFloor.run(EVERY_ENCODER, last),
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
    /** Live readers still find it. */
    drop(seq: number): void {
      toLive.run(seq);
      drop(seq);
    },
    /** The next events to send of one encoder, after `seq`, in order. */
    pageOf: (encoderId: string, seq: number, limit: number) => pageOf.all(encoderId, seq, limit),
    /** Whose events were recorded after `seq`, in order. */
    newcomers: (seq: number, limit: number) => newcomers.all(seq, limit),
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

function openCursor(database: Prepare) {
  const cursor = database.prepare<[], Cursor>(
    `SELECT acked_seq AS acked, sent_seq AS sent, suspect_seq AS suspect, suspect_failures AS suspectFailures,
       buried_in_a_row AS buriedInARow FROM forward_cursor`,
  );
  const between = database.prepare<[number, number], Waiting>(
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
    /** What waits after one seq, up to another. */
    between: (after: number, through: number) => between.get(after, through) ?? { events: 0, bytes: 0 },
    ...openCount(database),
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

/**
 * How much waits is stored up to `counted`, and the few events after it are looked at: a count that is written with each
 * event writes its page with each.
 */
function openCount(database: Prepare) {
  const stored = database.prepare<[], Waiting & { counted: number }>(
    'SELECT waiting AS events, waiting_bytes AS bytes, counted_seq AS counted FROM forward_cursor',
  );
  const tail = database.prepare<[number], { bytes: number }>(
    `SELECT bytes FROM event WHERE seq > ? AND ${WAITS} ORDER BY seq LIMIT ${COUNTED_TOGETHER}`,
  );
  const newest = database.prepare<[], { seq: number | null }>('SELECT max(seq) AS seq FROM event');
  const change = database.prepare<[number, number]>(
    'UPDATE forward_cursor SET waiting = waiting + ?, waiting_bytes = waiting_bytes + ?',
  );
  const setCounted = database.prepare<[number]>('UPDATE forward_cursor SET counted_seq = ?');

  const countedThrough = () => stored.get()?.counted ?? 0;
  function uncounted(): Waiting {
    const rows = tail.all(countedThrough());
    return { events: rows.length, bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0) };
  }
  function countAll(): void {
    const seq = newest.get()?.seq ?? 0;
    if (seq <= countedThrough()) return;
    const { events, bytes } = uncounted();
    change.run(events, bytes);
    setCounted.run(seq);
  }
  return {
    waiting(): Waiting {
      const { events, bytes } = stored.get() ?? { events: 0, bytes: 0 };
      const more = uncounted();
      return { events: events + more.events, bytes: bytes + more.bytes };
    },
    /** After the event `seq` was recorded. */
    countUp(seq: number): void {
      if (seq - countedThrough() >= COUNTED_TOGETHER) countAll();
    },
    /** Before any event is sent, dropped or given up in the same job. */
    countAll,
    /** So much waits no longer. */
    countDown: ({ events, bytes }: Waiting) => change.run(-events, -bytes),
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
  const sameGap = database.prepare<[string, number, number, string], { seq: number }>(
    `SELECT seq FROM gap WHERE encoder_id = ? AND first_sequence = ? AND last_sequence = ? AND reason = ?`,
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
    hasGap: ({ encoderId, first, last, reason }: Gap) =>
      sameGap.get(encoderId, first, last, reason) !== undefined,
    /** Removes a gap and the event that reports it. */
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
