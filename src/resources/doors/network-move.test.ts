/** Doors whose network moves to another channel. */
import { beforeEach, expect, it } from 'vitest';
import type { Locked } from '../../../drivers/contract/zgate.ts';
import { type DoorSite, GATEWAY, openDoorSite } from '../../../test/door-site.ts';

const MAC = '00124b0001a2b3c4';

let site: DoorSite;
let id: string;
beforeEach(async () => {
  site = await openDoorSite();
  const body = { mac: MAC, gatewayId: GATEWAY, networkId: 'n' };
  id = (await site.desk('POST', '/doors', body)).body.id as string;
  await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
  site.run();
});

const call = (method: string, what: string, body?: object) => site.desk(method, `/doors/${id}/${what}`, body);
const state = async () => (await call('GET', 'state')).body;
const published = () =>
  site.played.published
    .filter(({ type }) => type === 'gatehouse.door.connection.v1')
    .map(({ data }) => (data as { status: string }).status);

function move(): () => void {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  site.played.moving = { since: site.clock.now(), over };
  return () => {
    site.played.moving = undefined;
    resolve();
    site.connectGateway(true);
  };
}

/** A command to the lock takes so long, and is held back before for as long as the network moves. */
function takes(milliseconds: number): void {
  site.played.actuate = async (): Promise<Locked> => {
    site.played.isHeld = site.played.moving !== undefined;
    await site.played.moving?.over;
    site.played.isHeld = false;
    await site.clock.sleep(milliseconds);
    return { outcome: 'confirmed' };
  };
}

it('are unknown until that is over, and then what their lock says', async () => {
  site.report(MAC, { heardAt: site.clock.monotonic() });
  await site.clock.advance(2_000);
  const end = move();
  await site.clock.advance(5_000);
  expect(await state()).toMatchObject({
    connection: { status: 'unknown', since: '2026-01-01T00:00:02.000Z', reportAge: 7_000 },
    offline: { code: 'NOT_REPORTED', message: expect.stringContaining('moves its network') },
  });
  // Its driver has begun again, and has not heard it on the new channel.
  site.report(MAC, { connected: false, heardOn: 11 });
  expect(await state()).toMatchObject({ connection: { status: 'unknown', reportAge: 7_000 } });
  end();
  expect(await state()).toMatchObject({
    connection: { status: 'disconnected', reportAge: 7_000 },
    offline: { code: 'STAYED_BEHIND' },
  });
  await site.clock.advance(2_000);
  expect(published()).toEqual(['connected', 'disconnected']);
});

it.each(['POST lock', 'DELETE stand-open'])('are locked after it: %s says that it waits', async (request) => {
  const [method = '', what = ''] = request.split(' ');
  if (method === 'DELETE') await call('POST', 'stand-open', { seconds: 600 });
  takes(100);
  const end = move();
  const asking = call(method, what);
  await expect.poll(() => site.played.isHeld).toBe(true);
  await site.clock.advance(9_000);
  expect(await asking).toMatchObject({
    status: 200,
    body: { outcome: 'waiting', reason: expect.stringContaining('nothing was sent yet') },
  });
  end();
  await site.clock.advance(100);
  if (method === 'POST')
    await expect.poll(async () => (await state()).lastLock).toMatchObject({ outcome: 'confirmed' });
  else await expect.poll(async () => (await state()).standingOpen).toBeNull();
});

it('whose lock command was sent before it are not said to wait', async () => {
  takes(15_000);
  const first = call('POST', 'lock');
  await expect.poll(() => site.played.actuated.length).toBe(1);
  const end = move();
  const second = call('POST', 'lock');
  await expect.poll(() => site.played.isHeld).toBe(true);
  await site.clock.advance(9_000);
  expect((await first).body).toMatchObject({ outcome: 'unknown' });
  expect((await second).body).toMatchObject({ outcome: 'waiting' });
  end();
});
