/** A full disk under a daemon with a Zigbee gateway: its doors are locked and unlocked, whatever else fails meanwhile. */
import { expect, it } from 'vitest';
import { canMount, onSmallDisk } from './small-disk.ts';
import { openZigbeeSite, waitFor } from './zigbee-site.ts';

const ROOM = '00158d0001000001';

it.skipIf(!canMount())(
  'a door that stands open is locked on a full disk, after its coordinator was away and its host was killed',
  { timeout: 180_000 },
  async () => {
    await using all = await openZigbeeSite([{ locks: [{ ieee: ROOM }] }, {}]);
    const [gateway] = all.gateways;
    const isUp = () =>
      waitFor(async () =>
        expect(await gateway.read()).toMatchObject({ connectionState: { connected: true } }),
      );
    await isUp();
    await all.join(gateway, ROOM);
    const disk = await onSmallDisk(all.site);
    await isUp();
    const { id } = await all.door(ROOM);
    await all.call('PUT', `/access/doors/${id}`, { standOpenEnabled: true });
    const bolt = async () => (await gateway.simulated.state(ROOM)).lockState;
    const standOpen = async () => all.call('POST', `/access/doors/${id}/stand-open`, { seconds: 10 });
    expect((await standOpen()).body).toMatchObject({ outcome: 'confirmed' });
    expect(await bolt()).toBe(2);
    disk.fill();
    await gateway.simulated.drop();
    await waitFor(async () =>
      expect(await gateway.read()).toMatchObject({ connectionState: { connected: false } }),
    );
    await isUp();
    process.kill(gateway.hostPid(), 'SIGKILL');
    disk.fill();
    await waitFor(async () => expect(await bolt()).toBe(1));
    await isUp();
    expect((await all.unlock(ROOM)).body).toMatchObject({ outcome: 'confirmed' });
    disk.makeRoom();
  },
);
