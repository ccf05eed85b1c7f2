import { beforeEach, describe, expect, it } from 'vitest';
import { type DoorSite, openDoorSite, SYSTEM } from '../../../test/door-site.ts';
import {
  A,
  B,
  everythingOn,
  faultsOn,
  listed,
  MAC,
  SITE,
} from '../../../test/resources/site-import/testbed.ts';
import type { Role } from '../../platform/principal.ts';
import { uuidV5 } from '../../platform/uuid.ts';
import { readSite } from './site-file.ts';

/** UUIDv5 of access point 9 in the namespace of the system. */
const DRAWN = uuidV5(SYSTEM, '["door","9",0]');

let site: DoorSite;
beforeEach(async () => {
  site = await openDoorSite();
});

const list = (what: string) => listed(site, what);
const everything = () => everythingOn(site);
const faults = (document: unknown) => faultsOn(site, document);
/** `resource id: change (fields)` of all that is not unchanged. */
async function changes(document: unknown, dryRun = false) {
  const { status, body } = await site.siteImport(document, dryRun);
  expect(status).toBe(200);
  const all = body.changes as { resource: string; id: string; change: string; fields: { field: string }[] }[];
  return all
    .filter(({ change }) => change !== 'unchanged')
    .map(({ resource, id, change, fields }) =>
      `${resource} ${id}: ${change} ${fields.map(({ field }) => field).join()}`.trim(),
    );
}
describe('an import', () => {
  it('writes all sections, with what templates inherit and doors refer to', async () => {
    const { body } = await site.siteImport(SITE);
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
            id: 'base',
            version: 1,
            onlineEnabled: true,
            relaySetup: null,
            standOpenAllowed: true,
            type: 'room',
          },
          {
            id: 'suite',
            version: 1,
            onlineEnabled: true,
            relaySetup: null,
            standOpenAllowed: null,
            type: 'suite',
          },
        ],
        next: null,
        systemConfigVersion: 2,
      },
    });
    expect(doors).toMatchObject([
      { id: B, accessPointId: 1, name: 'Lift', mac: null },
      {
        id: A,
        accessPointId: 7,
        name: 'Room 7',
        type: 'suite',
        onlineEnabled: true,
        mac: MAC,
        interval: { start: 0, end: 60 },
        version: 1,
        configVersion: 1,
      },
      { accessPointId: 9, name: null },
    ]);
    expect(site.played.woken).toEqual(expect.arrayContaining([A, B]));
    expect((await site.desk('GET', `/doors/${A}/state`)).body).toMatchObject({
      group: 'Lobby',
      unknown: [],
    });
  });

  it('shows the same before it writes, and writes nothing in a dry run', async () => {
    const before = await everything();
    const dry = await site.siteImport(SITE, true);
    expect(await everything()).toEqual(before);
    expect(site.played).toMatchObject({ audits: [], woken: [] });
    const { body } = await site.siteImport(SITE);
    expect(dry.body).toEqual({ ...body, written: false });
    expect(body.changes).toContainEqual({
      resource: 'door',
      id: DRAWN,
      name: null,
      change: 'added',
      fields: [{ field: 'accessPointId', from: null, to: 9 }],
    });
    expect(await list('doors')).toContainEqual(expect.objectContaining({ id: DRAWN, accessPointId: 9 }));
  });

  it('does nothing the second time', async () => {
    await site.siteImport(SITE);
    const before = await everything();
    site.played.audits.length = 0;
    site.played.woken.length = 0;
    const { body } = await site.siteImport(SITE);
    expect(body).toMatchObject({ written: false, counts: { added: 0, changed: 0, unchanged: 8 } });
    expect(await everything()).toEqual(before);
    expect(site.played).toMatchObject({ audits: [], woken: [] });
  });

  it('changes what differs, field by field, and leaves alone what the file does not name', async () => {
    await site.siteImport(SITE);
    const { lockId } = (await site.desk('GET', `/doors/${A}`)).body;
    expect(await changes({ doors: [{ accessPointId: 7, name: null, pmsId: '7', gatewayId: 'z' }] })).toEqual([
      'group g: left alone',
      'schedule s: left alone',
      'template base: left alone',
      'template suite: left alone',
      `door ${A}: changed name,pmsId,gatewayId`,
      `door ${B}: left alone`,
      expect.stringMatching(/^door .*: left alone$/),
    ]);
    const door = (await site.desk('GET', `/doors/${A}`)).body;
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
    await site.siteImport(SITE);
    const rows = site.played.audits.map(({ action, object }) => `${action} ${object}`);
    expect(rows).toEqual(
      expect.arrayContaining(['catalogue.import group/g', `door.import door/${A}`, 'site.import site']),
    );
    expect(rows).toHaveLength(9);
    expect(site.played.audits.at(-1)?.detail).toMatchObject({ added: 7, changed: 1 });
  });

  it('hands the devices to their slice, and says what is wrong with them from the document', async () => {
    const { GatehouseError } = await import('../../platform/errors.ts');
    const device = { hwId: 'io-1', bus: 'b', doorId: A };
    const seen: unknown[] = [];
    site.played.rs485 = (entries) => {
      seen.push(...entries);
      throw new GatehouseError('RELAY_IN_USE', 'in use', {
        details: [{ path: '/0/doorId', code: 'RELAY_IN_USE', message: 'another device opens it' }],
      });
    };
    const { status, body } = await site.siteImport({ ...SITE, rs485: [device] });
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
    expect(seen.at(-1)).toEqual(device);
  });

  it('takes the example', async () => {
    const { site: document } = readSite(`${import.meta.dirname}/../../../config/site.example.yaml`);
    expect((await site.siteImport(document)).body).toMatchObject({
      written: true,
      counts: { added: 9, changed: 1 },
    });
    expect(await changes(document)).toEqual([]);
  });
});

describe('doors are configured again', () => {
  const versions = async () =>
    ((await list('doors')) as { configVersion: number }[]).map(({ configVersion }) => configVersion);
  beforeEach(async () => {
    await site.siteImport(SITE);
    site.played.woken.length = 0;
  });

  it.each([
    ['their schedule', { schedules: [{ id: 's', intervals: [] }] }, [1, 2, 1]],
    ['their template', { templates: [{ id: 'suite' }] }, [1, 2, 1]],
    ['a template they do not use', { templates: [{ id: 'base' }] }, [1, 1, 1]],
    ['the system configuration', { systemConfigVersion: 3 }, [2, 2, 2]],
    ['the name of their group', { groups: [{ id: 'g', name: 'Hall' }] }, [1, 1, 1]],
  ])('when %s changes, and only then', async (_name, document, expected) => {
    await site.siteImport(document);
    expect(await versions()).toEqual(expected);
    const bumped = ((await list('doors')) as { id: string; configVersion: number; version: number }[]).filter(
      ({ configVersion }) => configVersion === 2,
    );
    expect(site.played.woken.toSorted()).toEqual(bumped.map(({ id }) => id).toSorted());
    for (const door of bumped) expect(door.version).toBe(2);
  });

  it('with the catalogue and again with its own change, which may come much later', async () => {
    await site.siteImport({ systemConfigVersion: 3, doors: [{ id: A, name: 'New' }] });
    expect(await versions()).toEqual([2, 3, 2]);
  });

  it('when a schedule they name comes to be known', async () => {
    await site.desk('PUT', `/doors/${B}`, { scheduleId: 'late' });
    await site.siteImport({ schedules: [{ id: 'late', intervals: [] }] });
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
      await site.siteImport(document);
      seen.push(await present());
    }
    expect(seen).toEqual([1, 1, 2]);
  });

  it('go up with each change, and never down', async () => {
    await site.siteImport({ ...schedules(5), systemConfigVersion: 3 });
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
    await site.siteImport(SITE);
    const base = { id: 'base', onlineEnabled: false, standOpenAllowed: true, type: 'room' };
    const child = { ...SITE.templates[1], version: 1 };
    expect(await faults({ ...SITE, templates: [base, child] })).toEqual([
      expect.stringMatching(/^\/document\/templates\/1\/version: the entry was changed/),
    ]);
    await site.siteImport({ ...SITE, templates: [base, { ...child, version: 2 }] });
    expect(await list('doors')).toMatchObject([{}, { id: A, onlineEnabled: false, configVersion: 2 }, {}]);
  });

  it('of a template may build on one that only the site has', async () => {
    await site.siteImport(SITE);
    await site.siteImport({ templates: [{ id: 'new', extends: 'base', relaySetup: 'x' }] });
    expect(await list('templates')).toContainEqual({
      id: 'new',
      version: 1,
      onlineEnabled: true,
      relaySetup: 'x',
      standOpenAllowed: true,
      type: 'room',
    });
  });
});

it('is planned on the network by who may change each of its sections, and by no one else', async () => {
  const { send } = await import('../../../test/things-app.ts');
  const plan = (as: Role) =>
    send('POST', '/site/plan', { as, app: site.lan, body: '{"document":{"doors":[{"accessPointId":9}]}}' });
  expect((await plan('service-tool')).status).toBe(403);
  expect(await plan('front-desk-admin')).toMatchObject({ status: 200, body: { counts: { added: 1 } } });
});

it('imports a thousand doors, and the same again, well within its deadline', async () => {
  const doors = Array.from({ length: 1_000 }, (_, index) => ({
    accessPointId: index + 1,
    name: `Room ${index}`,
    mac: `00124b${index.toString(16).padStart(10, '0')}`,
  }));
  const { body } = await site.siteImport({ doors });
  expect(body.counts).toMatchObject({ added: 1_000 });
  expect((await site.siteImport({ doors })).body.counts).toMatchObject({ added: 0, unchanged: 1_000 });
});
