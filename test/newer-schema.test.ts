/** A version runs on the schema of the next one where that only added: an update that is taken back costs no data. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openConnection } from '../src/platform/database/connection.ts';
import { openTestGateway } from './gateway.ts';

const NEXT = `ALTER TABLE door ADD COLUMN later TEXT NOT NULL DEFAULT 'x'; ALTER TABLE audit ADD COLUMN later INTEGER;
  CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT; CREATE INDEX later_door ON door (later);`;

async function brought(folder: string, sql: string): Promise<void> {
  using connection = openConnection(join(folder, 'data/gatehouse.db'));
  const next = Number(connection.pragma('user_version')) + 1;
  connection.exec(`${sql}; PRAGMA user_version = ${next}`);
}

it('runs on the next schema where that only added, with all that is stored, and refuses it otherwise', async () => {
  const first = await openTestGateway();
  const { folder } = first;
  await first.local('POST', '/access/doors', { name: '101' });
  await first.close();
  await brought(folder, NEXT);

  const before = await openTestGateway({}, folder);
  await before.local('POST', '/access/doors', { name: '102' });
  const { items } = JSON.parse(await before.local('GET', '/access/doors')) as { items: { name: string }[] };
  expect(items.map(({ name }) => name).sort()).toEqual(['101', '102']);
  expect(JSON.parse(await before.local('POST', '/local/audit/verify', { after: 0 }))).toMatchObject({
    complete: true,
    fault: null,
  });
  await before.close();

  await brought(folder, 'UPDATE schema_support SET oldest = oldest + 100');
  await expect(openTestGateway({}, folder)).rejects.toThrow(/has schema \d+, this Gatehouse knows up to/);
  await brought(
    folder,
    'UPDATE schema_support SET oldest = oldest - 100; CREATE TRIGGER hidden AFTER INSERT ON door BEGIN SELECT 1; END',
  );
  await expect(openTestGateway({}, folder)).rejects.toThrow('trigger hidden, which Gatehouse has not made');
});
