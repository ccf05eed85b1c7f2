import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { temporaryDatabase, temporaryFolder } from '../../test/temporary.ts';
import { silentLog } from '../platform/log.ts';
import { openInventory } from './inventory.ts';

const HOUR_MS = 3_600_000;
const clock = manualClock(Date.UTC(2026, 5, 1));

async function installation() {
  const folder = temporaryFolder();
  const database = await temporaryDatabase(folder);
  const file = join(folder, 'inventory.json');
  const errors: object[] = [];
  const log = { ...silentLog, error: (fields: object) => void errors.push(fields) };
  const sql = (text: string) => database.commit(() => void database.prepare<[]>(text).run());
  return {
    file,
    errors,
    sql,
    start: (databaseId = 'one') => openInventory({ database, databaseId, file, clock, log }),
    /** Runs, notes what is there, and ends. */
    async run(databaseId = 'one') {
      const { keep } = openInventory({ database, databaseId, file, clock, log });
      await keep(AbortSignal.abort()).catch(() => {});
    },
    addDoors: (count: number) =>
      sql(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
        INSERT INTO door (id, access_point_id, options, config_by, config_correlation_id, created_at, created_by, updated_at, updated_by)
        SELECT 'door ' || i, i, '{}', '', '', 0, '', 0, '' FROM n`),
    lose: (count: number) => sql(`DELETE FROM door WHERE id IN (SELECT id FROM door LIMIT ${count})`),
    retire: (count: number) =>
      sql(`INSERT INTO audit (at, actor_id, actor, action, object, outcome, detail, correlation_id, mac)
        SELECT 0, '', '', 'door.retire', 'door/' || id, 'done', '{}', '', x'00' FROM door LIMIT ${count}`),
  };
}

it('stops the start where doors are gone that no one has removed, until a person says that it is right', async () => {
  const { file, start, run, addDoors, lose } = await installation();
  await addDoors(20);
  await run();
  await lose(3);
  expect(start).toThrow(
    /has 17 doors, and had 20 on 2026-06-01T.*gatehouse restore FILE.*remove .*inventory\.json/,
  );
  // It asks again at each start.
  expect(start).toThrow('has 17 doors');
  rmSync(file);
  await run();
  expect(start).not.toThrow();
});

it('goes on where the audit says who removed them, and after a restore', async () => {
  const { start, run, addDoors, lose, retire } = await installation();
  await addDoors(20);
  await run();
  await retire(15);
  await lose(15);
  await run();
  expect(start).not.toThrow();
  await lose(5);
  expect(start).toThrow('has 0 doors, and had 5');
  await run('two');
});

it('goes on where little is missing', async () => {
  const { run, addDoors, lose } = await installation();
  await addDoors(20);
  await run();
  await lose(2);
  await run();
});

it('notes what is there each hour, and says so when it cannot read it', async () => {
  const { file, errors, start, addDoors, lose } = await installation();
  const site = start();
  const stop = new AbortController();
  const keeping = site.keep(stop.signal).catch(() => {});
  await expect.poll(() => clock.sleepers()).toBe(1);
  await addDoors(7);
  await clock.advance(HOUR_MS);
  await expect.poll(() => JSON.parse(readFileSync(file, 'utf8')).counts.doors).toBe(7);
  stop.abort();
  await keeping;
  await lose(7);
  expect(start).toThrow('has 0 doors, and had 7');
  writeFileSync(file, '{"databaseId": "one"');
  expect(errors).toEqual([]);
  expect(start).not.toThrow();
  expect(errors).toEqual([{ file, reason: 'it is damaged' }]);
});
