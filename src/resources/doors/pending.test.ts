import { beforeEach, describe, expect, it } from 'vitest';
import { DriverError } from '../../../drivers/contract/driver.ts';
import type { LockApplied, LockApply } from '../../../drivers/contract/settings.ts';
import { CALLER, type Estate, GATEWAY, openEstate, refused } from '../../../test/estate.ts';

const MAC = '00124b0001a2b3c4';
const START = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const SIGNAL = new AbortController().signal;

let estate: Estate;
let id: string;
beforeEach(async () => {
  estate = await openEstate();
  const { body } = await estate.desk('POST', '/doors', { mac: MAC, gatewayId: GATEWAY });
  id = body.id as string;
});

const put = (body: unknown) => estate.desk('PUT', `/doors/${id}`, body);
const door = async () => (await estate.desk('GET', `/doors/${id}`)).body;
const pending = async () => (await estate.desk('GET', `/doors/${id}/pending`)).body;
const items = async () => (await pending()).items as Record<string, unknown>[];
const statuses = async () => (await items()).map(({ configVersion, status }) => `${configVersion} ${status}`);
const cancel = () => estate.desk('DELETE', `/doors/${id}/pending`);
const silent = () => Promise.reject(new DriverError('NO_REPLY', 'silence'));
const ended = () => estate.played.published.filter(({ type }) => type === 'gatehouse.door.applied.v1');

describe('what waits for a lock', () => {
  it('is shown from queued to acknowledged, the newest first', async () => {
    estate.played.unreachable = 'link zb-1 is down';
    await expect(estate.applyAll()).rejects.toMatchObject({ code: 'LINK_LOST' });
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
    estate.played.unreachable = undefined;
    estate.played.lock = silent;
    await estate.clock.advance(MINUTE);
    await expect(estate.applyAll()).rejects.toMatchObject({ code: 'NO_REPLY' });
    expect(await items()).toMatchObject([{ status: 'sent', sentAt: '2026-01-01T00:01:00.000Z' }]);
    await put({ name: 'a', pmsId: '1' });
    expect(await items()).toMatchObject([
      { status: 'queued', fields: ['name'] },
      { status: 'superseded', endedAt: '2026-01-01T00:01:00.000Z' },
    ]);
    const failure = { version: 2, code: 'REFUSED', message: 'no', at: START, permanent: true };
    estate.played.failures.set(id, failure);
    expect(await items()).toMatchObject([
      { status: 'refused', failure: { code: 'REFUSED' } },
      { failure: null },
    ]);
    estate.played.failures.clear();
    await put({ number: 3 });
    estate.played.lock = async ({
      hwId: _,
      configuration: __,
      ...versions
    }: LockApply): Promise<LockApplied> => ({
      ...versions,
      payloads: [],
    });
    await estate.applyAll();
    expect(await statuses()).toEqual(['3 acknowledged', '2 superseded', '1 superseded']);
    expect(await pending()).toMatchObject({ waiting: false });
    expect(ended().map(({ data }) => data)).toEqual([
      { doorId: id, configVersion: 3, outcome: 'applied', reason: null },
    ]);
    estate.report(MAC, { configVersion: 0 });
    expect(await statuses()).toEqual(['3 queued', '2 superseded', '1 superseded']);
  });

  it('is published when the lock refuses it', async () => {
    estate.played.lock = refused;
    await expect(estate.applyAll()).rejects.toMatchObject({ code: 'REFUSED' });
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
        expect((await estate.as(role)(method, `/doors/${id}/pending`)).status).toBe(403);
    expect((await estate.as('service-tool')('GET', `/doors/${id}/pending`)).status).toBe(200);
    const unknown = '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d';
    for (const method of ['GET', 'DELETE'])
      expect((await estate.desk(method, `/doors/${unknown}/pending`)).status).toBe(404);
  });
});

describe('cancelling what waits', () => {
  const APPLIED = { name: 'a', number: 1, scheduleId: 's', templateId: 't' };

  it('wants again what the lock acknowledged last, as a change of its own', async () => {
    await put({ ...APPLIED, standOpenEnabled: true });
    await estate.applyAll();
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
    expect((await estate.desk('GET', `/doors/${id}/options`)).body).toMatchObject({
      number,
      options: { outputs: [] },
    });
    expect(estate.played.audits.at(-1)).toMatchObject({
      action: 'door.cancel',
      object: `door/${id}`,
      outcome: 'done',
      detail: { configVersion: 3, fields: ['name', 'number', 'options', 'standOpenEnabled'] },
    });
    await estate.applyAll();
    expect(await statuses()).toMatchObject([
      '4 acknowledged',
      '3 cancelled',
      '2 acknowledged',
      '1 superseded',
    ]);
  });

  it('says when it was on its way already', async () => {
    await estate.applyAll();
    estate.played.lock = silent;
    await put({ name: 'b' });
    await estate.applyAll().catch(() => {});
    await cancel();
    expect(await items()).toMatchObject([
      { status: 'queued', sentAt: null },
      { status: 'cancelled', sentAt: '2026-01-01T00:00:00.000Z' },
      {},
    ]);
  });

  it('changes nothing when nothing waits, or the lock has only lost what it had', async () => {
    await estate.applyAll();
    const audits = estate.played.audits.length;
    expect((await cancel()).status).toBe(200);
    estate.report(MAC, { configVersion: 0 });
    expect((await cancel()).body).toMatchObject({ waiting: true, items: [{ configVersion: 1 }] });
    expect(estate.played.audits).toHaveLength(audits);
  });

  it('is refused, with advice, before the lock has acknowledged anything', async () => {
    const { status, body } = await cancel();
    expect([status, body.error]).toEqual([409, 'NOTHING_APPLIED']);
    expect(body.message).toContain('change the door');
  });

  it('cannot cancel a change of the catalogue, which travels on beside what is cancelled', async () => {
    await put(APPLIED);
    await estate.applyAll();
    await estate.siteImport({ systemConfigVersion: 5 });
    const refused = { status: 409, body: { error: 'CATALOGUE_PENDING' } };
    expect(await cancel()).toMatchObject(refused);
    await put({ name: 'b' });
    const { status, body } = await cancel();
    expect([status, (body.items as unknown[])[0]]).toMatchObject([200, { fields: ['name', 'catalogue'] }]);
    expect(await door()).toMatchObject({ name: 'a' });
    expect(await cancel()).toMatchObject(refused);
    await estate.applyAll();
    expect((await cancel()).status).toBe(200);
  });

  it('wins over an answer that was on its way', async () => {
    await put(APPLIED);
    await estate.applyAll();
    await put({ name: 'b' });
    const answer = estate.played.lock;
    estate.played.lock = async (apply) => {
      await cancel();
      return answer(apply);
    };
    await estate.configuration.apply({ id, version: 3 }, SIGNAL);
    expect(await door()).toMatchObject({ name: 'a', configVersion: 4 });
    expect(estate.configuration.due()).toEqual([{ id, version: 4 }]);
    expect(await statuses()).toEqual(['4 queued', '3 acknowledged', '2 acknowledged', '1 superseded']);
  });
});
