/** A network on a coordinator of the other make: what goes there, what the locks make of it, and what is refused. */
import { expect, it } from 'vitest';
import {
  CONFIRMED,
  folder,
  joined,
  LOCK,
  OTHER_LOCK,
  opened,
  restored,
  simulated,
  snapshotOf,
  type TestGateway,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import type { StickState } from '../../test/simulators/zigbee/stick/stick.ts';

const NEW_STICK = '00124b0014d9a0ff';
const THIRD_STICK = '00124b0014d9a0fe';
const FRAMES = 25_000;

const unlocked = (gateway: TestGateway, lock = LOCK) => gateway.execute('unlock', unlockOf(lock));

/** A network with a lock on a stick of one make, and a stick of the other in its place. Many frames went out since the snapshot. */
async function exchanged(from: 'zstack' | 'ember', newStick: { keyTable?: number } = {}) {
  const site = await simulated({ adapter: from, locks: [{ ieee: LOCK }, { ieee: OTHER_LOCK }] });
  const first = await opened(site);
  await joined(first, site);
  expect(await unlocked(first)).toEqual(CONFIRMED);
  const archive = await snapshotOf(first);
  await first.close();
  const { stick: before } = await site.stats();
  await site.setGateway({ frames: FRAMES });
  const adapter = from === 'zstack' ? 'ember' : 'zstack';
  await site.setGateway({ newStick: { ieee: NEW_STICK, adapter, ...newStick } });
  return { site, before, archive, options: { adapter, knownLocks: [LOCK] } };
}

const networkOf = ({ ieee, panId, extendedPanId, channel }: StickState) => ({
  ieee,
  panId,
  extendedPanId,
  channel,
});

it('goes from Z-Stack to EmberZNet, and on to another, with the link keys of its locks', async () => {
  const { site, before, archive, options } = await exchanged('zstack', { keyTable: 0 });
  const restore = { ...options, snapshot: archive, restore: true };
  await expect(opened(site, restore)).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringMatching(/link keys of 1 locks, and this coordinator takes 0.*--without-keys/),
  });
  expect((await site.stats()).stick).toMatchObject({ isStarted: false, ieee: NEW_STICK });
  await site.setGateway({ newStick: { ieee: NEW_STICK, keyTable: 12 } });
  const gateway = await restored(site, restore);
  const { stick } = await site.stats();
  expect(stick).toMatchObject(networkOf(before));
  expect(stick.frameCounter).toBeGreaterThan(before.frameCounter + FRAMES);
  // A coordinator that does not know its child has it look for its network again.
  await site.set(LOCK, { rejoin: true });
  expect(await unlocked(gateway)).toEqual(CONFIRMED);
  expect(await site.set(LOCK, { rejoin: 'withoutKey' })).toMatchObject({ isReachable: true });
  await joined(gateway, site, OTHER_LOCK);
  const second = await snapshotOf(gateway);
  await gateway.close();
  await site.setGateway({ frames: FRAMES });
  await site.setGateway({ newStick: { ieee: THIRD_STICK, keyTable: 12 } });
  const last = await restored(site, { ...options, snapshot: second, restore: true });
  expect((await site.stats()).stick).toMatchObject(networkOf(before));
  for (const lock of [LOCK, OTHER_LOCK]) {
    expect(await site.set(lock, { rejoin: 'withoutKey' })).toMatchObject({ isReachable: true });
    expect(await unlocked(last, lock)).toEqual(CONFIRMED);
  }
}, 90_000);

it('goes from EmberZNet to Z-Stack without link keys, and only when that is asked for', async () => {
  const { site, before, archive, options } = await exchanged('ember');
  const restore = { ...options, snapshot: archive, restore: true };
  await expect(opened(site, restore)).rejects.toMatchObject({
    code: 'REFUSED',
    message: expect.stringContaining('--without-keys'),
  });
  expect((await site.stats()).stick).toMatchObject({ isStarted: false, ieee: NEW_STICK });
  const stateDirectory = folder();
  const gateway = await restored(site, { ...restore, withoutKeys: true, stateDirectory });
  const { stick } = await site.stats();
  expect(stick).toMatchObject(networkOf(before));
  expect(stick.frameCounter).toBeGreaterThan(before.frameCounter + FRAMES);
  await site.set(LOCK, { rejoin: true });
  expect(await unlocked(gateway)).toEqual(CONFIRMED);
  await gateway.close();
  // As an ordinary start finds it, with the backup of EmberZNet in the folder still.
  const again = await opened(site, { ...options, stateDirectory });
  expect(await unlocked(again)).toEqual(CONFIRMED);
  // What the refusal says: one that asks for the network key again is turned away, and joins again.
  expect(await site.set(LOCK, { rejoin: 'withoutKey' })).toMatchObject({
    isReachable: false,
    isJoined: false,
  });
  await again.execute('permitJoin', { seconds: 60, allowed: [], installCodes: [] });
  expect(await site.join(LOCK)).toBe('joined');
}, 90_000);

it('leaves no link key of a network before in an EmberZNet coordinator', async () => {
  const { site, archive, options } = await exchanged('zstack');
  const restore = { ...options, snapshot: archive, restore: true };
  await (await restored(site, restore)).close();
  const gateway = await opened(site, { ...restore, withoutKeys: true });
  await site.set(LOCK, { rejoin: true });
  expect(await unlocked(gateway)).toEqual(CONFIRMED);
  // With the key of before it would be let in, and one that has another key since would not.
  expect(await site.set(LOCK, { rejoin: 'withoutKey' })).toMatchObject({
    isReachable: false,
    isJoined: false,
  });
}, 90_000);
