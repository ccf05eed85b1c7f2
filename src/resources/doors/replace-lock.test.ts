import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Unlocked } from '../../../drivers/contract/zgate.ts';
import { type DoorSite, GATEWAY, openDoorSite, playedRelay } from '../../../test/door-site.ts';

const MAC = '00124b0001a2b3c4';
const OTHER = '00124b0001a2b3c5';

let site: DoorSite;
beforeEach(async () => {
  site = await openDoorSite();
});

const create = async (body: object) => (await site.desk('POST', '/doors', body)).body;
const door = async (id: unknown) => (await site.desk('GET', `/doors/${id}`)).body;
const doors = async () => (await site.desk('GET', '/doors')).body.items as Record<string, unknown>[];
const connection = async (id: unknown) => (await site.desk('GET', `/doors/${id}/state`)).body.connection;
const joined = (hwId: string) =>
  site.emit('lockJoined', {
    hwId,
    manufacturer: 'Acme',
    model: 'L1',
    zigbeeFirmwareVersion: '1.2',
    capabilities: [],
  });
const published = () =>
  site.played.published.filter(({ type }) => type === 'gatehouse.door.lock.v1').map(({ data }) => data);

describe('replacing a lock', () => {
  const replace = (id: unknown, mac: string, headers: object = {}) =>
    site.desk('POST', `/doors/${id}/replace-lock`, { mac }, headers);

  it.each(['ends', 'goes on'])(
    'is answered when an unlock that was on its way to the former lock has left: it %s within two seconds',
    async (how) => {
      const { id } = await create({ mac: MAC, gatewayId: GATEWAY, networkId: 'n' });
      const { promise, resolve } = Promise.withResolvers<Unlocked>();
      const end = () => resolve({ outcome: 'confirmed', relock: 'timedUnlock' });
      site.played.unlock = () => promise;
      const unlocking = site.desk('POST', `/doors/${id}/unlock`);
      await expect.poll(() => site.played.unlocks.length).toBe(1);
      let isAnswered = false;
      const answer = replace(id, OTHER).finally(() => {
        isAnswered = true;
      });
      await site.clock.advance(1_999);
      expect(isAnswered).toBe(false);
      if (how === 'ends') end();
      else await site.clock.advance(1);
      expect((await answer).status).toBe(200);
      end();
      expect((await unlocking).body).toMatchObject({ outcome: 'confirmed' });
    },
  );

  it('keeps the door and its settings, draws a new lockId, and sends all to the new lock', async () => {
    const { id, lockId, accessPointId } = await create({
      name: 'Suite',
      mac: MAC,
      gatewayId: GATEWAY,
      networkId: 'n',
    });
    await site.desk('PUT', `/doors/${id}`, { number: 12 });
    await site.applyAll();
    const { configVersion } = await door(id);
    await joined(OTHER);
    const found = (await doors()).find(({ mac }) => mac === OTHER)?.id;
    const answer = await replace(id, OTHER);
    expect(answer.body).toMatchObject({
      id,
      name: 'Suite',
      accessPointId,
      mac: OTHER,
      gatewayId: GATEWAY,
      configVersion: Number(configVersion) + 1,
      zigbeeFirmwareVersion: '1.2',
    });
    expect(answer.body.lockId).not.toBe(lockId);
    expect(await doors()).toHaveLength(1);
    expect(published().slice(-2)).toMatchObject([
      { doorId: found, change: 'merged' },
      { doorId: id, change: 'replaced', mac: OTHER },
    ]);
    expect(site.played.audits.at(-1)).toMatchObject({
      action: 'door.replace-lock',
      detail: { from: MAC, to: OTHER, merged: found },
    });
    await site.applyAll();
    expect(site.played.sent.at(-1)).toMatchObject({
      apply: { hwId: OTHER, configuration: { number: 12 } },
    });
    // The old one, put in elsewhere, is another door.
    await joined(MAC);
    expect(await doors()).toHaveLength(2);
  });

  it('waits for a lock that has not joined yet', async () => {
    const { id } = await create({ mac: MAC, gatewayId: GATEWAY, networkId: 'n' });
    expect((await replace(id, OTHER)).status).toBe(200);
    expect(await connection(id)).toMatchObject({ status: 'unknown' });
    await joined(OTHER);
    expect(await doors()).toMatchObject([{ id, mac: OTHER }]);
    expect(await connection(id)).toMatchObject({ status: 'connected' });
  });

  it('keeps the permission to stand open, and sends it to the new lock', async () => {
    site.run();
    const { id } = await create({ mac: MAC, gatewayId: GATEWAY, networkId: 'n' });
    await site.desk('PUT', `/doors/${id}`, { standOpenEnabled: true });
    await site.applyAll();
    await replace(id, OTHER);
    await site.clock.advance(16 * 60_000);
    await site.applyAll();
    expect(await door(id)).toMatchObject({ standOpenEnabled: true });
    const { apply } = site.played.sent.at(-1) ?? {};
    expect(apply).toMatchObject({ hwId: OTHER, configuration: { standOpenEnabled: true } });
  });

  it('refuses a lock whose door is wanted as it is', async () => {
    const { id } = await create({ mac: MAC });
    await create({ mac: OTHER });
    expect(await replace(id, OTHER)).toMatchObject({
      status: 409,
      body: { error: 'ALREADY_EXISTS', details: [{ path: '/mac' }] },
    });
    await joined('00124b0000000001');
    const [, , found] = await doors();
    await site.desk('PUT', `/doors/${found?.id}`, { name: 'Cellar' });
    expect(await replace(id, '00124b0000000001')).toMatchObject({ status: 409 });
    await site.desk('PUT', `/doors/${found?.id}`, { name: null });
    site.played.relays.set(String(found?.id), playedRelay(id as string));
    expect(await replace(id, '00124b0000000001')).toMatchObject({ status: 409 });
    site.played.relays.clear();
    const keys = { options: { accessInternal: { doors: [{ id: found?.id }] } } };
    await site.desk('PUT', `/doors/${id}`, keys);
    expect(await replace(id, '00124b0000000001')).toMatchObject({ status: 409 });
    expect(await door(id)).toMatchObject({ mac: MAC });
  });

  it('by itself changes nothing; of another version it is refused', async () => {
    const { id, version } = await create({ mac: MAC });
    expect((await replace(id, MAC.toUpperCase())).body).toMatchObject({ version });
    expect(await replace(id, OTHER, { 'If-Match': '"9"' })).toMatchObject({ status: 412 });
    expect(await replace(randomUUID(), OTHER)).toMatchObject({ status: 404 });
  });
});

it('a lock that was unlocked and has not shown that it is locked is refused until it has', async () => {
  const { id } = await create({ mac: MAC, gatewayId: GATEWAY, networkId: 'n' });
  await joined(OTHER);
  const found = (await doors()).find(({ mac }) => mac === OTHER)?.id;
  await site.desk('POST', `/doors/${found}/unlock`);
  const replace = () => site.desk('POST', `/doors/${id}/replace-lock`, { mac: OTHER });
  const { status, body } = await replace();
  expect([status, body.error, await door(found)]).toMatchObject([409, 'IN_PROGRESS', { mac: OTHER }]);
  await site.desk('POST', `/doors/${found}/lock`);
  expect((await replace()).body).toMatchObject({ id, mac: OTHER });
});
