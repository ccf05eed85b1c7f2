import { beforeEach, describe, expect, it } from 'vitest';
import { accessMatrix } from '../../../test/access-matrix.ts';
import { CALLER, type DoorSite, openDoorSite } from '../../../test/door-site.ts';
import { deskOf, errorOf } from '../../../test/resources/doors/doors.ts';
import { send } from '../../../test/things-app.ts';
import { door } from './schema.ts';

const UNKNOWN = '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d';
const OTHER = '0a4b7f52-6c1e-4d0b-9a57-5d1f6f0c8e21';
const MAC = '00124b0001a2b3c4';

let site: DoorSite;
beforeEach(async () => {
  site = await openDoorSite();
});
const { create, put, get } = deskOf(() => site);

it('is published as made and as edited, with what changed, and not when nothing did', async () => {
  const published = () =>
    site.played.published
      .filter(({ type }) => type === 'gatehouse.door.changed.v1')
      .map(({ data, correlationId }) => ({ ...data, correlationId }));
  const doorId = await create({ name: 'Cellar' });
  await put(doorId, { name: 'Cellar' });
  await put(doorId, { pmsId: 'P-1' });
  const { correlationId } = site.played.audits.at(-1) ?? {};
  expect(published()).toEqual([
    { doorId, change: 'created', fields: ['name'], correlationId: expect.any(String) },
    { doorId, change: 'edited', fields: ['pmsId'], correlationId },
  ]);
});

describe('a new door', () => {
  it('has exactly the fields of the specification, with nothing set', async () => {
    const { body } = await site.desk('POST', '/doors', {});
    expect(Object.keys(body).toSorted()).toEqual(Object.keys(door.shape).toSorted());
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: null,
      groupId: null,
      accessPointId: 1,
      applied: null,
      bleFirmwareVersion: null,
      capabilities: [],
      configVersion: 1,
      connectionType: null,
      connectionState: {
        evaluatedStates: { lastReceivedEvent: false, lqiOK: false, recentlySeen: false, rssiOK: false },
        lastContact: null,
        lastEvent: null,
        lastSeen: null,
        lqi: null,
        rssi: null,
      },
      createdAt: '2026-01-01T00:00:00.000Z',
      createdBy: CALLER,
      updatedAt: '2026-01-01T00:00:00.000Z',
      updatedBy: CALLER,
      dueBatteryUnderLoad: null,
      dueBatteryWithoutLoad: null,
      gatewayId: null,
      interval: null,
      lccVersion: null,
      lcuFirmwareVersion: null,
      lockId: null,
      mac: null,
      networkId: null,
      onlineEnabled: false,
      pmsId: null,
      relaySetup: null,
      samVersion: null,
      scheduleId: null,
      standOpenEnabled: false,
      templateId: null,
      type: null,
      version: 1,
      zigbeeFirmwareVersion: null,
    });
    expect(site.played.audits).toMatchObject([
      { action: 'door.create', object: `door/${body.id}`, outcome: 'done', detail: { accessPointId: 1 } },
    ]);
  });

  it('takes what is said of its lock, and binds it under an id of its own', async () => {
    const wiring = { gatewayId: 'g', networkId: 'n', accessPointId: 7, name: 'Room 7' };
    const { body, headers } = await site.desk('POST', '/doors', { ...wiring, mac: MAC.toUpperCase() });
    expect(body).toMatchObject({ ...wiring, mac: MAC, connectionType: 'zigbee' });
    expect(body.lockId).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get('etag')).toBe('"1"');
    expect(site.played.woken).toEqual([body.id]);
  });

  it('is given the lowest access point that is free', async () => {
    const numbers: unknown[] = [];
    for (const accessPointId of [2, undefined, undefined, 5, undefined])
      numbers.push((await get(await create({ accessPointId }))).accessPointId);
    expect(numbers).toEqual([2, 1, 3, 5, 4]);
  });

  it('is refused when its access point or its lock belongs to another', async () => {
    const first = await create({ accessPointId: 3, mac: MAC });
    for (const [body, path] of [
      [{ accessPointId: 3 }, '/accessPointId'],
      [{ mac: MAC.toUpperCase() }, '/mac'],
    ] as const) {
      const answer = await site.desk('POST', '/doors', body);
      expect(errorOf(answer)).toEqual([409, 'ALREADY_EXISTS']);
      expect(answer.body.details).toMatchObject([{ path, message: expect.stringContaining(first) }]);
    }
    expect((await site.desk('GET', '/doors')).body.items).toHaveLength(1);
  });

  it.each([
    ['accessPointId', 0],
    ['accessPointId', 2 ** 31],
    ['mac', '00124b0001a2b3cg'],
    ['mac', '0'.repeat(16)],
    ['mac', 'F'.repeat(16)],
    ['connectionType', 'wifi'],
    ['gatewayId', 'a\u0000b'],
    ['id', UNKNOWN],
  ])('is refused with %s = %j', async (field, value) => {
    expect((await site.desk('POST', '/doors', { [field]: value })).status).toBe(400);
  });
});

describe('reads', () => {
  it('know a door in any case, refuse what is no UUID, and miss what does not exist', async () => {
    const id = await create();
    expect((await get(id.toUpperCase())).id).toBe(id);
    for (const part of ['', '/options', '/state']) {
      expect(errorOf(await site.desk('GET', `/doors/room-1${part}`))).toEqual([400, 'VALIDATION_FAILED']);
      expect(errorOf(await site.desk('GET', `/doors/${UNKNOWN}${part}`))).toEqual([404, 'NOT_FOUND']);
    }
    expect(errorOf(await put('room-1', {}))).toEqual([400, 'VALIDATION_FAILED']);
  });

  it('list in the order of access points, page by page', async () => {
    for (const accessPointId of [12, 4, 9]) await create({ accessPointId });
    const seen: unknown[] = [];
    let cursor: unknown = '';
    do {
      const { body } = await site.desk('GET', `/doors?limit=2${cursor}`);
      seen.push(...(body.items as { accessPointId: number }[]).map(({ accessPointId }) => accessPointId));
      cursor = body.next === null ? undefined : `&cursor=${body.next}`;
    } while (cursor !== undefined);
    expect(seen).toEqual([4, 9, 12]);
  });

  it('list what a filter lets through', async () => {
    const a = await create({ name: 'Room 1', gatewayId: 'g1', networkId: 'n1' });
    const b = await create({ name: 'Suite', gatewayId: 'g2', networkId: 'n1' });
    await put(a, { groupId: 'x', pmsId: '1' });
    const ids = async (query: string) => {
      const { body } = await site.desk('GET', `/doors?${query}`);
      return (body.items as { id: string }[]).map(({ id }) => id);
    };
    expect(await ids('groupId=x')).toEqual([a]);
    expect(await ids('pmsId=1')).toEqual([a]);
    expect(await ids('pmsId=2')).toEqual([]);
    expect(await ids('gatewayId=g2')).toEqual([b]);
    expect(await ids('networkId=n1')).toEqual([a, b]);
    const uuid = '6F1C2A9E-58D4-4A39-9D41-0C5F7A1F3B2D';
    const c = await create({ gatewayId: uuid, networkId: uuid });
    for (const id of [uuid, uuid.toLowerCase()]) {
      expect(await ids(`gatewayId=${id}`)).toEqual([c]);
      expect(await ids(`networkId=${id}`)).toEqual([c]);
    }
    expect(await ids('networkId=n1&gatewayId=g1')).toEqual([a]);
    expect(await ids('name=ROOM')).toEqual([a]);
    const d = await create({ name: 'ÄPFEL' });
    expect(await ids('name=%C3%A4pfel')).toEqual([d]);
    expect(await ids(`name=${b.slice(0, 8)}`)).toEqual([b]);
    expect(errorOf(await site.desk('GET', '/doors?colour=red'))).toEqual([400, 'UNKNOWN_FIELD']);
    for (const query of ['limit=0', 'limit=251', 'cursor=x', 'name='])
      expect((await site.desk('GET', `/doors?${query}`)).status).toBe(400);
  });

  it('name what the door refers to and no one knows', async () => {
    const id = await create();
    await put(id, {
      groupId: 'g',
      scheduleId: 's',
      templateId: 't',
      options: {
        accessInternal: { doors: [{ id: UNKNOWN }, { id }, { id: UNKNOWN }] },
        outputs: [{ doorId: OTHER, access: { doors: [{ id: OTHER }] } }],
      },
    });
    expect(await get(id, '/state')).toMatchObject({
      group: null,
      unknown: [
        { field: 'groupId', id: 'g' },
        { field: 'scheduleId', id: 's' },
        { field: 'templateId', id: 't' },
        { field: 'options.accessInternal.doors', id: UNKNOWN },
        { field: 'options.outputs.doorId', id: OTHER },
        { field: 'options.outputs.access.doors', id: OTHER },
      ],
    });
  });
});

it('lets in the roles of each operation and no one else', async () => {
  const cases = accessMatrix(site.operations);
  for (const { method, path, role, allowed } of cases) {
    const body = method === 'GET' ? {} : { body: '{"none": 1}' };
    const { status } = await send(method, path, { as: role, app: site.lan, ...body });
    expect([method, path, role, status !== 403]).toEqual([method, path, role, allowed]);
  }
  const may = (id: string) =>
    cases.filter((one) => one.operation === id && one.allowed).map(({ role }) => role);
  expect(may('updateDoor')).toEqual(['front-desk-admin']);
  expect(may('createDoor')).toEqual(['service-tool', 'front-desk-admin']);
  for (const id of ['listDoors', 'getDoor', 'getDoorOptions', 'getDoorState', 'listGroups'])
    expect(may(id)).toHaveLength(5);
});
