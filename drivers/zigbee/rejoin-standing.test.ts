/** A lock that stands open, leaves, and joins again: against a simulated network. */
import { expect, it, vi } from 'vitest';
import { folder, joined, LOCK, opened, simulated } from '../../test/drivers/zigbee/gateway.ts';

it('a lock that left while it stood open has its relock time given back', { timeout: 60_000 }, async () => {
  const plan = {
    ieee: LOCK,
    mains: true,
    vendorCluster: false,
    lacksCommands: [3],
    supportedOperatingModes: 1,
    autoRelockSeconds: 60,
  };
  const site = await simulated({ locks: [plan] });
  const gateway = await opened(site, { stateDirectory: folder() });
  await site.setGateway({ pace: 1 });
  await joined(gateway, site);
  const standing = { hwId: LOCK, pin: null };
  expect(await gateway.execute('standOpen', standing)).toMatchObject({ outcome: 'confirmed' });
  expect(await site.state(LOCK)).toMatchObject({ autoRelockSeconds: 0 });
  await site.set(LOCK, { leave: true });
  await vi.waitFor(() => expect(gateway.events.map(({ kind }) => kind)).toContain('lockLeft'));
  gateway.events.length = 0;
  await joined(gateway, site);
  expect(await gateway.execute('endStandOpen', standing)).toMatchObject({ outcome: 'confirmed' });
  expect(await site.state(LOCK)).toMatchObject({ autoRelockSeconds: 60 });
});
