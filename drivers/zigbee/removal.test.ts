/** A lock that is asked to leave its network for good: against a simulated network. */
import { expect, it, vi } from 'vitest';
import {
  folder,
  joined,
  LOCK,
  OTHER_LOCK,
  opened,
  simulated,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';

const remove = (ieee: string, timeoutMs = 20_000) => ['removeLock', { hwId: ieee }, timeoutMs] as const;

it('a lock leaves, is forgotten, and does not come back without a join window', {
  timeout: 60_000,
}, async () => {
  const site = await simulated({ locks: [{ ieee: LOCK, mains: true }] });
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory });
  await joined(first, site);
  await first.close();
  // As after a restart of the link, which names it as the lock of a door.
  const gateway = await opened(site, { stateDirectory, knownLocks: [LOCK] });
  expect(await gateway.execute(...remove(LOCK))).toEqual({ outcome: 'left' });
  await vi.waitFor(async () => expect(await site.state(LOCK)).toMatchObject({ isJoined: false }));
  const unlock = gateway.execute('unlock', unlockOf(LOCK));
  await expect(unlock).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
  expect(await site.join(LOCK)).toBe('closed');
  expect(gateway.events.filter(({ kind }) => kind === 'lockLeft')).toHaveLength(1);
  expect(await gateway.execute(...remove(LOCK))).toEqual({ outcome: 'left' });
});

it('a lock that does not answer stays known, and is asked again', { timeout: 60_000 }, async () => {
  const site = await simulated({ locks: [{ ieee: OTHER_LOCK, mains: true }] });
  const gateway = await opened(site);
  await joined(gateway, site, OTHER_LOCK);
  await site.set(OTHER_LOCK, { faults: { offline: true } });
  expect(await gateway.execute(...remove(OTHER_LOCK, 1_000))).toEqual({ outcome: 'unanswered' });
  await site.set(OTHER_LOCK, { faults: { offline: null } });
  expect(await gateway.execute(...remove(OTHER_LOCK))).toEqual({ outcome: 'left' });
});
