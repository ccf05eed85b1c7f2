/** The events that are kept, as a person reads them afterwards. */
import { beforeEach, expect, it } from 'vitest';
import { principalWith } from '../../../test/access-matrix.ts';
import { manualClock } from '../../../test/manual-clock.ts';
import { openTestLog, type TestLog } from '../../../test/services/events/log.ts';
import { temporarySystem } from '../../../test/temporary.ts';
import { type KeptQuery, openKeptEvents } from './kept.ts';

const MINUTE_MS = 60_000;

let log: TestLog;
let clock: ReturnType<typeof manualClock>;

beforeEach(async () => {
  clock = manualClock();
  log = await openTestLog({ clock });
  await temporarySystem(log.database, clock);
});

async function publish(kind: string, subject: string, count = 1): Promise<void> {
  const event = { type: `gatehouse.${kind}.changed.v1`, source: `${kind}s/${subject}`, subject, data: {} };
  await log.database.commit(() => {
    for (let n = 0; n < count; n += 1) log.events.publish(event);
  });
}

const read = async (query: Partial<KeptQuery> = {}, role: 'front-desk' | 'pms' = 'front-desk') => {
  const kept = openKeptEvents(log.events.table, log.database);
  const { items, next } = await kept.kept({ limit: 100, ...query }, principalWith(role));
  return { subjects: items.map(({ subject }) => subject), next };
};

it('are read the newest first, page by page, by what they are about and what the caller may read', async () => {
  await publish('door', 'd1');
  await log.record(1, 1);
  await publish('rs485', 'r1');
  await publish('door', 'd2');
  expect(await read()).toEqual({ subjects: ['d2', 'r1', 'k-1', 'd1'], next: null });
  expect(await read({}, 'pms')).toEqual({ subjects: ['d2', 'k-1', 'd1'], next: null });
  expect((await read({ types: ['gatehouse.door.*'] })).subjects).toEqual(['d2', 'd1']);
  expect((await read({ subject: ['d1', 'desk-1'] })).subjects).toEqual(['k-1', 'd1']);
  const first = await read({ limit: 2 });
  expect(first).toEqual({ subjects: ['d2', 'r1'], next: '3' });
  expect(await read({ limit: 2, cursor: Number(first.next) })).toEqual({
    subjects: ['k-1', 'd1'],
    next: null,
  });
});

it('are read of a time', async () => {
  await publish('door', 'early');
  await clock.advance(MINUTE_MS);
  const from = clock.now();
  await publish('door', 'then');
  await clock.advance(MINUTE_MS);
  await publish('door', 'late');
  expect((await read({ from })).subjects).toEqual(['late', 'then']);
  expect((await read({ from, to: clock.now() })).subjects).toEqual(['then']);
});

it('are looked at in bounded pages, which may be empty, and each is found once', async () => {
  await publish('door', 'wanted');
  await publish('door', 'other', 20_600);
  await publish('door', 'wanted');
  const first = await read({ subject: ['wanted'] });
  expect(first.subjects).toEqual(['wanted']);
  expect(await read({ subject: ['wanted'], cursor: Number(first.next) })).toEqual({
    subjects: ['wanted'],
    next: null,
  });
});
