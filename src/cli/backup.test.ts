import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { openTestGateway, type TestGateway } from '../../test/gateway.ts';
import { type TestShell, testShell } from '../../test/shell.ts';
import { systemClock } from '../clock.ts';
import { openConnection } from '../database/connection.ts';
import { run } from './program.ts';

vi.setConfig({ testTimeout: 60_000 });

let shell: TestShell;
beforeEach(() => {
  shell = testShell({ clock: systemClock as TestShell['clock'] });
});

const command = async (gateway: TestGateway, ...argv: string[]) => {
  shell.written.stdout = '';
  shell.written.stderr = '';
  return run([...argv, '--config', gateway.configFile], shell);
};

function tokensIn(file: string): string[] {
  using connection = openConnection(file);
  return connection
    .prepare<[], { label: string }>('SELECT label FROM token ORDER BY created_at, label')
    .all()
    .map(({ label }) => label);
}

const auditOf = async (gateway: TestGateway) =>
  JSON.parse(await gateway.local('POST', '/local/audit/verify', {}));

describe('backup', () => {
  it('copies with and without the daemon, to a folder, a file, or where copies are kept', async () => {
    const gateway = await openTestGateway();
    await gateway.token('pms');
    const stick = join(gateway.folder, 'stick');
    mkdirSync(stick);
    expect(await command(gateway, 'backup', '--to', stick)).toBe(0);
    const [name = ''] = readdirSync(stick);
    expect(name).toMatch(/^gatehouse-\d{8}T\d{6}Z\.db$/);
    expect(shell.written.stdout).toBe(`${join(stick, name)}\n`);
    expect(shell.written.stderr).toMatch(/bytes\. Secrets in it open only with .*vault\.key/);
    expect(statSync(join(stick, name)).mode & 0o777).toBe(0o600);
    expect(tokensIn(join(stick, name))).toEqual(['pms']);

    await gateway.token('front-desk');
    await gateway.close();
    const file = join(stick, 'mine.db');
    expect(await command(gateway, 'backup', '--to', file, '--json')).toBe(0);
    expect(JSON.parse(shell.written.stdout)).toEqual({ file, bytes: statSync(file).size });
    expect(tokensIn(file)).toEqual(['pms', 'front-desk']);
    expect(await command(gateway, 'backup')).toBe(0);
    expect(shell.written.stdout.trim()).toBe(join(gateway.dataDirectory, 'backups', 'gatehouse.db.backup-3'));
  });

  it('says what went wrong, and leaves no half copy', async () => {
    const gateway = await openTestGateway();
    expect(await command(gateway, 'backup', '--to', '/proc/copy.db')).toBe(1);
    expect(shell.written.stderr).toMatch(
      /The copy is made, as gatehouse\.db\.backup-1 in .*, but not at \/proc\/copy\.db/,
    );
    await gateway.close();
    rmSync(join(gateway.dataDirectory, 'gatehouse.db'));
    expect(await command(gateway, 'backup')).toBe(1);
    expect(shell.written.stderr).toMatch(/nothing to back up/);
  });
});

it('takes a path that ends with a slash for a folder, and makes no file of a stick that is not there', async () => {
  const gateway = await openTestGateway();
  const stick = join(gateway.folder, 'stick');
  for (const to of [`${stick}/`, join(stick, 'copy.db'), `${gateway.configFile}/`]) {
    expect(await command(gateway, 'backup', '--to', to), to).toBe(2);
    expect(shell.written.stderr).toMatch(/Nothing was copied: there is no folder .*Mount the stick/);
  }
  expect(existsSync(stick)).toBe(false);
  expect(existsSync(join(gateway.dataDirectory, 'backups'))).toBe(false);
  mkdirSync(stick);
  expect(await command(gateway, 'backup', '--to', `${stick}/`)).toBe(0);
  expect(readdirSync(stick)).toHaveLength(1);
});

describe('restore', () => {
  /** A gateway with a copy that knows one token, and a second token made after the copy; closed. */
  async function backedUp() {
    const gateway = await openTestGateway();
    await gateway.token('pms');
    const copy = join(gateway.folder, 'copy.db');
    expect(await command(gateway, 'backup', '--to', copy)).toBe(0);
    await gateway.token('front-desk');
    return { gateway, copy };
  }

  it('refuses while the daemon runs', async () => {
    const { gateway, copy } = await backedUp();
    // The daemon of this test holds no lock: serve does that.
    using _held = (await import('./data-directory.ts')).holdDataDirectory(gateway.dataDirectory);
    expect(await command(gateway, 'restore', copy, '--yes')).toBe(1);
    expect(shell.written.stderr).toMatch(/another Gatehouse is running .*systemctl stop gatehouse/);
  });

  it('puts the copy in place, keeps what was there, and lets everybody notice', async () => {
    const { gateway, copy } = await backedUp();
    await gateway.close();
    const before = systemOf(gateway);
    const keys = readdirSync(join(gateway.dataDirectory, 'keys'));
    expect(await command(gateway, 'restore', copy, '--yes')).toBe(0);
    expect(shell.written.stderr).toBe('');
    const [, replaced = ''] = /is kept in (.*)\.\n/.exec(shell.written.stdout) ?? [];
    expect(tokensIn(join(replaced, 'gatehouse.db'))).toEqual(['pms', 'front-desk']);
    expect(statSync(join(gateway.dataDirectory, 'gatehouse.db')).mode & 0o777).toBe(0o600);
    expect(existsSync(join(gateway.dataDirectory, 'restoring'))).toBe(false);
    expect(readdirSync(join(gateway.dataDirectory, 'keys'))).toEqual(keys);
    const after = systemOf(gateway);
    expect(after.system_id).toBe(before.system_id);
    expect(after.database_id).not.toBe(before.database_id);
    expect(after.epoch).toBeGreaterThan(before.epoch + 100_000);

    const again = await openTestGateway({}, gateway.folder);
    expect(tokensIn(join(gateway.dataDirectory, 'gatehouse.db'))).toEqual(['pms']);
    expect(await auditOf(again)).toMatchObject({ fault: null });
    const { items } = JSON.parse(await again.local('GET', '/audit?action=database.restore'));
    expect(items).toMatchObject([
      {
        object: `database/${after.database_id}`,
        detail: { copy: 'copy.db', previousId: before.database_id },
      },
    ]);
    await again.close();

    // The same copy once more must not bring back epochs that encoders know already.
    expect(await command(gateway, 'restore', copy, '--yes')).toBe(0);
    expect(systemOf(gateway).epoch).toBeGreaterThan(after.epoch + 100_000);
  });

  it('takes the place of a damaged database, whose log it does not inherit', async () => {
    const { gateway, copy } = await backedUp();
    const file = join(gateway.dataDirectory, 'gatehouse.db');
    copyFileSync(`${file}-wal`, join(gateway.folder, 'old-wal'));
    await gateway.close();
    writeFileSync(file, 'rubbish '.repeat(1_000));
    copyFileSync(join(gateway.folder, 'old-wal'), `${file}-wal`);
    expect(await command(gateway, 'restore', copy, '--yes')).toBe(0);
    expect(existsSync(`${file}-wal`)).toBe(false);
    expect(tokensIn(file)).toEqual(['pms']);
  });

  it.each<[string, RegExp, (copy: string) => void]>([
    [
      'is damaged',
      /^Nothing was restored: .*copy\.db is damaged or not a database \(.*\): restore another copy that gatehouse backup has made\.\n$/,
      (copy) => writeFileSync(copy, 'x'.repeat(9_000)),
    ],
    ['is missing', /^Nothing was restored: there is no file .*copy\.db: name a copy/, (copy) => rmSync(copy)],
    [
      'is of a newer version',
      /copy\.db has schema 999, this Gatehouse knows up to \d+: restore a copy that this version or an older/,
      (copy) => alter(copy, 'PRAGMA user_version = 999'),
    ],
    [
      'is of another program',
      /Nothing was restored: .*copy\.db is the database of another program: restore a copy/,
      (copy) => alter(copy, 'DROP TABLE token; PRAGMA user_version = 0'),
    ],
  ])('changes nothing when the copy %s', async (_how, message, damage) => {
    const { gateway, copy } = await backedUp();
    await gateway.close();
    damage(copy);
    expect(await command(gateway, 'restore', copy, '--yes')).toBe(1);
    expect(shell.written.stderr).toMatch(message);
    expect(tokensIn(join(gateway.dataDirectory, 'gatehouse.db'))).toEqual(['pms', 'front-desk']);
    expect(existsSync(join(gateway.dataDirectory, 'restoring'))).toBe(false);
  });

  it('asks on a terminal', async () => {
    const { gateway, copy } = await backedUp();
    await gateway.close();
    shell.stdin.isTTY = true;
    shell.stdin.write('n\n');
    expect(await command(gateway, 'restore', copy)).toBe(1);
    expect(shell.written.stderr).toMatch(
      /Put .*copy\.db \(system [0-9a-f-]{36}\) in the place of .*\[y\/N\] .*Nothing was restored/s,
    );
    expect(tokensIn(join(gateway.dataDirectory, 'gatehouse.db'))).toEqual(['pms', 'front-desk']);
  });

  it('warns of a key that does not fit or is missing, and touches it not', async () => {
    const { gateway, copy } = await backedUp();
    await gateway.close();
    const key = join(gateway.dataDirectory, 'keys', 'vault.key');
    writeFileSync(key, Buffer.alloc(32, 7));
    chmodSync(key, 0o600);
    expect(await command(gateway, 'restore', copy, '--yes')).toBe(0);
    expect(shell.written.stderr).toMatch(/^! .*vault\.key is not the key this copy was made with/);
    rmSync(key);
    expect(await command(gateway, 'restore', copy, '--yes')).toBe(0);
    expect(shell.written.stderr).toMatch(/^! .*vault\.key is missing or unusable/);
    expect(existsSync(key)).toBe(false);
  });

  it('refuses the copy of another system', async () => {
    const { gateway, copy } = await backedUp();
    await gateway.close();
    writeFileSync(
      gateway.configFile,
      JSON.stringify({ dataDirectory: 'data', systemId: '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e' }),
    );
    expect(await command(gateway, 'restore', copy, '--yes')).toBe(1);
    expect(shell.written.stderr).toMatch(/belongs to system .*, the configuration to 5c2f0a52/);
  });
});

function systemOf({ dataDirectory }: TestGateway): { system_id: string; database_id: string; epoch: number } {
  using connection = openConnection(join(dataDirectory, 'gatehouse.db'));
  const row = connection
    .prepare<[], { system_id: string; database_id: string; epoch: number }>('SELECT * FROM system')
    .get();
  if (!row) throw new Error('no system');
  return row;
}

function alter(file: string, sql: string): void {
  using connection = openConnection(file);
  connection.exec(sql);
}
