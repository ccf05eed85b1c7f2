/** What …/state of a door says while its lock or its network is busy with something else. */
import { beforeEach, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type DoorSite, GATEWAY, openDoorSite } from '../../../test/door-site.ts';

const MAC = '00124b0001a2b3c4';

let site: DoorSite;
let id: string;
beforeEach(async () => {
  site = await openDoorSite();
  const door = { mac: MAC, gatewayId: GATEWAY, networkId: 'n' };
  id = (await site.desk('POST', '/doors', door)).body.id as string;
  site.run();
});

const state = async () => (await site.desk('GET', `/doors/${id}/state`)).body;

it('waits, and is sent again, when the lock changes its mode already', async () => {
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
  site.played.actuate = () => Promise.reject(new DriverError('BUSY', 'the lock changes its mode already'));
  const { body } = await site.desk('POST', `/doors/${id}/stand-open`, { seconds: 600 });
  expect(body).toMatchObject({ outcome: 'waiting', reason: expect.stringContaining('changes its mode') });
  expect((await state()).standingOpen).toMatchObject({
    state: 'waiting',
    on: false,
    failure: { message: expect.stringContaining('changes its mode') },
  });
  site.played.actuate = async () => ({ outcome: 'confirmed' });
  await site.clock.advance(4_000);
  expect((await state()).standingOpen).toMatchObject({ state: 'open', on: true, failure: null });
  expect(site.played.actuated.map(({ kind }) => kind)).toEqual(['standOpen', 'standOpen']);
});

it('shows a lock as disconnected after a channel move until it is heard there, with what it reported before', async () => {
  const report = (more: object) => {
    const lockState = { value: 'locked', at: site.clock.now(), heardAt: site.clock.monotonic() };
    site.report(MAC, {
      lastSeen: site.clock.now(),
      heardAt: site.clock.monotonic(),
      lockState,
      ...more,
    });
  };
  report({ heardOn: 15 });
  const { lockState } = await state();
  expect(lockState).toMatchObject({ value: 'locked', age: 0 });
  await site.clock.advance(13_000);
  // By the driver, which has moved and heard nothing since.
  site.report(MAC, { connected: false, heardOn: 15 });
  expect(await state()).toMatchObject({
    connection: { status: 'disconnected' },
    lockState: { value: 'locked', age: 13_000 },
  });
  report({ heardOn: 20 });
  expect(await state()).toMatchObject({
    connection: { status: 'connected' },
    lockState: { value: 'locked', age: 0 },
  });
});
