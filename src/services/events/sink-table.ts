/**
 * The SQL of one sink: what waits for it in the log of events, how far it got, and what it never got. What changes rows runs
 * inside a commit job of the caller.
 */
import type { Prepare } from '../../platform/database/database.ts';
import type { Gap } from './cloud-event.ts';
import type { EventHead, EventRow } from './table.ts';

/** How much waits to be sent. */
export interface Waiting {
  events: number;
  bytes: number;
}

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

export type SinkTable = ReturnType<typeof openSinkTable>;

const HEAD = `seq, encoder_id AS encoderId, sequence, recorded_at AS recordedAt,
  clock_synchronised AS clockSynchronised, bytes`;

/** Events that are counted at once: a look at so many takes some hundred microseconds. */
const COUNTED_TOGETHER = 256;

/** Conditions on `event`; the number of the sink is part of the text. */
function conditions(sink: number) {
  const isDead = `EXISTS (SELECT 1 FROM dead_letter WHERE dead_letter.sink = ${sink} AND dead_letter.seq = event.seq)`;
  const isAhead = `EXISTS (SELECT 1 FROM sink_ahead WHERE sink_ahead.sink = ${sink} AND sink_ahead.seq = event.seq)`;
  const notDead = `(event.sink IS NULL OR event.sink = ${sink}) AND NOT ${isDead}`;
  /** Of those beyond the cursor. */
  return { notDead, waits: `${notDead} AND NOT ${isAhead}` };
}

/** The numbers of the sinks by their names. */
export function openSinkNames(database: Prepare) {
  const all = database.prepare<[], { id: number; name: string; isUsed: number }>(
    'SELECT id, name, acked_seq + sent_seq + waiting > 0 AS isUsed FROM sink',
  );
  const insert = database.prepare<[string]>(
    `INSERT INTO sink (name, counted_seq, waiting, waiting_bytes)
     SELECT ?, coalesce(max(seq), 0), count(*), coalesce(sum(bytes), 0) FROM event WHERE sink IS NULL`,
  );
  const removals = [
    'DELETE FROM sink_ahead WHERE sink = ?',
    'DELETE FROM dead_letter WHERE sink = ?',
    'DELETE FROM gap WHERE sink = ?',
    'DELETE FROM event WHERE sink = ?',
    'DELETE FROM sink WHERE id = ?',
  ].map((sql) => database.prepare<[number]>(sql));
  return {
    all: () => all.all(),
    /** It begins at the oldest event that is kept. Returns its number. */
    add: (name: string) => insert.run(name).lastInsertRowid,
    /** With its cursor, its dead letters and its gap records. */
    remove(id: number): void {
      for (const removal of removals) removal.run(id);
    },
  };
}

export function openSinkTable(database: Prepare, sink: number) {
  return {
    ...openReads(database, sink),
    ...openCursor(database, sink),
    ...openCount(database, sink),
    ...openRecords(database, sink),
  };
}

function openReads(database: Prepare, sink: number) {
  const { waits, notDead } = conditions(sink);
  const page = database.prepare<[number, number], EventRow>(
    `SELECT ${HEAD}, id, topic, body FROM event WHERE seq > ? AND ${waits} ORDER BY seq LIMIT +?`,
  );
  const delivered = database.prepare<[number], EventRow>(
    `SELECT ${HEAD}, id, topic, body FROM event WHERE seq <= ? AND ${notDead} ORDER BY seq DESC LIMIT 1`,
  );
  const droppable = database.prepare<[number, number], EventHead>(
    `SELECT ${HEAD} FROM event WHERE seq > ? AND sequence IS NOT NULL AND ${waits} ORDER BY seq LIMIT +?`,
  );
  const pageOf = database.prepare<[string, number, number], EventRow>(
    `SELECT ${HEAD}, id, topic, body FROM event WHERE encoder_id IN (?) AND seq > ? AND ${waits} ORDER BY seq LIMIT +?`,
  );
  const newcomers = database.prepare<[number, number], { seq: number; encoderId: string }>(
    'SELECT seq, encoder_id AS encoderId FROM event WHERE seq > ? ORDER BY seq LIMIT +?',
  );
  const newest = database.prepare<[], { seq: number | null }>('SELECT max(seq) AS seq FROM event');
  return {
    /** The next events to send after `seq`, in order. */
    page: (seq: number, limit: number) => page.all(seq, limit),
    /** The newest event up to `acked` that is no dead letter. */
    delivered: (acked: number) => delivered.get(acked),
    /** The oldest events after `seq` that may be dropped. */
    droppable: (seq: number, limit: number) => droppable.all(seq, limit),
    /** The next events to send of one encoder, after `seq`, in order. */
    pageOf: (encoderId: string, seq: number, limit: number) => pageOf.all(encoderId, seq, limit),
    /** Whose events were recorded after `seq`, in order. */
    newcomers: (seq: number, limit: number) => newcomers.all(seq, limit),
    newest: () => newest.get()?.seq ?? 0,
  };
}

function openCursor(database: Prepare, sink: number) {
  const { waits } = conditions(sink);
  const cursor = database.prepare<[], Cursor>(
    `SELECT acked_seq AS acked, sent_seq AS sent, suspect_seq AS suspect, suspect_failures AS suspectFailures,
       buried_in_a_row AS buriedInARow FROM sink WHERE id = ${sink}`,
  );
  const between = database.prepare<[number, number], Waiting>(
    `SELECT count(*) AS events, coalesce(sum(bytes), 0) AS bytes FROM event
     WHERE seq > ? AND seq <= ? AND ${waits}`,
  );
  const advance = database.prepare<[number]>(`UPDATE sink SET acked_seq = ? WHERE id = ${sink}`);
  const addAhead = database.prepare<[number]>(
    `INSERT INTO sink_ahead (sink, seq) VALUES (${sink}, ?) ON CONFLICT DO NOTHING`,
  );
  const pruneAhead = database.prepare<[number]>(`DELETE FROM sink_ahead WHERE sink = ${sink} AND seq <= ?`);
  const elsewhere = database.prepare<[number, number], { needed: number }>(
    `SELECT EXISTS (SELECT 1 FROM sink WHERE id <> ${sink} AND acked_seq < ? AND NOT EXISTS
       (SELECT 1 FROM sink_ahead WHERE sink_ahead.sink = sink.id AND seq = ?)) AS needed`,
  );
  const sent = database.prepare<[number]>(`UPDATE sink SET sent_seq = ? WHERE id = ${sink}`);
  const suspect = database.prepare<[number, number]>(
    `UPDATE sink SET suspect_seq = ?, suspect_failures = ? WHERE id = ${sink}`,
  );
  const buried = database.prepare<[number]>(`UPDATE sink SET buried_in_a_row = ? WHERE id = ${sink}`);
  return {
    cursor(): Cursor {
      const row = cursor.get();
      if (!row) throw new Error('the cursor of a sink is missing from the database');
      return row;
    },
    /** What waits after one seq, up to another. */
    between: (after: number, through: number) => between.get(after, through) ?? { events: 0, bytes: 0 },
    setAcked(seq: number): void {
      advance.run(seq);
      pruneAhead.run(seq);
    },
    /** Whether an event waits for another sink. */
    isNeededElsewhere: (seq: number) => elsewhere.get(seq, seq)?.needed === 1,
    /** Notes that an event beyond the cursor is not to be sent any more; false when that is known. */
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
function openCount(database: Prepare, sink: number) {
  const { waits } = conditions(sink);
  const stored = database.prepare<[], Waiting & { counted: number }>(
    `SELECT waiting AS events, waiting_bytes AS bytes, counted_seq AS counted FROM sink WHERE id = ${sink}`,
  );
  const tail = database.prepare<[number], { bytes: number }>(
    `SELECT bytes FROM event WHERE seq > ? AND ${waits} ORDER BY seq LIMIT ${COUNTED_TOGETHER}`,
  );
  const newest = database.prepare<[], { seq: number | null }>('SELECT max(seq) AS seq FROM event');
  const change = database.prepare<[number, number]>(
    `UPDATE sink SET waiting = waiting + ?, waiting_bytes = waiting_bytes + ? WHERE id = ${sink}`,
  );
  const setCounted = database.prepare<[number]>(`UPDATE sink SET counted_seq = ? WHERE id = ${sink}`);

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

function openRecords(database: Prepare, sink: number) {
  const bury = database.prepare<[string, number, number]>(
    `INSERT INTO dead_letter (sink, seq, id, topic, body, reason, dead_at)
     SELECT ${sink}, seq, id, topic, body, ?, ? FROM event WHERE seq = ? ON CONFLICT DO NOTHING`,
  );
  const latestGap = database.prepare<[string, number], GapRow>(
    `SELECT seq, first_sequence AS first, last_sequence AS last, reason FROM gap
     WHERE sink = ${sink} AND encoder_id = ? AND seq > ? ORDER BY seq DESC LIMIT 1`,
  );
  const insertGap = database.prepare<[number, string, number, number, string, number]>(
    `INSERT INTO gap (sink, seq, encoder_id, first_sequence, last_sequence, reason, recorded_at)
     VALUES (${sink}, ?, ?, ?, ?, ?, ?)`,
  );
  const sameGap = database.prepare<[string, number, number, string], { seq: number }>(
    `SELECT seq FROM gap WHERE sink = ${sink} AND encoder_id = ? AND first_sequence = ? AND last_sequence = ? AND reason = ?`,
  );
  const removeGap = database.prepare<[number]>('DELETE FROM gap WHERE seq = ?');
  const removeEvent = database.prepare<[number]>('DELETE FROM event WHERE seq = ?');
  const counts = database.prepare<[], { deadLetters: number; gaps: number }>(
    `SELECT (SELECT count(*) FROM dead_letter WHERE sink = ${sink}) AS deadLetters,
       (SELECT count(*) FROM gap WHERE sink = ${sink}) AS gaps`,
  );
  const oldLetters = database.prepare<[number, number, number, number]>(
    oldRecords(sink, 'dead_letter', 'dead_at'),
  );
  const oldGaps = database.prepare<[number, number, number, number]>(oldRecords(sink, 'gap', 'recorded_at'));
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

function oldRecords(sink: number, table: string, time: string): string {
  return `DELETE FROM ${table} WHERE sink = ${sink} AND seq IN (SELECT seq FROM ${table} WHERE sink = ${sink} AND seq <= ? AND (${time} < ?
    OR seq <= (SELECT seq FROM ${table} WHERE sink = ${sink} ORDER BY seq DESC LIMIT 1 OFFSET ?)) ORDER BY seq LIMIT ?)`;
}
