/** What the forwarder keeps on the disk: how far it got, which message is suspect, and what it gave up. */
import type { Database } from '../../platform/database/database.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import type { GapReason } from './cloud-event.ts';
import type { Sink } from './sink.ts';
import type { Waiting } from './sink-table.ts';
import type { EventRow } from './table.ts';
import type { Sent } from './window.ts';

/** After so many failures at the head a message is sent alone; failing once more it is a dead letter. */
export const FAILURES_BEFORE_ALONE = 3;
/**
 * Dead letters in a row, without anything acknowledged in between, before the service is held to be at fault rather
 * than the messages: missing rights would otherwise turn a whole backlog into dead letters.
 */
export const BURIED_IN_A_ROW_MAX = 16;
/** While a connection is open, what was sent is not counted on the disk: after a crash all of it may have been. */
const SENT_UNKNOWN = Number.MAX_SAFE_INTEGER;

/** The oldest message of a connection that ended. */
export interface HeadFailure {
  row: EventRow;
  failures: number;
  explanation: string;
}

export interface Outbox {
  /** Everything up to here is acknowledged or dead-lettered; on the disk at the next save(). */
  acked: number;
  /** Takes what is settled, in the order of sending. */
  settle(messages: readonly Sent[]): void;
  /** Messages up to here are sent one by one: one of them is suspect. */
  cautionThrough(): number;
  /** How often the message has failed at the head. */
  failures(seq: number): number;
  acknowledged(): void;
  /** At the begin of each connection: whether it is the turn of one that shall begin with a message taken before. */
  wantsWitness(isRepeat: boolean): boolean;
  /** Notes that a connection begins. */
  opened(): Promise<void>;
  save(): Promise<void>;
  /** Notes that the connection is gone, and how the oldest message fared. Gives it up when it failed even alone. */
  ended(head: HeadFailure | undefined): Promise<void>;
  /** Whether giving up a message is still believable. */
  mayBury(): boolean;
  bury(row: EventRow, reason: GapReason, explanation: string): Promise<void>;
}

export interface OutboxOptions {
  database: Database;
  sink: Sink;
  wake: () => void;
  time: Pick<KnownTime, 'now'>;
  log: Log;
}

/** Events that are acknowledged and not on the disk yet. `total` counts all of them. */
function openUnsaved(total: Waiting) {
  /** Beyond `acked`, with their bytes. */
  const ahead = new Map<number, number>();
  /** Up to `acked`. Counted here: reading a second's worth of events again would hold up the live ones. */
  const upTo: Waiting = { events: 0, bytes: 0 };
  const count = () => {
    total.events = upTo.events + ahead.size;
    total.bytes = upTo.bytes + ahead.values().reduce((sum, bytes) => sum + bytes, 0);
  };
  return {
    ahead,
    upTo,
    count,
    note({ seq, bytes }: EventRow, isAhead: boolean): void {
      if (isAhead) ahead.set(seq, bytes);
      else {
        // It may have overtaken the backlog of an earlier connection, whose last commit failed.
        ahead.delete(seq);
        upTo.events += 1;
        upTo.bytes += bytes;
      }
    },
    forget({ seqs, events, bytes }: Waiting & { seqs: number[] }): void {
      for (const seq of seqs) ahead.delete(seq);
      upTo.events -= events;
      upTo.bytes -= bytes;
      count();
    },
  };
}

export function openOutbox({ database, sink, wake, time, log }: OutboxOptions): Outbox {
  const { table, link } = sink;
  const stored = table.cursor();
  const suspect = { seq: stored.suspect, failures: stored.suspectFailures };
  let caution = suspect.failures >= FAILURES_BEFORE_ALONE ? suspect.seq : 0;
  let buriedInARow = stored.buriedInARow;
  let connections = 0;
  let repeats = 0;

  const { ahead: unsaved, upTo: uncounted, count, note, forget } = openUnsaved(link.unsaved);

  /** Inside a commit job. */
  function saveAcked(): void {
    table.countAll();
    for (const [seq, bytes] of unsaved) if (table.addAhead(seq)) table.countDown({ events: 1, bytes });
    table.countDown(uncounted);
    table.setAcked(outbox.acked);
    table.setBuriedInARow(buriedInARow);
  }

  async function commitAcked(more = () => {}): Promise<void> {
    const saved = await database.commit(() => {
      saveAcked();
      more();
      return { seqs: [...unsaved.keys()], events: uncounted.events, bytes: uncounted.bytes };
    });
    forget(saved);
    const { acked } = table.cursor();
    for (const seq of link.ahead) if (seq <= acked) link.ahead.delete(seq);
  }

  const outbox: Outbox = {
    acked: stored.acked,
    settle(messages) {
      for (const { row, isAhead, state } of messages) {
        if (!isAhead) outbox.acked = row.seq;
        if (state === 'acknowledged') note(row, isAhead);
      }
      link.unsaved.through = outbox.acked;
      count();
    },
    cautionThrough: () => caution,
    failures: (seq) => (seq === suspect.seq ? suspect.failures : 0),
    acknowledged() {
      buriedInARow = 0;
    },
    wantsWitness(isRepeat) {
      connections += 1;
      // The first one after a start goes on where the last run ended, unless that one had a suspect.
      const isSuspicious = isRepeat && (connections > 1 || suspect.failures > 0);
      repeats = isSuspicious ? repeats + 1 : 0;
      return repeats % 2 === 1;
    },
    async opened() {
      await database.commit(() => table.setSent(SENT_UNKNOWN));
    },
    async save() {
      if (unsaved.size > 0 || outbox.acked > table.cursor().acked) await commitAcked();
    },
    async ended(head) {
      // A message with that many failures is never in flight beside another.
      if (head && head.failures > FAILURES_BEFORE_ALONE && outbox.mayBury()) {
        await outbox.bury(head.row, 'REJECTED', head.explanation);
      } else if (head && head.failures > outbox.failures(head.row.seq)) {
        suspect.seq = head.row.seq;
        suspect.failures = head.failures;
        if (suspect.failures >= FAILURES_BEFORE_ALONE) caution = Math.max(caution, link.sentThrough);
      }
      await commitAcked(() => {
        table.setSent(Math.max(link.sentThrough, link.aheadThrough));
        table.setSuspect(suspect.seq, suspect.failures);
      });
    },
    mayBury: () => buriedInARow < BURIED_IN_A_ROW_MAX,
    async bury(row, reason, explanation) {
      buriedInARow += 1;
      await database.commit(() => {
        table.countAll();
        table.countDown({ events: 1, bytes: row.bytes });
        table.bury(row.seq, `${reason}: ${explanation}`, time.now());
        table.setBuriedInARow(buriedInARow);
        const { encoderId, sequence } = row;
        if (sequence !== null) sink.gap({ encoderId, first: sequence, last: sequence, reason });
      });
      logDeadLetter(log, sink, row, { reason, explanation });
      wake();
    },
  };
  return outbox;
}

function logDeadLetter(
  log: Log,
  { bounds }: Sink,
  { id, encoderId, sequence }: EventRow,
  why: { reason: GapReason; explanation: string },
): void {
  log.error(
    { sink: bounds.name, event: id, encoderId, sequence, ...why },
    `${bounds.name} does not take an event: it is kept as a dead letter; the operator of that service should know of it`,
  );
}
