/** The end of standing open while a parent may hold a frame that opens the lock: it is said to be certain only afterwards. */
import { beforeEach, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type DoorSite, GATEWAY, openDoorSite } from '../../../test/door-site.ts';

const MAC = '00124b0001a2b3c4';
const UNANSWERED = new DriverError('OUTCOME_UNKNOWN', 'no answer');

let site: DoorSite;
let id: string;
let end: () => Promise<void>;
beforeEach(async () => {
  site = await openDoorSite();
  const mine = { mac: MAC, gatewayId: GATEWAY, networkId: 'n' };
  id = (await site.desk('POST', '/doors', mine)).body.id as string;
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
  end = site.run();
});

const post = () => site.desk('POST', `/doors/${id}/stand-open`, { seconds: 600 });
const remove = async () => (await site.desk('DELETE', `/doors/${id}/stand-open`)).body;
const standing = async () => (await site.desk('GET', `/doors/${id}/state`)).body.standingOpen;
const kinds = () => site.played.actuated.map(({ kind }) => kind);
const changes = () =>
  site.played.published
    .filter(({ type }) => type === 'gatehouse.door.standing-open.v1')
    .map(({ data }) => data.change);
const confirm = () => {
  site.played.actuate = async () => ({ outcome: 'confirmed' });
};
function showOpen(): void {
  const { clock } = site;
  site.report(MAC, { lockState: { value: 'unlocked', at: clock.now(), heardAt: clock.monotonic() } });
}
async function restart(prepare?: () => void): Promise<void> {
  await end();
  site = await openDoorSite(site.database, { now: site.clock.now() });
  prepare?.();
  end = site.run();
  await site.clock.advance(0);
}
/** Locked at once, and again when nothing can arrive any more: only then it has ended. */
async function endsAfter(seconds: number): Promise<void> {
  expect(await remove()).toMatchObject({
    outcome: 'accepted',
    reason: expect.stringContaining(`${seconds} s`),
    standingOpen: { state: 'ending' },
  });
  expect([kinds().at(-1), changes().at(-1)]).toEqual(['endStandOpen', 'ending']);
  await site.clock.advance(seconds * 1_000);
  expect([kinds().slice(-2), changes().at(-1)]).toEqual([['endStandOpen', 'endStandOpen'], 'ended']);
  expect([await standing(), await remove()]).toMatchObject([null, { outcome: 'confirmed' }]);
}

it('a frame that was not answered counts from when that was known', async () => {
  site.played.actuate = () => Promise.reject(UNANSWERED);
  await post();
  confirm();
  await site.clock.advance(5_000);
  await endsAfter(30);
});

it('a report of the bolt is no proof that the frame has arrived', async () => {
  site.played.actuate = () => Promise.reject(UNANSWERED);
  await post();
  await site.clock.advance(1_000);
  showOpen();
  await expect.poll(standing).toMatchObject({ state: 'open' });
  confirm();
  await endsAfter(34);
});

it.each([false, true])('a host before this one may have sent it (shown open: %s)', async (isShown) => {
  site.played.actuate = () => new Promise(() => {});
  void post();
  await expect.poll(kinds).toEqual(['standOpen']);
  if (isShown) {
    showOpen();
    await expect.poll(standing).toMatchObject({ state: 'open' });
  }
  await restart();
  await endsAfter(35);
});

it('a lock that has answered has nothing more to get', async () => {
  await post();
  expect(await remove()).toMatchObject({ outcome: 'confirmed', standingOpen: null });
});

it('nor does a frame arrive that was not answered long ago', async () => {
  site.played.actuate = () => Promise.reject(UNANSWERED);
  await post();
  confirm();
  await site.clock.advance(35_000);
  expect(await remove()).toMatchObject({ outcome: 'confirmed', standingOpen: null });
});

/** As its driver says, which alone knows of a write that was not answered before another was. */
function settleIn(milliseconds: number): void {
  site.played.actuate = async (kind) =>
    kind === 'endStandOpen' ? { outcome: 'confirmed', settlesMs: milliseconds } : { outcome: 'confirmed' };
}

it('a lock that a write may still change is given back what it had when none can arrive any more', async () => {
  await post();
  settleIn(20_000);
  expect(await remove()).toMatchObject({ outcome: 'accepted', standingOpen: { state: 'ending' } });
  // A host that was started meanwhile.
  await site.clock.advance(15_000);
  settleIn(35_000);
  await site.clock.advance(5_000);
  confirm();
  await site.clock.advance(34_000);
  expect([kinds().filter((kind) => kind === 'endStandOpen').length, changes().at(-1)]).toEqual([2, 'ending']);
  await site.clock.advance(1_000);
  expect([await standing(), changes().at(-1)]).toEqual([null, 'ended']);
});

it('and is after a restart, too', async () => {
  await post();
  settleIn(20_000);
  await remove();
  await restart(() => settleIn(35_000));
  expect([kinds().at(-1), await standing()]).toMatchObject(['endStandOpen', { state: 'ending' }]);
  confirm();
  await site.clock.advance(35_000);
  expect([await standing(), changes().at(-1)]).toEqual([null, 'ended']);
});
