import { beforeEach, expect, it } from 'vitest';
import { type DoorSite, openDoorSite } from '../../../test/door-site.ts';
import { endedJob } from '../../../test/ended-job.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import { send } from '../../../test/things-app.ts';
import type { Database } from '../../platform/database/database.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';
import type { Job } from '../../services/jobs/schema.ts';

const CALLER = { principal: LOCAL_ADMINISTRATOR, correlationId: 'test' };
const DOORS = 120;
const idOf = (index: number) => `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`;
const doors = Array.from({ length: DOORS }, (_, index) => ({
  id: idOf(index),
  accessPointId: index + 1,
  name: `Room ${index + 1}`,
}));
const document = { groups: [{ id: 'g', name: 'Lobby' }], doors };

let site: DoorSite;
let job: Job;
/** Done once, before the first commit after so many changes of the import. */
let meanwhile: { after: number; work(): Promise<unknown> } | undefined;

beforeEach(async () => {
  meanwhile = undefined;
  const database = await temporaryDatabase();
  const interrupted: Database = {
    ...database,
    async commit(work, urgency) {
      const { after = 0, work: first } = meanwhile ?? {};
      if (first && running().progress.done >= after) {
        meanwhile = undefined;
        await first();
      }
      return database.commit(work, urgency);
    },
  };
  site = await openDoorSite(interrupted);
});

const running = () => site.jobs.get(job.id, LOCAL_ADMINISTRATOR);
async function start(body: object): Promise<void> {
  const { status, body: started } = await send('POST', '/site/import', {
    app: site.local,
    body: JSON.stringify({ document: body }),
  });
  expect(status).toBe(202);
  job = started as unknown as Job;
}
const named = () =>
  site.database
    .prepare<[], { count: number }>("SELECT count(*) AS count FROM door WHERE name LIKE 'Room %'")
    .get()?.count;

it('writes in commits of as many doors as a slice of time has room for, and shows how far it is', async () => {
  const seen: (number | undefined)[] = [];
  await start(document);
  meanwhile = { after: 50, work: async () => void seen.push(named(), running().progress.done) };
  expect(await endedJob(site.jobs, job.id)).toMatchObject({
    status: 'done',
    progress: { done: DOORS + 1, total: DOORS + 1, percent: 100 },
    result: { written: true, counts: { added: DOORS + 1 }, warnings: [] },
  });
  // The group is a change as well.
  expect(seen).toEqual([64, 65]);
  expect(named()).toBe(DOORS);
});

it('serves others in between', async () => {
  await start(document);
  expect((await site.desk('POST', '/doors', { accessPointId: 500 })).status).toBe(200);
  expect(running().status).toBe('running');
  expect((await endedJob(site.jobs, job.id)).status).toBe('done');
});

it('stops where another writer has changed a door, says what is written, and writes the rest the next time', async () => {
  await site.siteImport({ doors: doors.map(({ id, accessPointId }) => ({ id, accessPointId })) });
  const changed = idOf(99);
  await start(document);
  meanwhile = { after: 51, work: () => site.desk('PUT', `/doors/${changed}`, { name: 'Gate' }) };
  expect(await endedJob(site.jobs, job.id)).toMatchObject({
    status: 'failed',
    error: {
      code: 'VERSION_CONFLICT',
      message: `door ${changed} (Room 100) was changed meanwhile. Written: 97 changes. Not written: 24 changes from door ${idOf(96)} (Room 97) on. Import again: what is written stays, and the rest is written.`,
    },
  });
  expect(named()).toBe(96);
  expect((await site.desk('GET', `/doors/${changed}`)).body.name).toBe('Gate');
  expect((await site.siteImport(document)).body).toMatchObject({
    written: true,
    counts: { changed: 24, unchanged: 97 },
  });
  expect(named()).toBe(DOORS);
});

it('stops where another door has come to have the lock', async () => {
  const mac = '00124b0001a2b3c4';
  await start({ doors: [...doors.slice(0, 60), { accessPointId: 61, mac }] });
  const create = { accessPointId: 500, mac };
  meanwhile = { after: 25, work: () => site.desk('POST', '/doors', create) };
  const { error } = await endedJob(site.jobs, job.id);
  expect(error).toMatchObject({
    code: 'VERSION_CONFLICT',
    message: expect.stringContaining('Written: 48 changes. Not written: 13 changes from door'),
  });
});

it('can be cancelled; what is written stays, and the same import writes the rest', async () => {
  await start(document);
  meanwhile = { after: 51, work: () => site.jobs.cancel(job.id, CALLER) };
  expect((await endedJob(site.jobs, job.id)).status).toBe('cancelled');
  expect(named()).toBe(80);
  expect((await site.siteImport(document)).body).toMatchObject({
    counts: { added: 40, unchanged: 81 },
  });
  expect(named()).toBe(DOORS);
});

it('writes the devices last: where they fail, the doors are written', async () => {
  site.played.rs485 = () => ({
    changes: [{ resource: 'rs485 device', id: 'd', name: null, change: 'added', fields: [] }],
    write() {
      throw new Error('disk of the devices');
    },
  });
  await start({ ...document, rs485: [{ hwId: 'io-1', bus: 'b' }] });
  expect(await endedJob(site.jobs, job.id)).toMatchObject({
    status: 'failed',
    error: { code: 'INTERNAL' },
  });
  expect(named()).toBe(DOORS);
  expect(site.played.audits.map(({ action }) => action)).not.toContain('site.import');
});

it('is one at a time', async () => {
  await start(document);
  const second = await send('POST', '/site/import', {
    app: site.local,
    body: JSON.stringify({ document }),
  });
  expect([second.status, second.body.error]).toEqual([409, 'IN_PROGRESS']);
  expect((await endedJob(site.jobs, job.id)).status).toBe('done');
});

it('checks a long document entry by entry, and says where each fault is', async () => {
  const bad = [...doors, { accessPointId: 500, nmae: 'x' }, { name: 'Room' }];
  const { status, body } = await site.siteImport({ doors: bad, rs485: 7 }, true);
  expect([status, body.error]).toEqual([400, 'VALIDATION_FAILED']);
  expect(body.details?.map(({ path }) => path)).toEqual([
    '/document/rs485',
    `/document/doors/${DOORS}/nmae`,
    `/document/doors/${DOORS + 1}`,
  ]);
});
