/** What a lock that is known cannot carry is refused at PUT (422), with the field; an import stores it. */
import { beforeEach, describe, expect, it } from 'vitest';
import { type DoorSite, GATEWAY, openDoorSite, playedRelay } from '../../../test/door-site.ts';

const MAC = '00124b0001a2b3c4';
const DEVICE = '80000000-0000-4000-8000-000000000008';
const OPTIONS = {
  accessInternal: { doors: [{ id: '70000000-0000-4000-8000-000000000001' }] },
  outputs: [{ doorId: '70000000-0000-4000-8000-000000000001' }],
};

let site: DoorSite;
let id: string;
beforeEach(async () => {
  site = await openDoorSite();
  const body = { mac: MAC, gatewayId: GATEWAY, networkId: 'n' };
  id = (await site.desk('POST', '/doors', body)).body.id as string;
});
const put = (body: object) => site.desk('PUT', `/doors/${id}`, body);
const door = async () => (await site.desk('GET', `/doors/${id}`)).body;

describe('a standard lock', () => {
  beforeEach(() => site.report(MAC, { capabilities: ['users', 'pins'] }));

  it('refuses options and schedules, each with its field, and nothing of the body is stored', async () => {
    const { status, body } = await put({ name: 'Gate', options: OPTIONS, scheduleId: 'office' });
    expect([status, body.error]).toEqual([422, 'NOT_SUPPORTED']);
    const fields = ['/options/accessInternal', '/options/outputs', '/scheduleId'];
    expect(body.details?.map(({ path }) => path)).toEqual(fields);
    expect(await door()).toMatchObject({ name: null, scheduleId: null, version: 1 });
  });

  it('takes what the gateway keeps for it, and what clears', async () => {
    const body = { name: 'Gate', number: 7, templateId: 'room', standOpenEnabled: true };
    expect((await put({ ...body, scheduleId: null, options: null })).status).toBe(200);
  });

  it('refuses the permission to stand open where it cannot', async () => {
    site.report(MAC, { standOpen: 'none' });
    expect(await put({ standOpenEnabled: true })).toMatchObject({
      status: 422,
      body: { error: 'NOT_SUPPORTED', details: [{ path: '/standOpenEnabled' }] },
    });
  });

  it('keeps what was wanted before, also by an import', async () => {
    const entry = { id, options: OPTIONS, scheduleId: 'office', standOpenEnabled: true };
    expect((await site.siteImport({ doors: [entry] })).status).toBe(200);
    expect((await put({ name: 'Gate', scheduleId: 'office', options: OPTIONS })).status).toBe(200);
    expect(await door()).toMatchObject({ name: 'Gate', scheduleId: 'office', standOpenEnabled: true });
    expect((await put({ scheduleId: 'other' })).status).toBe(422);
  });

  it('limits nothing where a relay opens the door', async () => {
    site.played.relays.set(id, playedRelay(DEVICE));
    expect((await put({ scheduleId: 'office' })).status).toBe(200);
  });
});

describe('anything is taken', () => {
  const all = { options: OPTIONS, scheduleId: 'office', standOpenEnabled: true };
  it.each([
    ['a lock that has not reported what it can', undefined],
    ['a lock that can', { capabilities: ['accessInternal', 'outputs', 'schedule'] }],
    [
      'a lock whose users have schedules',
      { capabilities: ['accessInternal', 'outputs', 'weekDaySchedules'] },
    ],
    [
      'a lock of the manufacturer whose capabilities were not read',
      { capabilities: ['pins'], lccVersion: '1' },
    ],
  ])('by %s', async (_name, report) => {
    if (report) site.report(MAC, report);
    expect((await put(all)).status).toBe(200);
  });

  it('by a door without a lock', async () => {
    const bare = (await site.desk('POST', '/doors', {})).body.id;
    expect((await site.desk('PUT', `/doors/${bare}`, all)).status).toBe(200);
  });
});
