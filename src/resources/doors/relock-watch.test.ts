/**
 * A lock that relocks by itself and has reported that it is locked is asked before the watch ends: the report may be old. One
 * that the gateway locks waits for no standing open that did not begin.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import type { DoorSite } from '../../../test/door-site.ts';
import { MAC, openDoorSiteWithLock } from '../../../test/resources/doors/doors.ts';

let site: DoorSite;
let id: string;
beforeEach(async () => {
  ({ site, id } = await openDoorSiteWithLock());
  site.run();
  site.report(MAC, { relock: { by: 'timedUnlock', seconds: null } });
});

const unlock = () => site.desk('POST', `/doors/${id}/unlock`);
const lock = () => site.desk('POST', `/doors/${id}/lock`);
const relock = async () =>
  (await site.desk('GET', `/doors/${id}/state`)).body.relock as { pending: unknown[] };
const kinds = () => site.played.actuated.map(({ kind }) => kind);
/** Three seconds later. */
async function reportBolt(value: string): Promise<void> {
  await site.clock.advance(3_000);
  site.report(MAC, { lockState: { value, at: site.clock.now() } });
}

describe('a lock that relocks by itself', () => {
  it.each(['unlocked', 'notFullyLocked', undefined] as const)(
    'is not believed by a report that it denies, which may be older than the unlock: %s',
    async (bolt) => {
      await unlock();
      site.played.readBolt = async () => bolt;
      await reportBolt('locked');
      await site.clock.advance(11_999);
      expect([kinds(), site.played.boltReads]).toEqual([[], 1]);
      await site.clock.advance(1);
      expect([kinds(), (await relock()).pending]).toEqual([['lock'], []]);
    },
  );

  it('is locked by a request that comes while it is asked and denies it', async () => {
    await unlock();
    const { promise, resolve } = Promise.withResolvers<'unlocked'>();
    site.played.readBolt = () => promise;
    await reportBolt('locked');
    await site.clock.advance(5_000);
    expect(site.played.boltReads).toBe(1);
    const locking = lock();
    await site.clock.advance(0);
    expect(kinds()).toEqual([]);
    resolve('unlocked');
    expect((await locking).body).toMatchObject({ outcome: 'confirmed' });
    expect(kinds()).toEqual(['lock']);
  });
});

it('a lock whose time is over while standing open is asked for is locked when nothing was sent of that', async () => {
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
  site.played.unlock = async () => ({ outcome: 'confirmed', relock: 'gateway' });
  await unlock();
  await site.clock.advance(4_000);
  const { promise: asked, reject } = Promise.withResolvers<never>();
  site.played.actuate = async (kind) => (kind === 'standOpen' ? asked : { outcome: 'confirmed' });
  const standing = site.desk('POST', `/doors/${id}/stand-open`, { seconds: 600 });
  await site.clock.advance(2_000);
  expect(kinds()).toEqual(['standOpen']);
  reject(new DriverError('DEVICE_OFFLINE', 'it sleeps'));
  expect((await standing).body).toMatchObject({ outcome: 'waiting' });
  await site.clock.advance(1_000);
  expect([kinds(), (await relock()).pending]).toEqual([['standOpen', 'lock'], []]);
});
