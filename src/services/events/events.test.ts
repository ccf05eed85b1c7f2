import { describe, expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { openTestLog, progress, type TestLog, until } from '../../../test/services/events/log.ts';
import { temporaryFolder } from '../../../test/temporary.ts';
import { KEEP_INTERVAL_MS } from './retention.ts';

const DAY_MS = 86_400_000;

function sequences({ events }: TestLog, encoderId = 'desk-1') {
  return events.table
    .page(0, 1_000_000)
    .filter((row) => row.encoderId === encoderId && row.sequence !== null)
    .map(({ sequence }) => sequence);
}

function gaps({ events }: TestLog) {
  return events.table
    .page(0, 1_000_000)
    .filter(({ sequence }) => sequence === null)
    .map(({ body }) => JSON.parse(body).data);
}

/** Runs the keeper for one interval of the manual clock. */
async function keep(log: TestLog, clock: ReturnType<typeof manualClock>) {
  const ending = new AbortController();
  const kept = log.events.keep(ending.signal).catch((error) => error);
  await clock.advance(KEEP_INTERVAL_MS);
  // Its batches are commits: it sleeps again when it is done.
  await until(() => clock.sleepers() > 0, 'the keeper sleeps again');
  ending.abort(new Error('enough'));
  expect(await kept).toBe(ending.signal.reason);
}

describe('recording', () => {
  it('stores an event with the fact or not at all', async () => {
    const { database, events } = await openTestLog();
    const failing = database.commit(() => {
      events.writeProgress(progress(1));
      throw new Error('the fact is refused');
    });
    await expect(failing).rejects.toThrow('refused');
    expect(events.backlog()).toMatchObject({ waiting: 0, waitingBytes: 0 });
    await database.commit(() => events.writeProgress(progress(2)));
    expect(events.table.page(0, 9)).toMatchObject([{ sequence: 1, encoderId: 'desk-1' }]);
  });

  it('counts each encoder from 1, and goes on after a restart', async () => {
    const folder = temporaryFolder();
    const first = await openTestLog({ folder });
    await first.record(1, 2, 'a');
    await first.record(1, 1, 'b');
    await first[Symbol.asyncDispose]();
    const second = await openTestLog({ folder });
    await second.record(3, 3, 'a');
    expect([sequences(second, 'a'), sequences(second, 'b')]).toEqual([[1, 2, 3], [1]]);
  });

  it('says whether the clock could be trusted', async () => {
    const log = await openTestLog();
    log.synchronised = false;
    await log.record(1, 1);
    expect(JSON.parse(log.events.table.page(0, 1)[0]?.body ?? '')).toMatchObject({ clocksynced: false });
  });

  it('shows how many events wait and for how long', async () => {
    const clock = manualClock();
    const log = await openTestLog({ clock });
    expect(log.events.backlog().oldestAgeMs).toBeNull();
    await log.record(1, 3);
    await clock.advance(5_000);
    const bytes = log.events.table.page(0, 9).reduce((sum, row) => sum + Buffer.byteLength(row.body), 0);
    expect(log.events.backlog()).toEqual({
      waiting: 3,
      waitingBytes: bytes,
      oldestAgeMs: 5_000,
      deadLetters: 0,
      gaps: 0,
      dropped: 0,
      autonomyMs: 30 * DAY_MS - 5_000,
      connectedSince: null,
      lastError: null,
    });
  });
});

describe('bounds of what waits', () => {
  it('drops what is too old and names exactly that, per encoder', async () => {
    const clock = manualClock();
    const log = await openTestLog({ clock, bounds: { maxAge: DAY_MS, maxBytes: 1e9 } });
    await log.record(1, 700, 'a');
    await log.record(1, 3, 'b');
    await clock.advance(DAY_MS + 1);
    await log.record(701, 702, 'a');
    await keep(log, clock);
    expect(sequences(log, 'a')).toEqual([701, 702]);
    expect(sequences(log, 'b')).toEqual([]);
    expect(gaps(log)).toEqual([
      { encoderId: 'a', firstSequence: 1, lastSequence: 700, count: 700, reason: 'AGE' },
      { encoderId: 'b', firstSequence: 1, lastSequence: 3, count: 3, reason: 'AGE' },
    ]);
    expect(log.events.backlog()).toMatchObject({ waiting: 4, gaps: 2, dropped: 703 });
  });

  it('joins what one outage drops into one record', async () => {
    const clock = manualClock();
    const log = await openTestLog({ clock, bounds: { maxAge: DAY_MS, maxBytes: 1e9 } });
    for (let n = 1; n <= 5; n += 1) {
      await log.record(n, n);
      await clock.advance(DAY_MS);
      await keep(log, clock);
    }
    expect(gaps(log)).toEqual([
      { encoderId: 'desk-1', firstSequence: 1, lastSequence: 5, count: 5, reason: 'AGE' },
    ]);
    expect(log.events.backlog()).toMatchObject({ waiting: 1, gaps: 1, dropped: 5 });
  });

  it('drops the oldest when too many bytes wait, and never a gap record', async () => {
    const clock = manualClock();
    const log = await openTestLog({ clock, bounds: { maxAge: DAY_MS, maxBytes: 20_000 } });
    await log.record(1, 200);
    await keep(log, clock);
    const left = sequences(log);
    expect(left.at(-1)).toBe(200);
    const dropped = (left[0] ?? 0) - 1;
    expect(gaps(log)).toEqual([
      { encoderId: 'desk-1', firstSequence: 1, lastSequence: dropped, count: dropped, reason: 'SIZE' },
    ]);
    await keep(log, clock);
    const { waitingBytes } = log.events.backlog();
    expect(waitingBytes).toBeLessThanOrEqual(20_000);
    expect(waitingBytes).toBeGreaterThan(18_000);
    await clock.advance(30 * DAY_MS);
    await keep(log, clock);
    expect(log.events.backlog()).toMatchObject({ waiting: 2 });
    expect(gaps(log).map(({ reason }) => reason)).toEqual(['SIZE', 'AGE']);
  });

  it('believes no age while the clock is not synchronised', async () => {
    const clock = manualClock();
    const log = await openTestLog({ clock, bounds: { maxAge: DAY_MS, maxBytes: 1e9 } });
    await log.record(1, 1);
    log.synchronised = false;
    clock.jumpWall(3650 * DAY_MS);
    await keep(log, clock);
    expect(sequences(log)).toEqual([1]);
  });

  it('believes no age of an event of an unsynchronised time, until a believable one behind it is too old', async () => {
    const clock = manualClock();
    const log = await openTestLog({ clock, bounds: { maxAge: DAY_MS, maxBytes: 1e9 } });
    log.synchronised = false;
    await log.record(1, 2);
    log.synchronised = true;
    clock.jumpWall(3650 * DAY_MS);
    await log.record(3, 3);
    await keep(log, clock);
    expect(sequences(log)).toEqual([1, 2, 3]);
    await clock.advance(2 * DAY_MS);
    await log.record(4, 4);
    await keep(log, clock);
    expect(sequences(log)).toEqual([4]);
  });

  it('leaves what a connection holds', async () => {
    const clock = manualClock();
    const log = await openTestLog({ clock, bounds: { maxAge: DAY_MS, maxBytes: 1e9 } });
    await log.record(1, 5);
    log.events.link.heldThrough = 3;
    await clock.advance(2 * DAY_MS);
    await keep(log, clock);
    expect(sequences(log)).toEqual([1, 2, 3]);
    expect(gaps(log)).toMatchObject([{ firstSequence: 4, lastSequence: 5 }]);
  });
});

describe('forwarded events', () => {
  it('stay for live readers for seven days', async () => {
    const clock = manualClock();
    const log = await openTestLog({ clock });
    await log.record(1, 600);
    await clock.advance(DAY_MS);
    await log.record(601, 603);
    await log.database.commit(() => log.events.table.setAcked(602));
    await keep(log, clock);
    expect(sequences(log)).toHaveLength(603);
    await clock.advance(6 * DAY_MS + 1);
    await keep(log, clock);
    expect(sequences(log)).toEqual([601, 602, 603]);
    await clock.advance(20 * DAY_MS);
    await keep(log, clock);
    expect(sequences(log)).toEqual([603]);
  });
});
