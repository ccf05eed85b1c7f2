import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import {
  alter,
  auditOf,
  backedUp,
  backUp,
  command,
  flipped,
  identity,
  restore,
  rowsIn,
  shell,
  systemOf,
  tokensIn,
} from '../../test/cli/archives.ts';
import { openTestGateway, type TestGateway } from '../../test/gateway.ts';
import { temporaryFolder } from '../../test/temporary.ts';

vi.setConfig({ testTimeout: 240_000 });

describe('restore', () => {
  it('refuses while the daemon runs', async () => {
    const { gateway, archive } = await backedUp();
    // The daemon of this test holds no lock: serve does that.
    using _held = (await import('./data-directory.ts')).holdDataDirectory(gateway.dataDirectory);
    expect(await restore(gateway, archive)).toBe(1);
    expect(shell.written.stderr).toMatch(/another Gatehouse is running .*systemctl stop gatehouse/);
  });

  it('puts the archive in place, keeps what was there, and lets everybody notice', async () => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    const before = systemOf(gateway);
    const file = join(gateway.dataDirectory, 'gatehouse.db');
    expect(await restore(gateway, archive)).toBe(0);
    expect(shell.written.stderr).toBe('');
    const [, replaced = ''] = /is kept in (.*)\.\n/.exec(shell.written.stdout) ?? [];
    expect(tokensIn(join(replaced, 'gatehouse.db'))).toEqual(['pms', 'front-desk']);
    // Keys and site CA are the same: nothing of them was touched.
    expect(readdirSync(replaced)).toEqual(['gatehouse.db']);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(existsSync(join(gateway.dataDirectory, 'restoring'))).toBe(false);
    const after = systemOf(gateway);
    expect(after.system_id).toBe(before.system_id);
    expect(after.database_id).not.toBe(before.database_id);
    expect(after.epoch).toBeGreaterThan(before.epoch + 100_000);

    const again = await openTestGateway({}, gateway.folder);
    expect(tokensIn(file)).toEqual(['pms']);
    expect(await auditOf(again)).toMatchObject({ fault: null });
    const { items } = JSON.parse(await again.local('GET', '/audit?action=database.restore'));
    expect(items).toMatchObject([
      {
        object: `database/${after.database_id}`,
        detail: { copy: 'copy.age', previousId: before.database_id, madeAt: expect.any(String) },
      },
    ]);
    await again.close();

    // The same archive once more must not bring back epochs that encoders know already.
    expect(await restore(gateway, archive)).toBe(0);
    expect(systemOf(gateway).epoch).toBeGreaterThan(after.epoch + 1);
  });

  it('brings everything onto a blank machine, the configuration too', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'password'), 'secret\n');
    const { gateway, archive } = await backedUp();
    await gateway.close();
    const other = temporaryFolder();
    const machine = { configFile: join(other, 'etc', 'gatehouse.yaml'), folder: other };
    expect(await restore(machine, archive), shell.written.stderr).toBe(0);
    expect(shell.written.stdout).toContain(`The configuration is restored: ${machine.configFile}.`);
    const data = join(other, 'etc', 'data');
    expect(readdirSync(data).sort()).toEqual(['gatehouse.db', 'gatehouse.lock', 'keys', 'pki']);
    expect(statSync(join(data, 'keys', 'vault.key')).mode & 0o777).toBe(0o600);
    expect(statSync(join(data, 'pki')).mode & 0o777).toBe(0o700);
    const again = await openTestGateway({}, join(other, 'etc'));
    expect(tokensIn(join(data, 'gatehouse.db'))).toEqual(['pms']);
    expect(await auditOf(again)).toMatchObject({ fault: null });
  });

  it('replaces key and site CA of another installation together, and keeps them', async () => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    const other = await openTestGateway();
    await other.close();
    const there = systemOf(other).system_id;
    expect(await restore(other, archive)).toBe(0);
    expect(shell.written.stderr).toContain(`has the data of another system (${there})`);
    const [, replaced = ''] = /What was there is kept in (.*)\.\n/.exec(shell.written.stdout) ?? [];
    expect(readdirSync(replaced).sort()).toEqual(['gatehouse.db', 'keys', 'pki']);
    const again = await openTestGateway({}, other.folder);
    expect(again.gateway.systemId).toBe(gateway.gateway.systemId);
  });

  it('carries over which locks are to be locked; locks every one where that cannot be known', async () => {
    const gateway = await openTestGateway();
    const lock = { mac: '00124b0001a2b3c4', gatewayId: 'g', networkId: 'n' };
    const { id } = JSON.parse(await gateway.local('POST', '/access/doors', lock));
    const archive = join(gateway.folder, 'copy.age');
    expect(await backUp(gateway, archive), shell.written.stderr).toBe(0);
    await gateway.close();
    const file = join(gateway.dataDirectory, 'gatehouse.db');
    const toLock = () => rowsIn(file, 'SELECT mac, door_id, purpose, uncertain FROM lock_closing');
    expect(await restore(gateway, archive)).toBe(0);
    expect(toLock()).toEqual([]);
    alter(
      file,
      `INSERT INTO lock_closing (mac, door_id, purpose, reason, uncertain, since, actor_id, actor, correlation_id)
       VALUES ('00124b0001a2b3c5', 'since', 'standOpen', '', 0, 0, '', '', '')`,
    );
    expect(await restore(gateway, archive)).toBe(0);
    expect(shell.written.stdout).toContain('Locks that the start locks, until each was seen locked: 1.');
    expect(toLock()).toEqual([
      { mac: '00124b0001a2b3c5', door_id: 'since', purpose: 'standOpen', uncertain: 1 },
    ]);
    const each = [{ mac: lock.mac, door_id: id, purpose: 'unlock', uncertain: 1 }];
    writeFileSync(file, 'rubbish '.repeat(1_000));
    expect(await restore(gateway, archive)).toBe(0);
    expect(toLock()).toEqual(each);
    // It may have lost its log by then.
    alter(file, 'DELETE FROM lock_closing');
    writeFileSync(join(gateway.dataDirectory, 'restore-unfinished'), archive);
    expect(await restore(gateway, archive)).toBe(0);
    expect(toLock()).toEqual(each);
  });

  it('brings no key of who may update the machine', async () => {
    const folder = temporaryFolder();
    for (const name of ['update.pub', 'token']) writeFileSync(join(folder, name), 'of the archive');
    const of = (tokenFile: string) => ({ decisionService: { url: 'https://127.0.0.1:1/', tokenFile } });
    // The author of an archive may name the file in its configuration.
    for (const [name, isBrought] of [
      ['token', true],
      ['update.pub', false],
    ] as const) {
      const gateway = await openTestGateway({ access: of(name) }, folder);
      const archive = join(folder, `${name}.age`);
      expect(await backUp(gateway, archive), shell.written.stderr).toBe(0);
      await gateway.close();
      const machine = { configFile: join(temporaryFolder(), 'etc', 'gatehouse.yaml') };
      expect(await restore(machine, archive), shell.written.stderr).toBe(0);
      expect(existsSync(join(dirname(machine.configFile), name))).toBe(isBrought);
    }
  });

  it('leaves another configuration alone, and replaces it when asked to', async () => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    const before = readFileSync(gateway.configFile, 'utf8');
    writeFileSync(
      gateway.configFile,
      '{ dataDirectory: data, http: { plain: true, listen: "127.0.0.1:0" } }',
    );
    expect(await restore(gateway, archive)).toBe(0);
    expect(shell.written.stderr).toMatch(
      /gatehouse\.yaml differs from that in the archive and stays; --configuration/,
    );
    expect(readFileSync(gateway.configFile, 'utf8')).toContain('"127.0.0.1:0" } }');
    expect(await restore(gateway, archive, '--configuration')).toBe(0);
    expect(readFileSync(gateway.configFile, 'utf8')).toBe(before);
    expect(readdirSync(gateway.folder).some((name) => name.startsWith('gatehouse.yaml.replaced-'))).toBe(
      true,
    );
  });

  it('takes the place of a damaged database, whose log it does not inherit', async () => {
    const { gateway, archive } = await backedUp();
    const file = join(gateway.dataDirectory, 'gatehouse.db');
    copyFileSync(`${file}-wal`, join(gateway.folder, 'old-wal'));
    await gateway.close();
    writeFileSync(file, 'rubbish '.repeat(1_000));
    copyFileSync(join(gateway.folder, 'old-wal'), `${file}-wal`);
    expect(await restore(gateway, archive)).toBe(0);
    expect(existsSync(`${file}-wal`)).toBe(false);
    expect(tokensIn(file)).toEqual(['pms']);
  });

  it.each<[string, (bytes: Buffer) => Buffer]>([
    ['one bit of its content was changed', (bytes) => flipped(bytes, bytes.length - 100)],
    ['one bit of its header was changed', (bytes) => flipped(bytes, 150)],
    ['its end is missing', (bytes) => bytes.subarray(0, bytes.length - 1)],
    ['it ends between two pieces', (bytes) => bytes.subarray(0, 200 + 16 + 65_552)],
    ['something follows it', (bytes) => Buffer.concat([bytes, Buffer.from('x')])],
  ])('changes nothing when %s', async (_how, change) => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    writeFileSync(archive, change(readFileSync(archive)));
    expect(await restore(gateway, archive)).toBe(1);
    expect(shell.written.stderr).toMatch(
      /copy\.age cannot be used: it is damaged, cut short, or was changed/,
    );
    expect(tokensIn(join(gateway.dataDirectory, 'gatehouse.db'))).toEqual(['pms', 'front-desk']);
    expect(existsSync(join(gateway.dataDirectory, 'restoring'))).toBe(false);
  });

  it.each<[string, RegExp, (gateway: TestGateway) => void]>([
    [
      'key',
      /not of one piece: .*vault\.key is not the key this database was written with/,
      ({ dataDirectory }) => {
        writeFileSync(join(dataDirectory, 'keys', 'vault.key'), Buffer.alloc(32, 7));
      },
    ],
    [
      'site CA',
      /not of one piece: .*certificate authority \(pki\)/,
      ({ dataDirectory }) => {
        rmSync(join(dataDirectory, 'pki'), { recursive: true });
      },
    ],
    [
      'schema',
      /has schema 999, this Gatehouse knows up to \d+/,
      ({ dataDirectory }) => {
        alter(
          join(dataDirectory, 'gatehouse.db'),
          'UPDATE schema_support SET oldest = 999; PRAGMA user_version = 999',
        );
      },
    ],
  ])('refuses an archive whose %s does not belong to the rest', async (_what, message, change) => {
    const gateway = await openTestGateway();
    await gateway.close();
    const archive = join(gateway.folder, 'copy.age');
    change(gateway);
    expect(await backUp(gateway, archive), shell.written.stderr).toBe(0);
    expect(await restore({ configFile: join(temporaryFolder(), 'gatehouse.yaml') }, archive)).toBe(1);
    expect(shell.written.stderr).toMatch(message);
  });

  it('puts back what it has replaced when it cannot go on', async () => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    const other = await openTestGateway();
    await other.close();
    const key = readFileSync(join(other.dataDirectory, 'keys', 'vault.key'));
    // Nothing can be renamed over a folder that is not empty.
    rmSync(join(other.dataDirectory, 'gatehouse.db'));
    mkdirSync(join(other.dataDirectory, 'gatehouse.db', 'x'), { recursive: true });
    expect(await restore(other, archive)).toBe(1);
    expect(shell.written.stderr).toMatch(/^Nothing was restored: /m);
    expect(readFileSync(join(other.dataDirectory, 'keys', 'vault.key'))).toEqual(key);
    expect(existsSync(join(other.dataDirectory, 'restoring'))).toBe(false);
  });

  it.each(['keys', 'pki'])('refuses in plain words where %s cannot be read', async (name) => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    const path = join(gateway.dataDirectory, name);
    // Root, who may run this test, is stopped by no mode.
    rmSync(path, { recursive: true });
    writeFileSync(path, 'a file in the place of the folder');
    expect(await restore(gateway, archive)).toBe(1);
    expect(shell.written.stderr).toMatch(
      new RegExp(`^Nothing was restored: .*/${name} cannot be read: ENOTDIR: [^\\n]*\\n$`),
    );
    expect(tokensIn(join(gateway.dataDirectory, 'gatehouse.db'))).toEqual(['pms', 'front-desk']);
    expect(existsSync(join(gateway.dataDirectory, 'restoring'))).toBe(false);
  });

  it('asks on a terminal', async () => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    shell.stdin.isTTY = true;
    shell.stdin.write('n\n');
    expect(await command(gateway, 'restore', archive, '--identity', identity)).toBe(1);
    expect(shell.written.stderr).toMatch(
      /Put .*copy\.age \(.*Z, system [0-9a-f-]{36}\) in the place of .*\[y\/N\] .*Nothing was restored/s,
    );
    expect(tokensIn(join(gateway.dataDirectory, 'gatehouse.db'))).toEqual(['pms', 'front-desk']);
  });

  it('refuses the archive of another system', async () => {
    const { gateway, archive } = await backedUp();
    await gateway.close();
    writeFileSync(
      gateway.configFile,
      JSON.stringify({ dataDirectory: 'data', systemId: '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e' }),
    );
    expect(await restore(gateway, archive)).toBe(1);
    expect(shell.written.stderr).toMatch(/belongs to system .*, the configuration to 5c2f0a52/);
  });
});

describe('restore of a copy of the database alone', () => {
  /** As the start before a migration keeps one. */
  async function copied() {
    const gateway = await openTestGateway();
    await gateway.token('pms');
    await gateway.close();
    const copy = join(gateway.folder, 'copy.db');
    copyFileSync(join(gateway.dataDirectory, 'gatehouse.db'), copy);
    const again = await openTestGateway({}, gateway.folder);
    await again.token('front-desk');
    await again.close();
    return { gateway, copy };
  }

  it('leaves keys and site CA as they are', async () => {
    const { gateway, copy } = await copied();
    const keys = readdirSync(join(gateway.dataDirectory, 'keys'));
    expect(await command(gateway, 'restore', copy, '--yes'), shell.written.stderr).toBe(0);
    expect(tokensIn(join(gateway.dataDirectory, 'gatehouse.db'))).toEqual(['pms']);
    expect(readdirSync(join(gateway.dataDirectory, 'keys'))).toEqual(keys);
  });

  it.each<[string, RegExp, (copy: string) => void]>([
    [
      'is damaged',
      /^Nothing was restored: .*copy\.db is damaged or not a database \(.*\): restore another one that gatehouse backup has made\.\n$/,
      (copy) => writeFileSync(copy, 'x'.repeat(9_000)),
    ],
    [
      'is missing',
      /^Nothing was restored: there is no file .*copy\.db: name an archive/,
      (copy) => rmSync(copy),
    ],
    [
      'is of a newer version',
      /copy\.db has schema 999, this Gatehouse knows up to \d+: restore one that this version or an older/,
      (copy) => alter(copy, 'UPDATE schema_support SET oldest = 999; PRAGMA user_version = 999'),
    ],
    [
      'is of another program',
      /Nothing was restored: .*copy\.db is the database of another program: restore one/,
      (copy) => alter(copy, 'DROP TABLE token; PRAGMA user_version = 0'),
    ],
  ])('changes nothing when the copy %s', async (_how, message, damage) => {
    const { gateway, copy } = await copied();
    damage(copy);
    expect(await command(gateway, 'restore', copy, '--yes')).toBe(1);
    expect(shell.written.stderr).toMatch(message);
    expect(tokensIn(join(gateway.dataDirectory, 'gatehouse.db'))).toEqual(['pms', 'front-desk']);
    expect(existsSync(join(gateway.dataDirectory, 'restoring'))).toBe(false);
  });

  it('warns of a key that does not fit or is missing, and touches it not', async () => {
    const { gateway, copy } = await copied();
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
});
