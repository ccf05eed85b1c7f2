import { beforeEach, describe, expect, it } from 'vitest';
import { type Estate, openEstate } from '../../test/estate.ts';
import { readSite } from '../site-file.ts';

const A = '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d';
const B = '0a4b7f52-6c1e-4d0b-9a57-5d1f6f0c8e21';
const MAC = '00124b0001a2b3c4';
const SITE = {
  systemConfigVersion: 2,
  groups: [{ id: 'g', name: 'Lobby' }],
  schedules: [{ id: 's', intervals: [{ days: ['mon'], start: '08:00', end: '00:00' }] }],
  templates: [
    { id: 'base', onlineEnabled: true, standOpenAllowed: true, type: 'room' },
    { id: 'suite', extends: 'base', type: 'suite', standOpenAllowed: null },
  ],
  doors: [
    {
      ...{ id: A, accessPointId: 7, name: 'Room 7', groupId: 'g', scheduleId: 's', templateId: 'suite' },
      ...{ mac: MAC, number: 7 },
      options: { accessInternal: { doors: [{ id: B }], interval: { start: 0, end: 60 } } },
    },
    { id: B, name: 'Lift' },
    { accessPointId: 9 },
  ],
};

let estate: Estate;
beforeEach(async () => {
  estate = await openEstate();
});

const list = async (what: string) => (await estate.desk('GET', `/${what}`)).body.items as object[];
const everything = async () => ({
  doors: await list('doors'),
  groups: await list('groups'),
  schedules: await list('schedules'),
  templates: (await estate.desk('GET', '/templates')).body,
});
/** `resource id: change (fields)` of all that is not unchanged. */
async function changes(document: unknown, dryRun = false) {
  const { status, body } = await estate.siteImport(document, dryRun);
  expect(status).toBe(200);
  const all = body.changes as { resource: string; id: string; change: string; fields: { field: string }[] }[];
  return all
    .filter(({ change }) => change !== 'unchanged')
    .map(({ resource, id, change, fields }) =>
      `${resource} ${id}: ${change} ${fields.map(({ field }) => field).join()}`.trim(),
    );
}
async function faults(document: unknown) {
  const before = await everything();
  const { status, body } = await estate.siteImport(document);
  expect([status, body.error]).toEqual([400, 'VALIDATION_FAILED']);
  expect(await everything()).toEqual(before);
  const dry = await estate.siteImport(document, true);
  expect(dry.body.details).toEqual(body.details);
  return ((body.details ?? []) as unknown as { path: string; message: string }[]).map(
    ({ path, message }) => `${path}: ${message}`,
  );
}

describe('an import', () => {
  it('writes all sections, with what templates inherit and doors refer to', async () => {
    const { body } = await estate.siteImport(SITE);
    expect(body).toMatchObject({
      written: true,
      counts: { added: 7, changed: 1, unchanged: 0, leftAlone: 0 },
    });
    const { doors, ...catalogue } = await everything();
    expect(catalogue).toEqual({
      groups: [{ id: 'g', name: 'Lobby' }],
      schedules: [{ id: 's', version: 1, intervals: [{ days: ['mon'], start: 480, end: 0 }] }],
      templates: {
        items: [
          {
            ...{ id: 'base', version: 1, onlineEnabled: true, relaySetup: null },
            ...{ standOpenAllowed: true, type: 'room' },
          },
          {
            ...{ id: 'suite', version: 1, onlineEnabled: true, relaySetup: null },
            ...{ standOpenAllowed: null, type: 'suite' },
          },
        ],
        next: null,
        systemConfigVersion: 2,
      },
    });
    expect(doors).toMatchObject([
      { id: B, accessPointId: 1, name: 'Lift', mac: null },
      {
        ...{ id: A, accessPointId: 7, name: 'Room 7', type: 'suite', onlineEnabled: true, mac: MAC },
        ...{ interval: { start: 0, end: 60 }, version: 1, configVersion: 1 },
      },
      { accessPointId: 9, name: null },
    ]);
    expect(estate.played.woken).toEqual(expect.arrayContaining([A, B]));
    expect((await estate.desk('GET', `/doors/${A}/state`)).body).toMatchObject({
      group: 'Lobby',
      unknown: [],
    });
  });

  it('shows the same before it writes, and writes nothing in a dry run', async () => {
    const before = await everything();
    const dry = await estate.siteImport(SITE, true);
    expect(await everything()).toEqual(before);
    expect(estate.played).toMatchObject({ audits: [], woken: [] });
    const { body } = await estate.siteImport(SITE);
    expect(dry.body).toEqual({ ...body, written: false });
    expect(body.changes).toContainEqual({
      ...{ resource: 'door', id: 'access point 9', name: null, change: 'added' },
      fields: [{ field: 'accessPointId', from: null, to: 9 }],
    });
  });

  it('does nothing the second time', async () => {
    await estate.siteImport(SITE);
    const before = await everything();
    estate.played.audits.length = 0;
    estate.played.woken.length = 0;
    const { body } = await estate.siteImport(SITE);
    expect(body).toMatchObject({ written: false, counts: { added: 0, changed: 0, unchanged: 8 } });
    expect(await everything()).toEqual(before);
    expect(estate.played).toMatchObject({ audits: [], woken: [] });
  });

  it('changes what differs, field by field, and leaves alone what the file does not name', async () => {
    await estate.siteImport(SITE);
    const { lockId } = (await estate.desk('GET', `/doors/${A}`)).body;
    expect(await changes({ doors: [{ accessPointId: 7, name: null, pmsId: '7', gatewayId: 'z' }] })).toEqual([
      'group g: left alone',
      'schedule s: left alone',
      'template base: left alone',
      'template suite: left alone',
      `door ${A}: changed name,pmsId,gatewayId`,
      `door ${B}: left alone`,
      expect.stringMatching(/^door .*: left alone$/),
    ]);
    const door = (await estate.desk('GET', `/doors/${A}`)).body;
    expect(door).toMatchObject({
      name: null,
      pmsId: '7',
      gatewayId: 'z',
      groupId: 'g',
      mac: MAC,
      lockId,
      version: 2,
    });
    expect(await list('doors')).toHaveLength(3);
  });

  it('leaves an audit row for each thing it changed, and one for all', async () => {
    await estate.siteImport(SITE);
    const rows = estate.played.audits.map(({ action, object }) => `${action} ${object}`);
    expect(rows).toEqual(
      expect.arrayContaining(['catalogue.import group/g', `door.import door/${A}`, 'site.import site']),
    );
    expect(rows).toHaveLength(9);
    expect(estate.played.audits.at(-1)?.detail).toMatchObject({ added: 7, changed: 1 });
  });

  it('is all or nothing, also when a section refuses last', async () => {
    const before = await everything();
    estate.played.rs485 = () => ({
      changes: [],
      write() {
        throw new Error('disk of the devices');
      },
    });
    expect((await estate.siteImport(SITE)).status).toBe(500);
    expect(await everything()).toEqual(before);
    expect(estate.played.woken).toEqual([]);
  });

  it('hands the devices to their slice, and tells what is wrong with them from the document', async () => {
    const { GatehouseError } = await import('../errors.ts');
    const device = { hwId: 'io-1', bus: 'b', doorId: A };
    const seen: unknown[] = [];
    estate.played.rs485 = (entries) => {
      seen.push(...entries);
      throw new GatehouseError('RELAY_IN_USE', 'in use', {
        details: [{ path: '/0/doorId', code: 'RELAY_IN_USE', message: 'another device opens it' }],
      });
    };
    const { status, body } = await estate.siteImport({ ...SITE, rs485: [device] });
    expect([status, body.error, body.details]).toEqual([
      409,
      'RELAY_IN_USE',
      [
        {
          path: '/document/rs485/0/doorId',
          code: 'RELAY_IN_USE',
          message: 'another device opens it',
        },
      ],
    ]);
    expect(seen).toEqual([device]);
  });

  it('takes the example', async () => {
    const { site } = readSite(`${import.meta.dirname}/../../config/site.example.yaml`);
    expect((await estate.siteImport(site)).body).toMatchObject({
      written: true,
      counts: { added: 9, changed: 1 },
    });
    expect(await changes(site)).toEqual([]);
  });
});

describe('doors are configured anew', () => {
  const versions = async () =>
    ((await list('doors')) as { configVersion: number }[]).map(({ configVersion }) => configVersion);
  beforeEach(async () => {
    await estate.siteImport(SITE);
    estate.played.woken.length = 0;
  });

  it.each([
    ['their schedule', { schedules: [{ id: 's', intervals: [] }] }, [1, 2, 1]],
    ['their template', { templates: [{ id: 'suite' }] }, [1, 2, 1]],
    ['a template they do not use', { templates: [{ id: 'base' }] }, [1, 1, 1]],
    ['the system configuration', { systemConfigVersion: 3 }, [2, 2, 2]],
    ['the name of their group', { groups: [{ id: 'g', name: 'Hall' }] }, [1, 1, 1]],
  ])('when %s changes, and only then', async (_name, document, expected) => {
    await estate.siteImport(document);
    expect(await versions()).toEqual(expected);
    const bumped = ((await list('doors')) as { id: string; configVersion: number; version: number }[]).filter(
      ({ configVersion }) => configVersion === 2,
    );
    expect(estate.played.woken.toSorted()).toEqual(bumped.map(({ id }) => id).toSorted());
    for (const door of bumped) expect(door.version).toBe(2);
  });

  it('once, when the door changes as well', async () => {
    await estate.siteImport({ systemConfigVersion: 3, doors: [{ id: A, name: 'New' }] });
    expect(await versions()).toEqual([2, 2, 2]);
  });

  it('when a schedule they name comes to be known', async () => {
    await estate.desk('PUT', `/doors/${B}`, { scheduleId: 'late' });
    await estate.siteImport({ schedules: [{ id: 'late', intervals: [] }] });
    expect(await versions()).toEqual([3, 1, 1]);
  });
});

describe('versions', () => {
  const interval = { days: ['tue'], start: '10:00', end: '11:00' };
  const schedules = (version: number | undefined, ...intervals: object[]) => ({
    schedules: [{ id: 's', ...(version !== undefined && { version }), intervals }],
  });
  const present = async () => ((await list('schedules'))[0] as { version: number }).version;

  it('are counted where the file gives none', async () => {
    const seen: number[] = [];
    for (const document of [schedules(undefined), schedules(undefined), schedules(undefined, interval)]) {
      await estate.siteImport(document);
      seen.push(await present());
    }
    expect(seen).toEqual([1, 1, 2]);
  });

  it('go up with each change, and never down', async () => {
    await estate.siteImport({ ...schedules(5), systemConfigVersion: 3 });
    expect(await faults(schedules(5, interval))).toEqual([
      '/document/schedules/0/version: the entry was changed: make it 6, or leave it out to have it counted',
    ]);
    expect(await faults({ ...schedules(4), systemConfigVersion: 2 })).toEqual([
      '/document/systemConfigVersion: the site has 3 already: this file is older',
      '/document/schedules/0/version: the site has 5 already: this file is older',
    ]);
    expect(await changes(schedules(8))).toEqual(['schedule s: changed version']);
  });

  it('of a template count what it inherits', async () => {
    await estate.siteImport(SITE);
    const base = { id: 'base', onlineEnabled: false, standOpenAllowed: true, type: 'room' };
    const child = { ...SITE.templates[1], version: 1 };
    expect(await faults({ ...SITE, templates: [base, child] })).toEqual([
      expect.stringMatching(/^\/document\/templates\/1\/version: the entry was changed/),
    ]);
    await estate.siteImport({ ...SITE, templates: [base, { ...child, version: 2 }] });
    expect(await list('doors')).toMatchObject([{}, { id: A, onlineEnabled: false, configVersion: 2 }, {}]);
  });

  it('of a template may build on one that only the site has', async () => {
    await estate.siteImport(SITE);
    await estate.siteImport({ templates: [{ id: 'new', extends: 'base', relaySetup: 'x' }] });
    expect(await list('templates')).toContainEqual({
      ...{ id: 'new', version: 1, onlineEnabled: true, relaySetup: 'x' },
      ...{ standOpenAllowed: true, type: 'room' },
    });
  });
});

describe('what is refused whole', () => {
  const doors = (...entries: object[]) => ({ doors: entries });
  it.each([
    [
      {
        groups: [
          { id: 'g', name: 'a' },
          { id: 'g', name: 'b' },
        ],
      },
      '/groups/1/id: another one of groups has g as well: see /document/groups/0/id',
    ],
    [doors({ id: A }, { id: A.toUpperCase() }), `/doors/1/id: another one of doors has ${A} as well`],
    [doors({ accessPointId: 1 }, { accessPointId: 1 }), '/doors/1/accessPointId: another one of doors has 1'],
    [
      doors({ id: A, mac: MAC }, { id: B, mac: MAC.toUpperCase() }),
      `/doors/1/mac: another one of doors has ${MAC}`,
    ],
    [
      {
        rs485: [
          { hwId: 'a', bus: 'x' },
          { hwId: 'a', bus: 'y' },
          { hwId: 'a', bus: 'x' },
        ],
      },
      '/rs485/2/hwId: another one of rs485 has a on x',
    ],
    [
      { doors: [{ id: A }], rs485: ['a', 'b'].map((hwId) => ({ hwId, bus: 'x', doorId: A })) },
      `/rs485/1/doorId: another one of rs485 has ${A}`,
    ],
    [
      {
        templates: [
          { id: 'a', extends: 'b' },
          { id: 'b', extends: 'c' },
          { id: 'c', extends: 'a' },
        ],
      },
      '/templates/0/extends: goes in a circle: a → b → c → a',
    ],
    [{ templates: [{ id: 'a', extends: 'a' }] }, '/templates/0/extends: goes in a circle: a → a'],
    [{ templates: [{ id: 'a', extends: 'b' }] }, '/templates/0/extends: there is no template b'],
    [doors({ id: A, groupId: 'x' }), '/doors/0/groupId: there is no group x, in the file or on the site'],
    [doors({ id: A, scheduleId: 'x' }), '/doors/0/scheduleId: there is no schedule x'],
    [doors({ id: A, templateId: 'x' }), '/doors/0/templateId: there is no template x'],
    [
      doors({ id: A, options: { accessInternal: { doors: [{ id: A }, { id: B }] } } }),
      `/doors/0/options/accessInternal/doors/1/id: there is no door ${B}`,
    ],
    [doors({ id: A, options: { outputs: [{ doorId: B }] } }), '/doors/0/options/outputs/0/doorId: there is'],
    [
      doors({ id: A, options: { outputs: [{ doorId: A, access: { doors: [{ id: B }] } }] } }),
      '/doors/0/options/outputs/0/access/doors/0/id: there is no door',
    ],
    [{ rs485: [{ hwId: 'a', bus: 'x', doorId: B }] }, '/rs485/0/doorId: there is no door'],
    [{ rs485: [{ hwId: 'a', bus: 'x', groupId: 'x' }] }, '/rs485/0/groupId: there is no group'],
  ])('%j', async (document, expected) => {
    const told = await faults(document);
    expect(told).toHaveLength(1);
    expect(told[0]).toContain(`/document${expected}`);
  });

  it('what contradicts the doors there are', async () => {
    await estate.siteImport(SITE);
    const told = await faults(
      doors(
        { id: A, accessPointId: 8, mac: '0000000000000001' },
        { id: B, accessPointId: 9 },
        { accessPointId: 3, mac: MAC },
      ),
    );
    expect(told).toEqual([
      `/document/doors/0/accessPointId: door ${A} has access point 7, which stays`,
      `/document/doors/0/mac: door ${A} has the lock ${MAC}: replace-lock changes it`,
      `/document/doors/1/accessPointId: door ${B} has access point 1, which stays`,
      `/document/doors/2/mac: is the lock of door ${A}`,
    ]);
    const stranger = { id: '11111111-1111-4111-8111-111111111111', accessPointId: 7 };
    expect(await faults(doors(stranger))).toEqual([
      `/document/doors/0/accessPointId: is that of door ${A}: give its id, or another access point`,
    ]);
  });

  it('what the schema does not have, over the socket too', async () => {
    expect((await estate.siteImport({ door: [] })).body.error).toBe('UNKNOWN_FIELD');
    expect((await estate.siteImport({ doors: [{ name: 'x' }] })).body.details).toMatchObject([
      { path: '/document/doors/0', message: expect.stringContaining('accessPointId') },
    ]);
  });
});

it('is not served on the network', async () => {
  const { send } = await import('../../test/things-app.ts');
  const answer = await send('POST', '/local/import', { as: 'service-tool', app: estate.lan, body: '{}' });
  expect(answer.status).toBe(404);
});

it('imports a thousand doors, and the same again, well within its deadline', async () => {
  const doors = Array.from({ length: 1_000 }, (_, index) => ({
    accessPointId: index + 1,
    name: `Room ${index}`,
    mac: index.toString(16).padStart(16, '0'),
  }));
  const { body } = await estate.siteImport({ doors });
  expect(body.counts).toMatchObject({ added: 1_000 });
  expect((await estate.siteImport({ doors })).body.counts).toMatchObject({ added: 0, unchanged: 1_000 });
});
