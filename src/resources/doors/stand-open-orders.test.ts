/** What closes a door, and what its lock reports, while a request for standing open is being stored. */
import { beforeEach, expect, it, vi } from 'vitest';
import type { DoorSite } from '../../../test/door-site.ts';
import { errorOf, MAC, openDoorSiteWithLock } from '../../../test/resources/doors/doors.ts';

const MINUTE = 60_000;

let site: DoorSite;
let id: string;
beforeEach(async () => {
  ({ site, id } = await openDoorSiteWithLock());
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
  site.run();
});

const post = (body: object = { seconds: 600 }) => site.desk('POST', `/doors/${id}/stand-open`, body);
const remove = () => site.desk('DELETE', `/doors/${id}/stand-open`);
const standing = async () => (await site.desk('GET', `/doors/${id}/state`)).body.standingOpen;
const kinds = () => site.played.actuated.map(({ kind }) => kind);
const shown = (value: string) => ({ value, at: site.clock.now(), heardAt: site.clock.monotonic() });

/** Runs `order`, and `meanwhile` from the moment that its first commit began; that commit resolves once `meanwhile` is under way. */
async function whileStored<A, B>(order: () => Promise<A>, meanwhile: () => Promise<B>): Promise<[A, B]> {
  const { promise, resolve } = Promise.withResolvers<B>();
  vi.spyOn(site.database, 'commit').mockImplementationOnce(async (...job) => {
    const stored = await site.database.commit(...job);
    void meanwhile().then(resolve);
    for (let turn = 0; turn < 50; turn += 1) await new Promise((next) => setImmediate(next));
    return stored as never;
  });
  return Promise.all([order(), promise]);
}

const CLOSES: [string, () => Promise<{ body: object }>][] = [
  ['DELETE', remove],
  ['POST …/lock', () => site.desk('POST', `/doors/${id}/lock`)],
];

it.each(CLOSES)('is sent nothing when %s comes while the first order is stored', async (_name, close) => {
  const [answered, closed] = await whileStored(() => post(), close);
  expect(closed.body).toMatchObject({ outcome: 'confirmed' });
  expect(errorOf(answered)).toEqual([503, 'DEVICE_OFFLINE']);
  await site.clock.advance(MINUTE);
  expect([kinds().includes('standOpen'), await standing()]).toEqual([false, null]);
});

it.each(CLOSES)('is closed when %s comes while its extension is stored', async (_name, close) => {
  await post();
  const [, closed] = await whileStored(() => post({ seconds: 900 }), close);
  expect(closed.body).toMatchObject({ outcome: 'confirmed' });
  await site.clock.advance(MINUTE);
  expect([kinds(), await standing()]).toEqual([['standOpen', 'endStandOpen'], null]);
});

it('is lost when its lock reports that it is locked while its extension is stored', async () => {
  await post();
  await site.clock.advance(1_000);
  const locked = async () => site.report(MAC, { lockState: shown('locked') });
  const [{ body }] = await whileStored(() => post({ seconds: 900 }), locked);
  expect(body).toMatchObject({ outcome: 'unknown', standingOpen: { state: 'lost', on: false } });
  expect(kinds()).toEqual(['standOpen']);
});

it('counts its seconds, and the 15 minutes in which it may begin, from when it arrived', async () => {
  for (const [seconds, waitedMs] of [
    [11, 16_000],
    // A parent that holds the frame for 8 s would have it open the door after its end.
    [11, 3_001],
    [1, 2_001],
  ] as const) {
    site.played.waitedMs = waitedMs;
    expect(errorOf(await post({ seconds }))).toEqual([503, 'DEVICE_OFFLINE']);
  }
  // The monotonic clock has fractions of a millisecond, which are no time that is stored.
  site.played.waitedMs = 15_999.5;
  expect([kinds(), await standing()]).toEqual([[], null]);
  const { body } = await post({ seconds: 600 });
  const until = new Date(site.clock.now() + 600_000 - 16_000).toISOString();
  expect(body).toMatchObject({ outcome: 'confirmed', standingOpen: { until } });
  await site.clock.advance(600_000 - 16_000);
  expect(kinds()).toEqual(['standOpen', 'endStandOpen']);
  site.played.waitedMs = 15 * MINUTE;
  expect(errorOf(await post({ seconds: 3_600 }))).toEqual([503, 'DEVICE_OFFLINE']);
  expect(kinds()).toEqual(['standOpen', 'endStandOpen']);
});

/** Its first commit takes so long. */
function isStoredIn(milliseconds: number): void {
  vi.spyOn(site.database, 'commit').mockImplementationOnce(async (...job) => {
    const stored = await site.database.commit(...job);
    await site.clock.advance(milliseconds);
    return stored as never;
  });
}

it.each([
  [{ seconds: 11 }, 11_000],
  [{ seconds: 3_600 }, 15 * MINUTE],
])('is sent nothing once its time is over: %j', async (body, storedMs) => {
  isStoredIn(storedMs);
  expect(errorOf(await post(body))).toEqual([503, 'DEVICE_OFFLINE']);
  await site.clock.advance(MINUTE);
  expect([kinds().includes('standOpen'), await standing()]).toEqual([false, null]);
});
