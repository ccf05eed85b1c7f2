/** Groups, schedules and templates over the interface, and the doors that follow. */
import { expect, it } from 'vitest';
import { openDoorSite } from '../../../test/door-site.ts';

const DOOR = '11111111-1111-4111-8111-111111111111';
const INTERVALS = [{ days: ['mon', 'fri'], start: 480, end: 0 }];

async function open() {
  const site = await openDoorSite();
  site.run();
  const as = site.as('front-desk-admin');
  const door = async () => (await as('GET', `/doors/${DOOR}`)).body;
  const followed = (version: number) =>
    expect
      .poll(async () => {
        await site.clock.advance(0);
        return (await door()).configVersion;
      })
      .toBe(version);
  return { site, as, door, followed };
}

it('are made and changed, and the doors that have them get another configuration', async () => {
  const { site, as, door, followed } = await open();
  await site.siteImport({
    doors: [{ id: DOOR, accessPointId: 1, scheduleId: 's', templateId: 't', groupId: 'g' }],
  });
  const made = await as('PUT', '/schedules/s', { intervals: INTERVALS });
  expect(made).toMatchObject({ status: 200, body: { id: 's', version: 1, intervals: INTERVALS } });
  expect(made.headers.get('etag')).toBe('"1"');
  await followed(2);
  // What changes nothing writes nothing.
  const rows = site.played.audits.length;
  expect((await as('PUT', '/schedules/s', { version: 1, ...made.body })).body).toEqual(made.body);
  expect(site.played.audits.length).toBe(rows);
  expect((await as('PUT', '/schedules/s', { intervals: [] })).body.version).toBe(2);
  await followed(3);
  expect((await as('PUT', '/templates/t', { type: 'lift' })).body).toEqual({
    id: 't',
    version: 1,
    onlineEnabled: null,
    relaySetup: null,
    standOpenAllowed: null,
    type: 'lift',
  });
  await followed(4);
  expect((await door()).type).toBe('lift');
  // What is absent stays as it is.
  expect((await as('PUT', '/templates/t', { onlineEnabled: true })).body).toMatchObject({
    version: 2,
    type: 'lift',
  });
  await followed(5);
  expect((await as('PUT', '/groups/g', { name: 'Ground floor' })).body).toEqual({
    id: 'g',
    name: 'Ground floor',
  });
  expect((await door()).configVersion).toBe(5);
  const changed = site.played.audits.filter(({ action }) => action === 'catalogue.change');
  expect(changed.map(({ object }) => object)).toEqual([
    'schedule/s',
    'schedule/s',
    'template/t',
    'template/t',
    'group/g',
  ]);
});

it.each([
  ['schedules', { version: 2, intervals: [] }, {}, 409],
  ['schedules', { intervals: [] }, { 'if-match': '"2"' }, 412],
  ['templates', { version: 2 }, {}, 409],
  ['templates', {}, { 'if-match': '"2"' }, 412],
  ['templates', { id: 'other' }, {}, 400],
  ['schedules', { intervals: [{ days: [], start: 0, end: 0 }] }, {}, 400],
  ['schedules', { intervals: [{ days: ['mon'], start: 0, end: 1_440 }] }, {}, 400],
  ['groups', { name: ' ' }, {}, 400],
] as const)('in %s %j with %j is refused with %i', async (list, body, headers, status) => {
  const { as } = await open();
  await as('PUT', '/schedules/one', { intervals: [] });
  await as('PUT', '/templates/one', {});
  expect((await as('PUT', `/${list}/one`, body, headers)).status).toBe(status);
});

it('are not removed while a door has them, and begin above what they were when they are made again', async () => {
  const { site, as } = await open();
  await as('PUT', '/groups/g', { name: 'Floor' });
  await as('PUT', '/schedules/s', { intervals: [] });
  await as('PUT', '/schedules/s', { intervals: INTERVALS });
  await as('PUT', '/templates/t', {});
  await site.siteImport({
    doors: [{ id: DOOR, name: '214', accessPointId: 1, scheduleId: 's', templateId: 't', groupId: 'g' }],
  });
  for (const entry of ['/groups/g', '/schedules/s', '/templates/t']) {
    const { status, body } = await as('DELETE', entry);
    expect([status, body.error]).toEqual([409, 'IN_USE']);
    expect(body.message).toContain('1 door (214) have it');
  }
  await as('PUT', `/doors/${DOOR}`, { groupId: null, scheduleId: null, templateId: null });
  expect((await as('DELETE', '/schedules/s', undefined, { 'if-match': '"1"' })).status).toBe(412);
  expect((await as('DELETE', '/schedules/s')).body).toEqual({ id: 's', version: 2, intervals: INTERVALS });
  expect((await as('DELETE', '/schedules/s')).status).toBe(404);
  expect((await as('DELETE', '/groups/g')).body).toEqual({ id: 'g', name: 'Floor' });
  expect((await as('DELETE', '/templates/t')).body).toMatchObject({ id: 't', version: 1 });
  expect((await as('PUT', '/schedules/s', { intervals: [] })).body.version).toBe(3);
  expect((await as('PUT', '/templates/new', {})).body.version).toBe(3);
  const retired = site.played.audits.filter(({ action }) => action === 'catalogue.retire');
  expect(retired.map(({ object }) => object)).toEqual(['schedule/s', 'group/g', 'template/t']);
});
