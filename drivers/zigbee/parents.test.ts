/** Locks behind routers of which no one knows how long they hold a frame. */
import { expect, it, vi } from 'vitest';
import {
  CONFIRMED,
  joined,
  LOCK,
  OTHER_LOCK,
  opened,
  simulated,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';

const WIRED = '00158d0001000003';
const ROUTER = '00158d00010000aa';

it('unlocks no lock that may sleep behind a router, where that is forbidden', async () => {
  const site = await simulated({
    locks: [
      { ieee: LOCK, sleepy: {} },
      { ieee: OTHER_LOCK, sleepy: {} },
      { ieee: WIRED, mains: true },
    ],
    routers: [{ ieee: ROUTER, joined: true }],
  });
  const gateway = await opened(site, { unlockBehindRouters: false });
  for (const ieee of [LOCK, OTHER_LOCK, WIRED]) await joined(gateway, site, ieee);
  const unlock = (ieee: string) => gateway.execute('unlock', unlockOf(ieee));
  for (const ieee of [LOCK, OTHER_LOCK, WIRED]) expect(await unlock(ieee)).toEqual(CONFIRMED);
  await site.set(LOCK, { parent: ROUTER, clearLog: true });
  await vi.waitFor(async () => expect((await site.stats()).stick.children).not.toContain(LOCK));
  await expect(unlock(LOCK)).rejects.toMatchObject({
    code: 'DEVICE_OFFLINE',
    message: expect.stringContaining('unlockBehindRouters'),
  });
  const standOpen = gateway.execute('standOpen', { hwId: LOCK, pin: null });
  await expect(standOpen).rejects.toThrow('unlockBehindRouters');
  expect((await site.state(LOCK)).executed).toEqual([]);
  expect(await unlock(OTHER_LOCK)).toEqual(CONFIRMED);
}, 60_000);

it('unlocks a lock behind a router where nothing is said of it', async () => {
  const site = await simulated({
    locks: [{ ieee: LOCK, sleepy: {} }],
    routers: [{ ieee: ROUTER, joined: true }],
  });
  const gateway = await opened(site);
  await joined(gateway, site);
  await site.set(LOCK, { parent: ROUTER });
  expect(await gateway.execute('unlock', unlockOf(LOCK))).toEqual(CONFIRMED);
}, 60_000);
