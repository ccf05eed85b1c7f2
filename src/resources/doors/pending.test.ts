import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import type { LockApplied, LockApply } from '../../../drivers/contract/settings.ts';
import { CALLER, type DoorSite, GATEWAY, openDoorSite, refused } from '../../../test/door-site.ts';

const MAC = '00124b0001a2b3c4';
const START = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const SIGNAL = new AbortController().signal;

let site: DoorSite;
let id: string;
beforeEach(async () => {
  site = await openDoorSite();
  const { body } = await site.desk('POST', '/doors', { mac: MAC, gatewayId: GATEWAY });
  id = body.id as string;
});

const put = (body: unknown) => site.desk('PUT', `/doors/${id}`, body);
const door = async () => (await site.desk('GET', `/doors/${id}`)).body;
const pending = async () => (await site.desk('GET', `/doors/${id}/pending`)).body;
const items = async () => (await pending()).items as Record<string, unknown>[];
const statuses = async () => (await items()).map(({ configVersion, status }) => `${configVersion} ${status}`);
const cancel = () => site.desk('DELETE', `/doors/${id}/pending`);
const silent = () => Promise.reject(new DriverError('NO_REPLY', 'silence'));
const ended = () => site.played.published.filter(({ type }) => type === 'gatehouse.door.applied.v1');

describe('what waits for a lock', () => {
  it('is shown from queued to acknowledged, the newest first', async () => {
    site.played.unreachable = 'link zb-1 is down';
    await expect(site.applyAll()).rejects.toMatchObject({ code: 'LINK_LOST' });
    expect(await pending()).toEqual({
      id,
      waiting: true,
      items: [
        {
          configVersion: 1,
          status: 'queued',
          fields: [],
          wantedBy: CALLER,
          wantedAt: '2026-01-01T00:00:00.000Z',
          sentAt: null,
          endedAt: null,
          failure: null,
          nextAttempt: null,
        },
      ],
    });
    site.played.unreachable = undefined;
    site.played.lock = silent;
    await site.clock.advance(MINUTE);
    await expect(site.applyAll()).rejects.toMatchObject({ code: 'NO_REPLY' });
    expect(await items()).toMatchObject([{ status: 'sent', sentAt: '2026-01-01T00:01:00.000Z' }]);
    await put({ name: 'a', pmsId: '1' });
    expect(await items()).toMatchObject([
      { status: 'queued', fields: ['name'] },
      { status: 'superseded', endedAt: '2026-01-01T00:01:00.000Z' },
    ]);
    const failure = { version: 2, code: 'REFUSED', message: 'no', at: START, permanent: true };
    site.played.failures.set(id, failure);
    expect(await items()).toMatchObject([
      { status: 'refused', failure: { code: 'REFUSED' } },
      { failure: null },
    ]);
    site.played.failures.clear();
    await put({ number: 3 });
    site.played.lock = async ({
      hwId: _,
      configuration: __,
      ...versions
    }: LockApply): Promise<LockApplied> => ({
      ...versions,
      payloads: [],
    });
    await site.applyAll();
    expect(await statuses()).toEqual(['3 acknowledged', '2 superseded', '1 superseded']);
    expect(await pending()).toMatchObject({ waiting: false });
    expect(ended().map(({ data }) => data)).toEqual([
      { doorId: id, configVersion: 3, outcome: 'applied', reason: null },
    ]);
    site.report(MAC, { configVersion: 0 });
    expect(await statuses()).toEqual(['3 queued', '2 superseded', '1 superseded']);
  });

  it('is wanted beside what the lock acknowledged last, value by value', async () => {
    const acknowledged = async () => {
      const { configuration } = (await site.desk('GET', `/doors/${id}/state`)).body;
      return (configuration as { acknowledged: object | null }).acknowledged;
    };
    expect(await acknowledged()).toBeNull();
    await put({ name: 'a', number: 3, standOpenEnabled: true, scheduleId: 's', pmsId: '1' });
    await site.applyAll();
    const options = { accessInternal: { doors: [], interval: null }, outputs: [] };
    const kept = { name: 'a', number: 3, options, standOpenEnabled: true, scheduleId: 's', templateId: null };
    expect(await acknowledged()).toEqual(kept);
    await put({ name: 'b', number: null, options: { outputs: [{ doorId: id }] } });
    expect(await acknowledged()).toEqual(kept);
    expect(await door()).toMatchObject({ name: 'b' });
  });

  it('is published when the lock refuses it', async () => {
    site.played.lock = refused;
    await expect(site.applyAll()).rejects.toMatchObject({ code: 'REFUSED' });
    expect(ended()).toMatchObject([
      { subject: id, data: { configVersion: 1, outcome: 'refused', reason: 'the lock said no' } },
    ]);
  });

  it('is shown for the newest versions only', async () => {
    for (let number = 1; number <= 20; number += 1) await put({ number });
    expect((await statuses()).at(0)).toBe('21 queued');
    expect(await statuses()).toHaveLength(8);
  });

  it('is for those who may create doors, and of a door that exists', async () => {
    for (const role of ['front-desk', 'pms'])
      for (const method of ['GET', 'DELETE'])
        expect((await site.as(role)(method, `/doors/${id}/pending`)).status).toBe(403);
    expect((await site.as('service-tool')('GET', `/doors/${id}/pending`)).status).toBe(200);
    const unknown = '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d';
    for (const method of ['GET', 'DELETE'])
      expect((await site.desk(method, `/doors/${unknown}/pending`)).status).toBe(404);
  });
});

describe('cancelling what waits', () => {
  const APPLIED = { name: 'a', number: 1, scheduleId: 's', templateId: 't' };

  it('wants again what the lock acknowledged last, as a change of its own', async () => {
    await put({ ...APPLIED, standOpenEnabled: true });
    await site.applyAll();
    await put({
      name: 'b',
      number: 2,
      standOpenEnabled: false,
      options: { outputs: [{ doorId: id }] },
      pmsId: '7',
    });
    const { status, body } = await cancel();
    expect([status, body.waiting]).toEqual([200, true]);
    expect(await statuses()).toEqual(['4 queued', '3 cancelled', '2 acknowledged', '1 superseded']);
    const { number, ...shown } = APPLIED;
    expect(await door()).toMatchObject({ ...shown, standOpenEnabled: true, pmsId: '7', version: 4 });
    expect((await site.desk('GET', `/doors/${id}/options`)).body).toMatchObject({
      number,
      options: { outputs: [] },
    });
    expect(site.played.audits.at(-1)).toMatchObject({
      action: 'door.cancel',
      object: `door/${id}`,
      outcome: 'done',
      detail: { configVersion: 3, fields: ['name', 'number', 'options', 'standOpenEnabled'] },
    });
    await site.applyAll();
    expect(await statuses()).toMatchObject([
      '4 acknowledged',
      '3 cancelled',
      '2 acknowledged',
      '1 superseded',
    ]);
  });

  it('says when it was on its way already', async () => {
    await site.applyAll();
    site.played.lock = silent;
    await put({ name: 'b' });
    await site.applyAll().catch(() => {});
    await cancel();
    expect(await items()).toMatchObject([
      { status: 'queued', sentAt: null },
      { status: 'cancelled', sentAt: '2026-01-01T00:00:00.000Z' },
      {},
    ]);
  });

  it('changes nothing when nothing waits, or the lock has only lost what it had', async () => {
    await site.applyAll();
    const audits = site.played.audits.length;
    expect((await cancel()).status).toBe(200);
    site.report(MAC, { configVersion: 0 });
    expect((await cancel()).body).toMatchObject({ waiting: true, items: [{ configVersion: 1 }] });
    expect(site.played.audits).toHaveLength(audits);
  });

  it('is refused, with advice, before the lock has acknowledged anything', async () => {
    const { status, body } = await cancel();
    expect([status, body.error]).toEqual([409, 'NOTHING_APPLIED']);
    expect(body.message).toContain('change the door');
  });

  it('cannot cancel a change of the catalogue, which travels on beside what is cancelled', async () => {
    await put(APPLIED);
    await site.applyAll();
    await site.siteImport({ systemConfigVersion: 5 });
    const refused = { status: 409, body: { error: 'CATALOGUE_PENDING' } };
    expect(await cancel()).toMatchObject(refused);
    await put({ name: 'b' });
    const { status, body } = await cancel();
    expect([status, (body.items as unknown[])[0]]).toMatchObject([200, { fields: ['name', 'catalogue'] }]);
    expect(await door()).toMatchObject({ name: 'a' });
    expect(await cancel()).toMatchObject(refused);
    await site.applyAll();
    expect((await cancel()).status).toBe(200);
  });

  it('wins over an answer that was on its way', async () => {
    await put(APPLIED);
    await site.applyAll();
    await put({ name: 'b' });
    const answer = site.played.lock;
    site.played.lock = async (apply) => {
      await cancel();
      return answer(apply);
    };
    await site.configuration.apply({ id, version: 3 }, SIGNAL);
    expect(await door()).toMatchObject({ name: 'a', configVersion: 4 });
    expect(site.configuration.due()).toEqual([{ id, version: 4 }]);
    expect(await statuses()).toEqual(['4 queued', '3 acknowledged', '2 acknowledged', '1 superseded']);
  });
});
