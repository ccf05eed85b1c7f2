/** A row with a text that a disk has changed: the lists go on without it, and the status names it. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openConnection } from '../src/database/connection.ts';
import { openTestGateway } from './gateway.ts';

interface Listed {
  items: { id?: string; name?: string | null }[];
}

/** As a flipped bit leaves it: the file is sound to SQLite, whose CHECK is of writes alone. */
function damage(dataDirectory: string, sql: string): void {
  using connection = openConnection(join(dataDirectory, 'gatehouse.db'));
  connection.exec('PRAGMA ignore_check_constraints = ON');
  connection.exec(sql);
}

describe('a damaged row', () => {
  it('of a door is left out of the list and named in the status, until it can be read again', async () => {
    const { local, token, lan, dataDirectory } = await openTestGateway();
    const admin = await token('front-desk-admin');
    for (const name of ['101', '102']) await local('POST', '/access/doors', { name });
    const names = async () => {
      const answer = await lan('/access/doors', admin);
      expect(answer.status).toBe(200);
      return ((await answer.json()) as Listed).items.map(({ name }) => name);
    };
    const status = async () => JSON.parse(await local('GET', '/local/status')).database.damagedRows;
    expect(await names()).toEqual(['101', '102']);
    damage(dataDirectory, `UPDATE door SET options = substr(options, 2) WHERE name = '101'`);
    expect(await names()).toEqual(['102']);
    expect(await status()).toEqual([expect.stringMatching(/^door\//)]);
    damage(dataDirectory, `UPDATE door SET options = '{' || options WHERE name = '101'`);
    expect(await names()).toEqual(['101', '102']);
    expect(await status()).toEqual([]);
  });

  it('of a token is left out of the list, and one of the audit is shown as damaged', async () => {
    const { local, token, dataDirectory } = await openTestGateway();
    await token('pms');
    await token('monitor');
    damage(dataDirectory, `UPDATE token SET roles = '["pm' WHERE label = 'pms'`);
    const { items } = JSON.parse(await local('GET', '/local/tokens')) as { items: { label: string }[] };
    expect(items.map(({ label }) => label)).toEqual(['monitor']);
    damage(
      dataDirectory,
      `DROP TRIGGER audit_is_append_only_update; UPDATE audit SET detail = '{' WHERE action = 'token.create' AND detail LIKE '%pms%'`,
    );
    const audit = JSON.parse(await local('GET', '/audit')) as { items: { action: string; detail: object }[] };
    const created = audit.items.filter(({ action }) => action === 'token.create');
    expect(created.map(({ detail }) => detail)).toEqual([
      expect.objectContaining({ label: 'monitor' }),
      { damaged: true },
    ]);
    expect(JSON.parse(await local('GET', '/local/status')).database.damagedRows).toEqual([
      expect.stringMatching(/^audit\//),
      expect.stringMatching(/^token\//),
    ]);
  });
});
