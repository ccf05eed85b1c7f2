/** A coordinator on a serial port, which here is a pseudo-terminal; with its own way to be opened, lost and found again. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  CONFIRMED,
  folder,
  joined,
  LOCK,
  opened,
  restored,
  simulated,
  snapshotOf,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';

it('unlocks over a serial port, loses it when it is pulled, and has its locks again when it is back', async () => {
  const link = join(folder(), 'adapter');
  const site = await simulated({ transport: 'pty', link, locks: [{ ieee: LOCK }] });
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory });
  await joined(first, site);
  const unlock = unlockOf(LOCK);
  expect(await first.execute('unlock', unlock)).toEqual(CONFIRMED);
  await site.hangUp();
  expect(await first.ended).toMatchObject({ code: 'LINK_LOST' });
  await first.close();
  await site.replug();
  const again = await opened(site, { stateDirectory, knownLocks: [LOCK] });
  expect(await again.execute('unlock', unlock)).toEqual(CONFIRMED);
  expect((await site.state(LOCK)).executed).toHaveLength(2);
}, 60_000);

it('frees the port of a start that failed: of another stick, and of one that says nothing', async () => {
  const site = await simulated({
    transport: 'pty',
    link: join(folder(), 'adapter'),
    locks: [{ ieee: LOCK }],
  });
  const stateDirectory = folder();
  const first = await opened(site, { stateDirectory });
  await joined(first, site);
  const archive = await snapshotOf(first);
  await first.close();
  await site.setGateway({ newStick: { ieee: '00124b0014d9a0ff' } });
  const another = { code: 'REFUSED', message: expect.stringContaining('gatehouse zgate restore') };
  for (const attempt of ['the first', 'the second'])
    await expect(opened(site, { stateDirectory, snapshot: archive }), attempt).rejects.toMatchObject(another);
  await site.hang(true);
  await expect(opened(site, { stateDirectory })).rejects.toMatchObject({ code: 'LINK_LOST' });
  await site.hang(false);
  const gateway = await restored(site, { snapshot: archive, restore: true, knownLocks: [LOCK] });
  // A coordinator that does not know its child has it look for its network again.
  await site.set(LOCK, { rejoin: true });
  expect(await gateway.execute('unlock', unlockOf(LOCK))).toEqual(CONFIRMED);
}, 90_000);
