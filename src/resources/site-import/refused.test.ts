import { beforeEach, describe, expect, it } from 'vitest';
import { type DoorSite, NOWHERE, openDoorSite } from '../../../test/door-site.ts';
import { A, B, faultsOn, MAC, SITE } from '../../../test/resources/site-import/testbed.ts';
import { GatehouseError } from '../../platform/errors.ts';

const doors = (...entries: object[]) => ({ doors: entries });

let site: DoorSite;
beforeEach(async () => {
  site = await openDoorSite();
});

describe('is refused whole', () => {
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
    [{ rs485: [{ hwId: 'a', bus: 'bb' }] }, '/rs485/0/bus: links of the configuration has no bus "bb"'],
    [doors({ id: A, gatewayId: NOWHERE }), '/doors/0/gatewayId: there is no Zigbee gateway nowhere'],
    [doors({ id: A, networkId: NOWHERE }), '/doors/0/networkId: there is no network nowhere'],
  ])('%j', async (document, expected) => {
    const faults = await faultsOn(site, document);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(`/document${expected}`);
  });

  it('what contradicts the doors there are', async () => {
    await site.siteImport(SITE);
    const faults = await faultsOn(
      site,
      doors(
        { id: A, accessPointId: 8, mac: '0000000000000001' },
        { id: B, accessPointId: 9 },
        { accessPointId: 3, mac: MAC },
      ),
    );
    expect(faults).toEqual([
      `/document/doors/0/accessPointId: door ${A} has access point 7, which stays`,
      `/document/doors/0/mac: door ${A} has the lock ${MAC}: replace-lock changes it`,
      `/document/doors/1/accessPointId: door ${B} has access point 1, which stays`,
      `/document/doors/2/mac: is the lock of door ${A}`,
    ]);
    const stranger = { id: '11111111-1111-4111-8111-111111111111', accessPointId: 7 };
    expect(await faultsOn(site, doors(stranger))).toEqual([
      `/document/doors/0/accessPointId: is that of door ${A}: give its id, or another access point`,
    ]);
  });

  it('what the schema does not have, over the socket too', async () => {
    expect((await site.siteImport({ door: [] })).body.error).toBe('UNKNOWN_FIELD');
    expect((await site.siteImport({ doors: [{ name: 'x' }] })).body.details).toMatchObject([
      { path: '/document/doors/0', message: expect.stringContaining('accessPointId') },
    ]);
  });

  it('everything that is wrong, whichever section finds it', async () => {
    await site.siteImport({ ...SITE, systemConfigVersion: 3 });
    site.played.rs485 = () => {
      throw new GatehouseError('RELAY_IN_USE', 'in use', {
        details: [{ path: '/0/doorId', code: 'RELAY_IN_USE', message: 'another device opens it' }],
      });
    };
    const faults = await faultsOn(site, {
      systemConfigVersion: 1,
      doors: [
        { id: A, accessPointId: 8, gatewayId: NOWHERE },
        { accessPointId: 9, networkId: NOWHERE },
      ],
      rs485: [{ hwId: 'a', bus: 'nowhere', doorId: A }],
    });
    expect(faults.map((fault) => fault.replace(/: .*/, ''))).toEqual([
      '/document/doors/0/gatewayId',
      '/document/doors/1/networkId',
      '/document/rs485/0/bus',
      '/document/systemConfigVersion',
      '/document/doors/0/accessPointId',
      '/document/rs485/0/doorId',
    ]);
  });
});

describe('is stored, and named', () => {
  const warnings = async (document: unknown, dryRun = false) => {
    const { status, body } = await site.siteImport(document, dryRun);
    expect(status).toBe(200);
    return (body.warnings as { path: string; message: string }[]).map(
      ({ path, message }) => `${path}: ${message}`,
    );
  };
  const groups = [{ id: 'lobby', name: 'Lobby' }];
  it.each([
    [
      { groups, ...doors({ id: A, groupId: 'loby' }) },
      '/doors/0/groupId: there is no group loby, in the file or on the site (did you mean "lobby"?): stored as unknown',
    ],
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
    [
      doors({ id: A, groupId: 'x' }, { id: B, groupId: 'x' }, { accessPointId: 3, groupId: 'x' }),
      '/doors/0/groupId: there is no group x, in the file or on the site: stored as unknown 3 times',
    ],
  ])('%j', async (document, expected) => {
    const faults = await warnings(document, true);
    expect(faults).toEqual([expect.stringContaining(`/document${expected}`)]);
    expect(await warnings(document)).toEqual(faults);
  });

  it('until it is known', async () => {
    expect(await warnings(doors({ id: A, groupId: 'lobby' }))).toHaveLength(1);
    const state = async () => (await site.desk('GET', `/doors/${A}/state`)).body.unknown;
    expect(await state()).toEqual([{ field: 'groupId', id: 'lobby' }]);
    expect(await warnings({ groups })).toEqual([]);
    expect(await warnings(doors({ id: A, groupId: 'lobby' }))).toEqual([]);
    expect(await state()).toEqual([]);
  });
});
