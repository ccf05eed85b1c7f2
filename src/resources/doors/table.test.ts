import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryDatabase, temporaryFolder } from '../../../test/temporary.ts';
import { openConnection } from '../../platform/database/connection.ts';
import { migrate, readMigrations } from '../../platform/database/migrate.ts';
import { openDoorTable } from './table.ts';

it('doors of a database from before locks were heard of keep what they have, and wait for what they waited for', async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'gatehouse.db');
  writeFileSync(file, '');
  using connection = openConnection(file);
  await migrate(connection, folder, readMigrations().slice(0, 7));
  connection.exec(`
    INSERT INTO template (id, version, stand_open_allowed) VALUES ('closed', 1, 0);
    INSERT INTO door (id, access_point_id, name, options, stand_open_enabled, template_id, config_version, config_by,
      config_correlation_id, applied_config_version, applied, created_at, created_by, updated_at, updated_by)
    VALUES
      ('settled', 1, 'a', '{"accessInternal":{}}', 1, NULL, 2, 'p', 'c', 2, '{}', 1, 'p', 7, 'p'),
      ('waiting', 2, 'b', '{}', 1, NULL, 2, 'p', 'c', 1, '{}', 1, 'p', 7, 'p'),
      ('forbidden', 3, 'c', '{}', 1, 'closed', 2, 'p', 'c', NULL, NULL, 1, 'p', 7, 'p'),
      ('tightened', 4, 'd', '{}', 1, NULL, 2, 'p', 'c', 2, '{}', 1, 'p', 7, 'p'),
      ('sent', 5, 'e', '{}', 1, NULL, 2, 'p', 'c', 1, '{}', 1, 'p', 7, 'p')`);
  await migrate(connection, folder, readMigrations().slice(0, 15));
  connection.exec(`
    UPDATE door SET stand_open_enabled = 0, config_version = 3, stand_open_in_force = 0 WHERE id = 'tightened';
    UPDATE door_delivery SET status = 'sent', sent_at = 8 WHERE door_id = 'sent'`);
  await migrate(connection, folder);
  const table = openDoorTable(connection);
  const { applied_wanted, ...settled } = table.door.get('settled') ?? {};
  expect(JSON.parse(applied_wanted ?? '')).toEqual({
    name: 'a',
    number: null,
    options: { accessInternal: {} },
    standOpenEnabled: true,
    scheduleId: null,
    templateId: null,
  });
  expect(settled).toMatchObject({ stand_open_enabled: 1, presence_told: 'unknown' });
  expect(table.deliveries.all('settled')).toMatchObject([{ config_version: 2, status: 'acknowledged' }]);
  expect(table.door.get('waiting')).toMatchObject({ stand_open_enabled: 1, applied_wanted: null });
  expect(table.deliveries.all('waiting')).toMatchObject([
    { config_version: 2, status: 'queued', wanted_at: 7, wanted_by: 'p', ended_at: null },
  ]);
  // Those whose locks may have been sent the command to stand open: the next start closes them.
  expect(table.stoodOpenBySetting.all().map(({ id }) => id)).toEqual(['settled', 'tightened', 'sent']);
});

it('a lock that has to be locked is so for the request that opened it last, and one that stands open for that of standing open', async () => {
  const database = await temporaryDatabase();
  const { storeClosing, closing } = openDoorTable(database);
  const of = (purpose: 'unlock' | 'standOpen', cause: string) =>
    database.commit(() =>
      storeClosing({
        mac: 'm',
        door_id: 'd',
        gateway_id: null,
        network_id: null,
        purpose,
        reason: '',
        uncertain: 0,
        since: 0,
        actor_id: 'p',
        actor: 'p',
        correlation_id: cause,
      }),
    );
  const shown = () => [closing.get('m')?.purpose, closing.get('m')?.correlation_id];
  await of('unlock', 'first');
  await of('unlock', 'second');
  expect(shown()).toEqual(['unlock', 'second']);
  await of('standOpen', 'third');
  await of('unlock', 'fourth');
  expect(shown()).toEqual(['standOpen', 'third']);
  await of('standOpen', 'fifth');
  expect(shown()).toEqual(['standOpen', 'fifth']);
});
