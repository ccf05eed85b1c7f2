/** Upstream and live readers share one log: the two tables, and what became of a database from before. */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { openTestLog, type TestLog, until } from '../../../test/services/events/log.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { openConnection } from '../../platform/database/connection.ts';
import { migrate, readMigrations } from '../../platform/database/migrate.ts';
import { KEEP_INTERVAL_MS } from './retention.ts';

/** The last schema that stored the body of an event twice. */
const BEFORE = 30;
const DAY_MS = 86_400_000;

const live = ({ events }: TestLog, after = 0) =>
  events.table.livePage(after, 10_000).map(({ seq, type, body }) => [seq, type, JSON.parse(body).n ?? null]);

async function keep(log: TestLog, clock: ReturnType<typeof manualClock>) {
  const ending = new AbortController();
  const kept = log.events.keep(ending.signal).catch(() => {});
  await clock.advance(KEEP_INTERVAL_MS);
  await until(() => clock.sleepers() > 0, 'the keeper sleeps again');
  ending.abort();
  await kept;
}

const doorEvent = {
  type: 'gatehouse.door.changed.v1',
  source: 'doors/1',
  subject: '1',
  data: {},
};

/** A database of that schema: of ten events four are acknowledged, one beyond them too, one is a dead letter with its gap. */
async function openOldDatabase(folder: string): Promise<void> {
  const file = join(folder, 'gatehouse.db');
  closeSync(openSync(file, 'wx', 0o600));
  using connection = openConnection(file);
  await migrate(connection, join(folder, 'backups'), readMigrations().slice(0, BEFORE));
  connection.exec(`
    INSERT INTO live_event (type, recorded_at, body) VALUES ('gatehouse.door.changed.v1', 1, '{"n": "forgotten"}');
    DELETE FROM live_event;
    INSERT INTO event (id, topic, type, encoder_id, sequence, recorded_at, clock_synchronised, bytes, body)
      WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10)
      SELECT 'id-' || n, 'topic', 'gatehouse.encoder.write.written.v1', 'desk-' || (n % 2), (n + 1) / 2, n, 1, 8,
        printf('{"n": %d}', n) FROM n;
    INSERT INTO event_sequence (encoder_id, last) VALUES ('desk-0', 5), ('desk-1', 5), ('desk-2', 70);
    INSERT INTO live_event (type, recorded_at, body) SELECT type, recorded_at, body FROM event;
    INSERT INTO live_event (type, recorded_at, body) VALUES ('gatehouse.door.changed.v1', 11, '{"n": "door"}');
    INSERT INTO event (id, topic, type, encoder_id, sequence, recorded_at, clock_synchronised, bytes, body)
      VALUES ('gap', 'gaps', 'gatehouse.events.gap.v1', 'desk-0', NULL, 12, 1, 11, '{"n": "gap"}');
    INSERT INTO gap (seq, encoder_id, first_sequence, last_sequence, reason, recorded_at)
      VALUES (11, 'desk-0', 3, 3, 'REJECTED', 12);
    INSERT INTO dead_letter (seq, id, topic, body, reason, dead_at) VALUES (6, 'id-6', 'topic', '{"n": 6}', 'REJECTED', 12);
    INSERT INTO forward_ahead (seq) VALUES (8);
    UPDATE forward_cursor SET acked_seq = 4, sent_seq = 8, waiting = 5, waiting_bytes = 43;
    INSERT INTO encoder (id, generation, connected_changed_at, alarm_changed_at, created_at, created_by, updated_at, updated_by)
      VALUES ('desk-0', 1, 1, 1, 1, 'test', 1, 'test');
    INSERT INTO write_request (job_id, encoder_id, request_id, digest, status, accepted_at, correlation_id, expires_at)
      VALUES ('job-1', 'desk-0', 'r-1', 'd', 'inProgress', 1, 'c', 9);
    INSERT INTO write_entry (job_id, entry_index, key_id, sealed_blocks, status, updated_at)
      VALUES ('job-1', 0, 'k-0', x'0102', 'writing', 1), ('job-1', 1, 'k-1', x'03', 'queued', 1);`);
}

describe('a database from before', () => {
  it('keeps what waits, what live readers had, and what is counted', async () => {
    const folder = temporaryFolder();
    await openOldDatabase(folder);
    const log = await openTestLog({ folder });
    const { table } = log.events;
    expect(table.cursor()).toMatchObject({ acked: 4, sent: 8 });
    expect(table.page(4, 100).map(({ seq, id, body }) => [seq, id, JSON.parse(body).n])).toEqual([
      [5, 'id-5', 5],
      [7, 'id-7', 7],
      [9, 'id-9', 9],
      [10, 'id-10', 10],
      [11, 'gap', 'gap'],
    ]);
    expect(log.events.backlog()).toMatchObject({ waiting: 5, waitingBytes: 43, deadLetters: 1, gaps: 1 });
    expect(live(log).map(([seq, , n]) => [seq, n])).toEqual([
      ...Array.from({ length: 10 }, (_, n) => [n + 2, n + 1]),
      [12, 'door'],
    ]);
    expect(table.liveFrom()).toBe(1);
    expect(table.newestLive()).toBe(12);
    const entries = log.database.prepare<[], object>(
      'SELECT key_id, status, hex(sealed_blocks) AS sealed FROM write_entry',
    );
    expect(entries.all()).toEqual([
      { key_id: 'k-0', status: 'writing', sealed: '0102' },
      { key_id: 'k-1', status: 'queued', sealed: '03' },
    ]);
  });

  it('goes on behind both: new events are seen once by each', async () => {
    const folder = temporaryFolder();
    await openOldDatabase(folder);
    const log = await openTestLog({ folder });
    const { table } = log.events;
    await log.record(6, 6, 'desk-0');
    await log.database.commit(() => log.events.publish(doorEvent));
    await log.record(71, 71, 'desk-2');
    expect(table.page(11, 100).map(({ seq, encoderId, sequence }) => [seq, encoderId, sequence])).toEqual([
      [13, 'desk-0', 6],
      [15, 'desk-2', 71],
    ]);
    expect(live(log, 12).map(([seq, type]) => [seq, type])).toEqual([
      [13, 'gatehouse.encoder.write.written.v1'],
      [14, 'gatehouse.door.changed.v1'],
      [15, 'gatehouse.encoder.write.written.v1'],
    ]);
    expect(log.events.backlog().waiting).toBe(7);
    expect(table.cursor().sent).toBe(8);
  });
});

describe('the one log', () => {
  it('shows live readers what was dropped for the notification service', async () => {
    const clock = manualClock();
    const log = await openTestLog({ clock, bounds: { maxAge: DAY_MS, maxBytes: 1e9 } });
    await log.record(1, 3);
    await log.database.commit(() => log.events.publish(doorEvent));
    const before = log.events.table.livePage(0, 100);
    await clock.advance(DAY_MS + 1);
    await keep(log, clock);
    expect(log.events.backlog()).toMatchObject({ waiting: 1, gaps: 1 });
    expect(log.events.table.livePage(0, 100)).toEqual(before);
    await log.record(4, 4);
    expect(log.events.table.page(0, 100).map(({ sequence }) => sequence)).toEqual([null, 4]);
    await clock.advance(6 * DAY_MS);
    await keep(log, clock);
    // The gap record is for the notification service alone; the fourth event was dropped and is six days old.
    expect(live(log).map(([seq]) => seq)).toEqual([6]);
  });

  it.each([-50 * 365, 90])('keeps what a wall clock dated that was wrong by %d days', async (days) => {
    const clock = manualClock();
    const log = await openTestLog({ clock });
    const jump = (by: number) => {
      clock.jumpWall(by);
      log.aheadMs += by;
    };
    jump(days * DAY_MS);
    await log.database.commit(() => {
      log.events.publish(doorEvent);
      log.events.gap({ encoderId: 'desk-1', first: 1, last: 2, reason: 'REJECTED' });
    });
    expect(log.events.backlog().oldestAgeMs).toBe(0);
    jump(-days * DAY_MS);
    const { table } = log.events;
    await log.database.commit(() => table.setAcked(table.newest()));
    await keep(log, clock);
    expect(live(log)).toHaveLength(1);
    expect(log.events.backlog().gaps).toBe(1);
    await clock.advance(8 * DAY_MS);
    await keep(log, clock);
    expect(live(log)).toEqual([]);
    await clock.advance(180 * DAY_MS);
    await keep(log, clock);
    expect(log.events.backlog().gaps).toBe(0);
  });

  it('goes on with the sequence of an encoder whose events are all gone', async () => {
    const clock = manualClock();
    const folder = temporaryFolder();
    {
      await using log = await openTestLog({ folder, clock });
      await log.record(1, 5, 'a');
      await log.record(1, 2, 'b');
      await log.database.commit(() => log.events.table.setAcked(7));
      await clock.advance(8 * DAY_MS);
      await keep(log, clock);
      expect(log.events.table.page(0, 100)).toEqual([]);
    }
    await using log = await openTestLog({ folder, clock });
    await log.record(6, 6, 'a');
    await log.record(3, 3, 'b');
    expect(log.events.table.page(0, 100).map(({ encoderId, sequence }) => [encoderId, sequence])).toEqual([
      ['a', 6],
      ['b', 3],
    ]);
  });

  it('counts what waits exactly: with jobs that fail, over many events and after a restart', async () => {
    const folder = temporaryFolder();
    let bytes = 0;
    {
      await using log = await openTestLog({ folder });
      for (let n = 1; n <= 700; n += 7) {
        await log.record(n, n + 6);
        const failing = log.database.commit(() => {
          log.events.writeProgress({
            encoderId: 'desk-9',
            requestId: 'r',
            jobId: 'j',
            keyId: 'k',
            entryIndex: 0,
            entryCount: 1,
            status: 'written',
            totals: {},
            correlationId: 'c',
          });
          throw new Error('refused');
        });
        await expect(failing).rejects.toThrow('refused');
      }
      bytes = log.events.table.page(0, 1_000).reduce((sum, row) => sum + row.bytes, 0);
      expect(log.events.backlog()).toMatchObject({ waiting: 700, waitingBytes: bytes });
      await log.database.commit(() => log.events.table.drop(700));
    }
    await using log = await openTestLog({ folder });
    await log.record(701, 701);
    expect(log.events.backlog().waiting).toBe(700);
  });
});
