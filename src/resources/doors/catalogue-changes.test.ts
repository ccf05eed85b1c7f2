import { expect, it } from 'vitest';
import { openDoorSite } from '../../../test/door-site.ts';
import { endedJob } from '../../../test/ended-job.ts';
import { temporaryDatabase } from '../../../test/temporary.ts';
import { send } from '../../../test/things-app.ts';
import type { Database } from '../../platform/database/database.ts';
import { LOCAL_ADMINISTRATOR } from '../../platform/principal.ts';

const DOORS = 90;
/** As many as a slice of time has room for, by the clock of imports (test/door-site.ts). */
const PER_COMMIT = 16;
const doors = Array.from({ length: DOORS }, (_, index) => ({
  accessPointId: index + 1,
  ...(index % 2 === 0 && { scheduleId: 's' }),
}));
const schedules = [{ id: 's', intervals: [] }];

/** How many doors have this configuration version. */
const having = (database: Database, version: number) =>
  database
    .prepare<[number], { count: number }>('SELECT count(*) AS count FROM door WHERE config_version = ?')
    .get(version)?.count;

/** A database that records each commit. */
async function watched(committed: (database: Database) => void): Promise<Database> {
  const database = await temporaryDatabase();
  return {
    ...database,
    async commit(work, urgency) {
      const done = await database.commit(work, urgency);
      committed(database);
      return done;
    },
  };
}

it('reconfigures the doors a few in each commit', async () => {
  const counts = new Set<number>();
  const database = await watched((of) => counts.add(having(of, 2) ?? 0));
  const site = await openDoorSite(database);
  await site.siteImport({ schedules, doors });
  await site.siteImport({ systemConfigVersion: 2 });
  expect([...counts]).toEqual([0, 16, 32, 48, 64, 80, DOORS]);
  expect(site.played.audits.filter(({ action }) => action === 'door.reconfigure')).toMatchObject([
    { detail: { doors: DOORS } },
  ]);
});

it('goes on where a restart has interrupted it, each door once and only those that refer to the change', async () => {
  let stop = () => {};
  const database = await watched((of) => {
    if (having(of, 2) === PER_COMMIT) stop();
  });
  const site = await openDoorSite(database);
  await site.siteImport({ schedules, doors });
  const document = { schedules: [{ id: 's', intervals: [{ days: ['mon'], start: '08:00', end: '18:00' }] }] };
  const { body } = await send('POST', '/site/import', {
    app: site.local,
    body: JSON.stringify({ document }),
  });
  stop = () => {
    stop = () => {};
    const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'test' };
    site.jobs.cancel(String(body.id), caller).catch(() => undefined);
  };
  expect((await endedJob(site.jobs, String(body.id))).status).toBe('cancelled');
  expect(having(database, 2)).toBeLessThan(DOORS / 2);

  const restarted = await openDoorSite(database);
  restarted.run();
  await restarted.clock.advance(0);
  await expect.poll(() => having(database, 2)).toBe(DOORS / 2);
  expect(having(database, 1)).toBe(DOORS / 2);
  expect((await restarted.siteImport(document)).body.written).toBe(false);
  expect(having(database, 2)).toBe(DOORS / 2);
});

it('goes on by itself when the import that began it was cancelled', async () => {
  let stop = () => {};
  const database = await watched((of) => {
    if (having(of, 2) === PER_COMMIT) stop();
  });
  const site = await openDoorSite(database);
  site.run();
  await site.siteImport({ schedules, doors });
  const { body } = await send('POST', '/site/import', {
    app: site.local,
    body: JSON.stringify({ document: { systemConfigVersion: 2 } }),
  });
  stop = () => {
    stop = () => {};
    const caller = { principal: LOCAL_ADMINISTRATOR, correlationId: 'test' };
    site.jobs.cancel(String(body.id), caller).catch(() => undefined);
  };
  expect((await endedJob(site.jobs, String(body.id))).status).toBe('cancelled');
  await expect
    .poll(async () => {
      await site.clock.advance(0);
      return having(database, 2);
    })
    .toBe(DOORS);
});
