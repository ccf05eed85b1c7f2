/** Locks that join and leave, that move to another gateway, and what happens at them. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Plain } from '../../../drivers/contract/driver.ts';
import { type DoorSite, GATEWAY, OTHER_GATEWAY, OTHER_LINK, openDoorSite } from '../../../test/door-site.ts';

const MAC = '00124b0001a2b3c4';
const OTHER = '00124b0001a2b3c5';
const START = Date.UTC(2026, 0, 1);

let site: DoorSite;
beforeEach(async () => {
  site = await openDoorSite();
});

type Body = Record<string, unknown>;
const create = async (body: object) => (await site.desk('POST', '/doors', body)).body;
const door = async (id: unknown) => (await site.desk('GET', `/doors/${id}`)).body;
const doors = async () => (await site.desk('GET', '/doors')).body.items as Body[];
const connection = async (id: unknown) =>
  (await site.desk('GET', `/doors/${id}/state`)).body.connection as Body;
const joined = (hwId = MAC, more: Record<string, Plain> = {}, id: string = randomUUID(), link?: string) =>
  site.emit(
    'lockJoined',
    {
      hwId,
      manufacturer: 'Acme',
      model: 'L1',
      zigbeeFirmwareVersion: '1.2',
      capabilities: ['standOpen'],
      ...more,
    },
    id,
    link,
  );
const published = (type = 'gatehouse.door.lock.v1') =>
  site.played.published.filter((event) => event.type === type).map(({ data }) => data);
const actions = () => site.played.audits.map(({ action }) => action);

describe('a lock that joins', () => {
  it('becomes a door, with what it reported, and its configuration due', async () => {
    expect(await joined()).toBe(true);
    const [only, ...rest] = await doors();
    expect(rest).toEqual([]);
    expect(only).toMatchObject({
      accessPointId: 1,
      name: null,
      mac: MAC,
      gatewayId: GATEWAY,
      networkId: 'n',
      connectionType: 'zigbee',
      zigbeeFirmwareVersion: '1.2',
      capabilities: ['standOpen'],
      lockId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      // Its gateway reports when it was heard; the event may have waited for the disk.
      connectionState: { lastSeen: null, lastContact: null },
    });
    expect(await connection(only?.id)).toMatchObject({ status: 'connected', leftAt: null });
    expect(actions()).toEqual(['door.lock-joined']);
    expect(published()).toEqual([{ doorId: only?.id, change: 'joined', mac: MAC, gatewayId: GATEWAY }]);
    expect(site.played.woken).toContain(only?.id);
    await site.applyAll();
    expect(site.played.sent).toMatchObject([{ lock: { gatewayId: GATEWAY }, apply: { hwId: MAC } }]);
  });

  it('is taken in once, however often it is sent', async () => {
    await joined(MAC, {}, 'event-1');
    await joined(MAC, {}, 'event-1');
    expect(actions()).toEqual(['door.lock-joined']);
    const again = await openDoorSite(site.database);
    expect(await again.emit('lockJoined', lockData(MAC), 'event-1')).toBe(true);
    expect(again.played.published).toEqual([]);
  });

  it('is bound to the door that waits for it', async () => {
    const { id, lockId } = await create({ mac: MAC, name: 'Suite' });
    await joined();
    expect(await doors()).toHaveLength(1);
    expect(await door(id)).toMatchObject({
      name: 'Suite',
      lockId,
      gatewayId: GATEWAY,
      networkId: 'n',
      connectionType: 'zigbee',
    });
    await joined(OTHER);
    expect(await doors()).toMatchObject([{ id }, { accessPointId: 2, mac: OTHER }]);
  });

  it('is sent all again when it joins again, for it may have been reset', async () => {
    await joined();
    await site.applyAll();
    expect(site.played.sent).toHaveLength(1);
    await site.applyAll();
    expect(site.played.sent).toHaveLength(1);
    await joined();
    await site.applyAll();
    expect(site.played.sent).toHaveLength(2);
  });

  it.each([
    ['another kind of address', { hwId: 'lock' }],
    ['too many capabilities', { capabilities: Array(65).fill('x') }],
  ])('is no door with %s', async (_name, more) => {
    expect(await joined(MAC, more as Record<string, Plain>)).toBe(true);
    expect(await doors()).toEqual([]);
  });

  it('is none of ours on a link that is no gateway, nor is an event of another kind', async () => {
    expect(await joined(MAC, {}, 'x', 'bus-1')).toBe(false);
    expect(await site.emit('snapshot', {})).toBe(false);
  });
});

describe('a lock that leaves', () => {
  it('is disconnected and stays that of its door, until it joins again', async () => {
    await joined();
    const [{ id, lockId } = {}] = await doors();
    await site.emit('lockLeft', { hwId: MAC });
    expect(await door(id)).toMatchObject({ mac: MAC, lockId, gatewayId: GATEWAY });
    expect(await connection(id)).toMatchObject({
      status: 'disconnected',
      leftAt: '2026-01-01T00:00:00.000Z',
    });
    expect(published().at(-1)).toMatchObject({ change: 'left' });
    // What the driver still says of it is older.
    site.report(MAC, { lastSeen: START + 1, heardAt: -1 });
    expect(await connection(id)).toMatchObject({
      status: 'disconnected',
      leftAt: expect.any(String),
    });
    await joined();
    expect(await door(id)).toMatchObject({ lockId });
    expect(await connection(id)).toMatchObject({ status: 'connected', leftAt: null });
  });

  it('a gateway that lost it to another one changes nothing', async () => {
    await create({ mac: MAC, gatewayId: 'another', networkId: 'n' });
    await site.emit('lockLeft', { hwId: MAC });
    expect(published()).toEqual([]);
  });

  it('is there again when it is heard of later, joined or not', async () => {
    await joined();
    const [{ id } = {}] = await doors();
    await site.emit('lockLeft', { hwId: MAC });
    site.report(MAC, { lastSeen: START + 1, heardAt: 1 });
    await expect.poll(() => connection(id)).toMatchObject({ status: 'connected', leftAt: null });
  });

  it.each([-3_600_000, 3_600_000])(
    'is there again only then when the clock is set by %i ms',
    async (jump) => {
      await joined();
      const [{ id } = {}] = await doors();
      await site.clock.advance(1_000);
      await site.emit('lockLeft', { hwId: MAC });
      site.clock.jumpWall(jump);
      // An event that its gateway still had to send, and a report from before it left.
      await site.emit('lockEvent', { hwId: MAC, kind: 'bolt', what: 'locked', source: null, at: START });
      site.report(MAC, { lastSeen: site.clock.now(), heardAt: 999 });
      expect(await connection(id)).toMatchObject({ status: 'disconnected', leftAt: expect.any(String) });
      site.report(MAC, { lastSeen: site.clock.now(), heardAt: 1_001 });
      await expect.poll(() => connection(id)).toMatchObject({ status: 'connected', leftAt: null });
    },
  );
});

describe('a lock that is heard through another gateway', () => {
  it('takes its door there', async () => {
    const { id } = await create({ mac: MAC, gatewayId: 'another', networkId: 'm' });
    site.report(MAC, { lastSeen: START, heardAt: 0 });
    await expect.poll(() => door(id)).toMatchObject({ gatewayId: GATEWAY, networkId: 'n' });
    expect(published()).toEqual([{ doorId: id, change: 'moved', mac: MAC, gatewayId: GATEWAY }]);
    expect(actions()).toContain('door.lock-moved');
  });

  it('does not when the other gateway has heard it later', async () => {
    const { id } = await create({ mac: MAC, gatewayId: OTHER_GATEWAY, networkId: 'n' });
    // Whatever the wall clock said meanwhile.
    site.report(MAC, { lastSeen: START, heardAt: 5 }, OTHER_LINK);
    site.report(MAC, { lastSeen: START + 9_000, heardAt: 4 });
    await site.database.commit(() => undefined);
    expect(await door(id)).toMatchObject({ gatewayId: OTHER_GATEWAY });
    site.report(MAC, { lastSeen: START - 9_000, heardAt: 6 });
    await expect.poll(() => door(id)).toMatchObject({ gatewayId: GATEWAY });
  });

  it('does not before the gateway has heard it in this run', async () => {
    const { id } = await create({ mac: MAC, gatewayId: OTHER_GATEWAY, networkId: 'n' });
    const report = { connected: true, hwId: MAC, lastSeen: START, heardAt: 7_000 };
    await site.database.commit(() => site.table.setReport.run(OTHER_GATEWAY, MAC, JSON.stringify(report)));
    const again = await openDoorSite(site.database);
    again.report(MAC, { lastSeen: START + 1 });
    await again.database.commit(() => undefined);
    expect(again.doors.get(String(id)).door.gatewayId).toBe(OTHER_GATEWAY);
    // The monotonic clock of the earlier run may be that of another boot.
    again.report(MAC, { lastSeen: START + 2, heardAt: 1 });
    await expect.poll(() => again.doors.get(String(id)).door.gatewayId).toBe(GATEWAY);
  });
});

describe('what happens at a lock', () => {
  const event = { hwId: MAC, kind: 'operation', what: 'unlocked', source: 'keypad', userId: 7, at: START };

  it('is published, and shows as the last event of its door', async () => {
    await joined();
    const [{ id } = {}] = await doors();
    expect(await site.emit('lockEvent', event)).toBe(true);
    expect(published('gatehouse.door.event.v1')).toEqual([
      {
        doorId: id,
        kind: 'operation',
        what: 'unlocked',
        source: 'keypad',
        userId: 7,
        at: '2026-01-01T00:00:00.000Z',
      },
    ]);
    expect(await door(id)).toMatchObject({
      connectionState: {
        lastEvent: '2026-01-01T00:00:00.000Z',
        evaluatedStates: { lastReceivedEvent: true },
      },
    });
  });

  it.each([
    ['digits of a PIN in it', { what: 'pin123456' }],
    ['digits of a PIN as its source', { source: '4711' }],
    ['a date there is not', { at: 8.65e15 }],
  ])('is dropped with %s', async (_name, more) => {
    await joined();
    expect(await site.emit('lockEvent', { ...event, ...more })).toBe(true);
    expect(published('gatehouse.door.event.v1')).toEqual([]);
  });

  it('says nothing about the presence of a lock not heard of since the start', async () => {
    const { id } = await create({ mac: MAC, gatewayId: GATEWAY, networkId: 'n' });
    await site.emit('lockEvent', event);
    expect(await connection(id)).toMatchObject({ status: 'unknown' });
  });
});

function lockData(hwId: string): Plain {
  return { hwId, manufacturer: null, model: null, zigbeeFirmwareVersion: null, capabilities: [] };
}
