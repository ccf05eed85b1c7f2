import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import {
  backUp,
  command,
  identity,
  PUBLIC,
  plain,
  restore,
  rowsIn,
  SECRET,
  shell,
} from '../../test/cli/archives.ts';
import { openTestGateway } from '../../test/gateway.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { openConnection } from '../platform/database/connection.ts';

vi.setConfig({ testTimeout: 240_000 });

describe('backup', () => {
  it('makes one archive with and without the daemon, in a folder, a file, or where archives are kept', async () => {
    const gateway = await openTestGateway({ backup: { recipients: [PUBLIC] } });
    const stick = join(gateway.folder, 'stick');
    mkdirSync(stick);
    expect(await backUp(gateway, stick), shell.written.stderr).toBe(0);
    const [name = ''] = readdirSync(stick);
    expect(name).toMatch(/^gatehouse-\d{8}T\d{6}Z\.age$/);
    expect(shell.written.stdout).toBe(`${join(stick, name)}\n`);
    expect(statSync(join(stick, name)).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(stick, name), 'latin1')).toMatch(/^age-encryption\.org\/v1\n-> X25519 /);
    const { items } = JSON.parse(await gateway.local('GET', '/audit?action=backup.make'));
    expect(items).toMatchObject([{ outcome: 'done', detail: { file: join(stick, name) } }]);

    await gateway.close();
    const file = join(stick, 'mine.age');
    expect(await backUp(gateway, file, '--json')).toBe(0);
    expect(JSON.parse(shell.written.stdout)).toEqual({ file, bytes: statSync(file).size, leftOut: [] });
    expect(await command(gateway, 'backup')).toBe(0);
    expect(shell.written.stdout).toMatch(/data\/backups\/gatehouse-\d{8}T\d{6}Z\.age\n$/);
    expect(readdirSync(join(gateway.dataDirectory, 'backups'))).toHaveLength(1);
  });

  it('has every part, and the configuration with the files of its folder', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'password'), 'secret\n');
    const outside = join(temporaryFolder(), 'ca.pem');
    writeFileSync(outside, 'of somebody else');
    const upstream = { url: 'mqtts://127.0.0.1:1', username: 'u', passwordFile: 'password', caFile: outside };
    const gateway = await openTestGateway({ upstream }, folder);
    mkdirSync(join(gateway.dataDirectory, 'zigbee', 'g'), { recursive: true });
    writeFileSync(join(gateway.dataDirectory, 'zigbee', 'g', 'coordinator_backup.sealed'), 'sealed');
    const planted = join(gateway.dataDirectory, 'pki', 'planted.crt');
    symlinkSync('/etc/passwd', planted);
    const archive = join(folder, 'copy.age');
    expect(await backUp(gateway, archive)).toBe(0);
    expect(shell.written.stderr).toContain(`! ${outside} is not in the archive, which takes only`);
    expect(await plain('backup', 'verify', archive, '--identity', identity, '--json')).toBe(0);
    const said = JSON.parse(shell.written.stdout);
    const names = said.files.map(({ name }: { name: string }) => name);
    expect(names.slice(0, 3)).toEqual(['config/gatehouse.yaml', 'data/gatehouse.db', 'data/keys/vault.key']);
    expect(names).toContain('data/pki/root.key');
    expect(names).toContain('data/zigbee/g/coordinator_backup.sealed');
    expect(names).toContain('config/password');
    expect(names).not.toContain('data/pki/planted.crt');
    expect(said).toMatchObject({ leftOut: [planted, outside] });
  });

  it('names a root key that is kept elsewhere, and is not made without the vault key', async () => {
    const gateway = await openTestGateway();
    const archive = join(gateway.folder, 'copy.age');
    const rootKey = join(gateway.dataDirectory, 'pki', 'root.key');
    const vaultKey = join(gateway.dataDirectory, 'keys', 'vault.key');
    rmSync(rootKey);
    expect(await backUp(gateway, archive), shell.written.stderr).toBe(0);
    expect(shell.written.stderr).toContain(
      `! ${rootKey} is not in the archive, for there is no such file here`,
    );
    expect(await plain('backup', 'verify', archive, '--identity', identity)).toBe(0);
    expect(shell.written.stdout).toMatch(/not in it +.*\/pki\/root\.key/);
    symlinkSync('/etc/passwd', rootKey);
    renameSync(vaultKey, `${vaultKey}.old`);
    for (const plant of [() => {}, () => symlinkSync(`${vaultKey}.old`, vaultKey)]) {
      plant();
      rmSync(archive, { force: true });
      expect(await backUp(gateway, archive)).toBe(1);
      expect(shell.written.stderr).toContain(`${vaultKey} is not there as a file`);
      expect(existsSync(archive)).toBe(false);
    }
  });

  it('names the link in its way', async () => {
    const gateway = await openTestGateway();
    const archives = join(gateway.dataDirectory, 'backups');
    symlinkSync(join(gateway.folder, 'unmounted'), archives);
    expect(await backUp(gateway, join(gateway.folder, 'copy.age'))).toBe(1);
    expect(shell.written.stderr).toContain(`${archives} is a link to ${join(gateway.folder, 'unmounted')}`);
  });

  it('leaves the key data of write requests behind, and what it cannot know ends as unknown', async () => {
    const gateway = await openTestGateway();
    await gateway.close();
    const file = join(gateway.dataDirectory, 'gatehouse.db');
    using connection = openConnection(file);
    connection.exec(`INSERT INTO encoder (id, generation, connected_changed_at, alarm_changed_at, created_at, created_by, updated_at, updated_by)
      VALUES ('desk-1', 1, 0, 0, 0, 'x', 0, 'x')`);
    connection.exec(`INSERT INTO write_request (job_id, encoder_id, request_id, digest, status, accepted_at, correlation_id, expires_at)
      VALUES ('j', 'desk-1', 'r', 'd', 'queued', 0, 'c', 0)`);
    connection.exec(`INSERT INTO write_entry (job_id, entry_index, key_id, sealed_blocks, status, updated_at)
      VALUES ('j', 0, 'k', x'${Buffer.from('sealed blocks').toString('hex')}', 'queued', 0)`);
    const archive = join(gateway.folder, 'copy.age');
    expect(await backUp(gateway, archive), shell.written.stderr).toBe(0);
    expect(await restore(gateway, archive), shell.written.stderr).toBe(0);
    expect(readFileSync(file).includes('sealed blocks')).toBe(false);
    expect(rowsIn(file, 'SELECT sent_journal FROM write_request')).toEqual([
      { sent_journal: 'not in the backup' },
    ]);
  });

  it('opens with its passphrase, and with no other', async () => {
    const gateway = await openTestGateway();
    const archive = join(gateway.folder, 'copy.age');
    const right = join(gateway.folder, 'right');
    const wrong = join(gateway.folder, 'wrong');
    writeFileSync(right, 'correct horse battery staple\n');
    writeFileSync(wrong, 'another horse\n');
    expect(await command(gateway, 'backup', '--to', archive, '--passphrase-file', right)).toBe(0);
    expect(await plain('backup', 'verify', archive, '--passphrase-file', wrong)).toBe(1);
    expect(shell.written.stderr).toMatch(/this key or passphrase does not open it/);
    expect(await plain('backup', 'verify', archive, '--identity', identity)).toBe(1);
    expect(await plain('backup', 'verify', `${archive}.old`, '--passphrase-file', right)).toBe(1);
    expect(shell.written.stderr).toMatch(/^there is no file .*copy\.age\.old: name an archive/m);
    expect(await plain('backup', 'verify', archive, '--passphrase-file', right)).toBe(0);
    expect(shell.written.stdout).toMatch(/✓ .*copy\.age is whole: of /);
  });

  it.each<[string, string[], RegExp]>([
    ['without a key', [], /set backup\.recipients in the configuration/],
    ['for what is no public key', ['--recipient', 'age1xyz'], /age1xyz: expected a public key/],
    ['with a secret key in its place', ['--recipient', SECRET], /expected a public key/],
    [
      'with both',
      ['--recipient', PUBLIC, '--passphrase-file', '/dev/null'],
      /recipients or a passphrase, not both/,
    ],
    ['with a short passphrase', ['--passphrase-file', '-'], /less than 12 characters/],
  ])('is not made %s', async (_how, options, message) => {
    const gateway = await openTestGateway();
    shell.stdin.end('short\n');
    expect(await command(gateway, 'backup', ...options)).toBe(2);
    expect(shell.written.stderr).toMatch(message);
    expect(existsSync(join(gateway.dataDirectory, 'backups'))).toBe(false);
  });

  it('says what went wrong, and leaves no half archive', async () => {
    const gateway = await openTestGateway();
    expect(await backUp(gateway, '/proc/copy.age')).toBe(1);
    expect(shell.written.stderr).toMatch(/^There is no backup: .*\/proc\/copy\.age/);
    shell.stop();
    const archive = join(gateway.folder, 'copy.age');
    expect(await backUp(gateway, archive)).toBe(1);
    expect(shell.written.stderr).toMatch(/it was stopped/);
    expect(readdirSync(gateway.folder).filter((name) => name.startsWith('copy'))).toEqual([]);
    await gateway.close();
    rmSync(join(gateway.dataDirectory, 'gatehouse.db'));
    expect(await backUp(gateway, archive)).toBe(1);
    expect(shell.written.stderr).toMatch(/nothing to back up/);
  });

  it('removes what a killed one has left in its folder, and no other file', async () => {
    const gateway = await openTestGateway();
    const stick = temporaryFolder();
    const others = ['gatehouse-20261123T032000Z.age', 'mine.age.new', 'notes.new'];
    for (const name of [...others, `${others[0]}.new`]) writeFileSync(join(stick, name), 'x');
    expect(await backUp(gateway, stick), shell.written.stderr).toBe(0);
    const made = shell.written.stdout.trim().slice(stick.length + 1);
    expect(readdirSync(stick).sort()).toEqual([...others, made].sort());
  });

  it('takes a path that ends with a slash, or has no ending, for a folder, and makes no file of a stick that is not there', async () => {
    const gateway = await openTestGateway();
    const stick = join(gateway.folder, 'stick');
    for (const to of [stick, `${stick}/`, join(stick, 'copy.age'), `${gateway.configFile}/`]) {
      expect(await backUp(gateway, to), to).toBe(2);
      expect(shell.written.stderr).toMatch(/Nothing was copied: there is no folder .*Mount the stick/);
    }
    expect(existsSync(stick)).toBe(false);
  });
});

it('backup key draws a key that opens what its public half has closed', async () => {
  const gateway = await openTestGateway();
  const file = join(gateway.folder, 'drawn.txt');
  expect(await plain('backup', 'key', '--out', file)).toBe(0);
  const drawn = shell.written.stdout.trim();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const archive = join(gateway.folder, 'copy.age');
  expect(await command(gateway, 'backup', '--recipient', drawn, PUBLIC, '--to', archive)).toBe(0);
  expect(await plain('backup', 'verify', archive, '--identity', file)).toBe(0);
  expect(await plain('backup', 'key', '--out', file)).toBe(1);
  expect(shell.written.stderr).toContain('it exists already');
});
