import { spawn } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { AS_THE_SUITE } from '../../test/as-the-suite.ts';
import { openTestGateway, type TestGateway } from '../../test/gateway.ts';
import { type TestShell, testShell } from '../../test/shell.ts';
import { canMount, smallDisk } from '../../test/small-disk.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { systemClock } from '../platform/clock.ts';
import type { ConfigInput } from '../platform/config/config.ts';
import { openConnection } from '../platform/database/connection.ts';
import { holdDataDirectory } from './data-directory.ts';
import { refused } from './doctor/diagnosis.ts';
import { run } from './program.ts';

vi.setConfig({ testTimeout: 60_000 });

let shell: TestShell;
beforeEach(() => {
  shell = testShell({ clock: systemClock as TestShell['clock'] });
});

interface Check {
  severity: string;
  subject: string;
  text: string;
  remedy: string | null;
}

/** The exit code, and what it says of each subject. */
async function examined(configFile: string): Promise<{ exitCode: number; of(subject: string): Check[] }> {
  shell.written.stdout = '';
  const exitCode = await run(['doctor', '--json', '--config', configFile], shell);
  const { ok, checks } = JSON.parse(shell.written.stdout) as { ok: boolean; checks: Check[] };
  expect(exitCode).toBe(ok ? 0 : 1);
  for (const { severity, subject, remedy } of checks)
    if (severity === 'bad') expect(remedy, subject).not.toBeNull();
  return { exitCode, of: (subject) => checks.filter((check) => check.subject === subject) };
}

function configure(changes: ConfigInput, folder = temporaryFolder()): string {
  const file = join(folder, 'gatehouse.yaml');
  const listen = { listen: '127.0.0.1:0' };
  writeFileSync(file, JSON.stringify({ dataDirectory: 'data', http: listen, encoders: listen, ...changes }));
  return file;
}

const bad = expect.objectContaining({ severity: 'bad' });
const good = expect.objectContaining({ severity: 'good' });

it('finds nothing wrong with an installation that works', async () => {
  const { configFile } = await openTestGateway();
  const { exitCode, of } = await examined(configFile);
  expect(exitCode).toBe(0);
  for (const subject of [
    'configuration',
    'daemon',
    'files',
    'vault key',
    'database',
    'site CA',
    'certificate server',
    'fsync',
  ])
    expect(of(subject), subject).toEqual([good]);
  shell.written.stdout = '';
  expect(await run(['doctor', '--config', configFile], shell)).toBe(0);
  expect(shell.written.stdout).toMatch(/^! {2}/);
  expect(shell.written.stdout).toMatch(/✓ {2}database +.*gatehouse\.db is sound, schema \d+\n/);
  expect(shell.written.stdout).toMatch(
    /! {2}vendor root +none is configured: no encoder can be registered → put/,
  );
});

it('does not take the standby of a cluster for one that has ended', async () => {
  const configFile = configure({ cluster: { name: 'lobby-b', urls: ['nats://127.0.0.1:9'] } });
  const folder = join(dirname(configFile), 'data');
  {
    using _standby = holdDataDirectory(folder);
    const { of } = await examined(configFile);
    expect(of('daemon')).toEqual([
      expect.objectContaining({
        severity: 'good',
        text: expect.stringMatching(/not the active gateway.*cluster status/),
      }),
    ]);
  }
  expect((await examined(configFile)).of('daemon')).toEqual([bad]);
});

it('says before the first start what is missing', async () => {
  const { exitCode, of } = await examined(configure({}));
  expect(exitCode).toBe(1);
  expect(of('daemon')).toEqual([
    expect.objectContaining({ severity: 'bad', remedy: expect.stringMatching(/systemctl start/) }),
  ]);
  expect(of('files')[0]).toMatchObject({
    severity: 'doubtful',
    text: expect.stringMatching(/does not exist yet/),
  });
  for (const subject of ['vault key', 'database', 'site CA'])
    expect(of(subject)).toEqual([
      { severity: 'good', subject, text: 'the first start makes it', remedy: null },
    ]);
});

it('says when the data directory is there not, and cannot be made', async () => {
  const file = configure({ dataDirectory: '/proc/gatehouse' });
  const { of } = await examined(file);
  expect(of('files')).toEqual([
    expect.objectContaining({ severity: 'bad', text: expect.stringMatching(/cannot make it in \/proc$/) }),
  ]);
});

it('names the links that are down', async () => {
  const { configFile } = await openTestGateway({
    links: [{ id: 'bus-1', protocol: 'modbus', options: { port: '/dev/nowhere', devices: [] } }],
  });
  await vi.waitFor(async () => {
    const { exitCode, of } = await examined(configFile);
    expect(exitCode).toBe(1);
    // And what was found without the daemon.
    expect(of('link bus-1').map(({ text }) => text)).toEqual([
      expect.stringMatching(/^is down: .*nowhere/),
      '/dev/nowhere does not exist',
    ]);
  }, 30_000);
});

it('names the doors that are offline with their reasons, and tokens that end soon', async () => {
  const { configFile, local } = await openTestGateway();
  const lock = { mac: '00124b0001a2b3c4', gatewayId: 'g', networkId: 'n' };
  const { accessPointId } = JSON.parse(await local('POST', '/access/doors', { name: 'Room 214', ...lock }));
  await local('POST', '/tokens', { label: 'PMS', roles: ['pms'], expiresInDays: 14 });
  await local('POST', '/tokens', { label: 'Bar', roles: ['pms'], expiresInDays: 2 });
  const { exitCode, of } = await examined(configFile);
  expect(of(`door ${accessPointId} Room 214`)).toMatchObject([
    { severity: 'doubtful', text: expect.stringMatching(/^Zigbee gateway g is not in the configuration: /) },
  ]);
  const renew = expect.stringMatching(/^gatehouse token renew [0-9a-f]+$/);
  expect(of('token PMS')).toMatchObject([
    { severity: 'doubtful', text: expect.stringMatching(/in 13 days$/), remedy: renew },
  ]);
  expect(of('token Bar')).toMatchObject([
    { severity: 'bad', text: expect.stringMatching(/in 1 day$/), remedy: renew },
  ]);
  expect(exitCode).toBe(1);
});

it('shows the mistakes of the configuration, and no more', async () => {
  const file = configure({});
  writeFileSync(file, 'htpp: {}\n');
  const { exitCode, of } = await examined(file);
  expect(exitCode).toBe(1);
  expect(of('configuration')).toEqual([bad]);
  expect(of('configuration')[0]?.text).toMatch(/gatehouse\.yaml:1:1: unknown setting "htpp"/);
  expect(of('daemon')).toEqual([]);
});

describe('of an installation that was', () => {
  const broken = async (damage: (gateway: TestGateway) => void) => {
    const gateway = await openTestGateway();
    await gateway.close();
    damage(gateway);
    return examined(gateway.configFile);
  };

  it.each<[string, string, RegExp, (gateway: TestGateway) => void]>([
    [
      'a damaged database',
      'database',
      /gatehouse restore FILE/,
      (gateway) => writeFileSync(database(gateway), 'x'.repeat(9_000)),
    ],
    [
      'an emptied database',
      'database',
      /gatehouse restore FILE/,
      (gateway) => truncateSync(database(gateway)),
    ],
    [
      'a database without our tables',
      'database',
      /gatehouse restore FILE/,
      (gateway) => {
        truncateSync(database(gateway));
        openConnection(database(gateway))[Symbol.dispose]();
      },
    ],
    ['a lost database', 'database', /gatehouse restore FILE/, (gateway) => rmSync(database(gateway))],
    ['a missing vault key', 'vault key', /^restore it from its backup$/, (gateway) => rmSync(key(gateway))],
    [
      'a vault key others can read',
      'vault key',
      /^run chmod 600 on it$/,
      (gateway) => chmodSync(key(gateway), 0o644),
    ],
    [
      'the vault key of another site',
      'system',
      /^restore it from its backup, or move the whole dataDirectory away/,
      (gateway) => writeFileSync(key(gateway), Buffer.alloc(32, 7)),
    ],
    [
      'a missing site CA',
      'site CA',
      /^restore .*pki from its backup/,
      (gateway) => rmSync(join(gateway.dataDirectory, 'pki'), { recursive: true }),
    ],
    [
      'an issuer whose key is garbage',
      'site CA',
      /^restore .*pki from its backup/,
      (gateway) => writeFileSync(issuerKey(gateway), 'x'),
    ],
    [
      'an issuer without its key',
      'site CA',
      /^restore .*pki from its backup/,
      (gateway) => rmSync(issuerKey(gateway)),
    ],
    [
      'an issuer with the key of another pair',
      'site CA',
      /^restore .*pki from its backup/,
      (gateway) => copyFileSync(join(gateway.dataDirectory, 'pki', 'server-issuer.key'), issuerKey(gateway)),
    ],
    [
      'a data directory open to others',
      'files',
      /chmod 700/,
      (gateway) => chmodSync(gateway.dataDirectory, 0o755),
    ],
    [
      'an unreadable certificate',
      'certificate server',
      /restart/,
      (gateway) => writeFileSync(server(gateway), 'x'),
    ],
    [
      'a name its certificate lacks',
      'certificate server',
      /restart/,
      (gateway) =>
        configure({ http: { listen: '127.0.0.1:0', names: ['elsewhere.example'] } }, gateway.folder),
    ],
    [
      'a serial port that is not there',
      'link bus',
      /ls -l \/dev\/serial\/by-id/,
      (gateway) =>
        configure(
          { links: [{ id: 'bus', protocol: 'loopback', options: { port: '/dev/serial/by-id/none' } }] },
          gateway.folder,
        ),
    ],
  ])('finds %s', async (_what, subject, remedy, damage) => {
    const { exitCode, of } = await broken(damage);
    expect(exitCode).toBe(1);
    expect(of(subject)).toEqual([
      expect.objectContaining({ severity: 'bad', remedy: expect.stringMatching(remedy) }),
    ]);
  });
});

it.skipIf(!canMount())('says of a full disk that it is full', async () => {
  const disk = smallDisk(24 * 1024 * 1024);
  const folder = join(disk.folder, 'site');
  mkdirSync(folder);
  const gateway = await openTestGateway({}, folder);
  await gateway.close();
  disk.fill();
  const { of } = await examined(gateway.configFile);
  expect(of('disk')).toEqual([bad]);
  expect(of('fsync')[0]?.remedy).toMatch(/^the disk is full: make room on it/);
  expect(of('database')[0]?.remedy ?? '').not.toMatch(/restore/);
});

it.skipIf(process.getuid?.() !== 0)(
  'finds nothing wrong for a member of the group, who may not enter the data directory',
  async () => {
    const { configFile, folder } = await openTestGateway({ adminSocket: 'admin.sock' });
    chmodSync(folder, 0o755);
    chmodSync(configFile, 0o644);
    const doctor = spawn(
      process.execPath,
      [join(import.meta.dirname, '../start.js'), 'doctor', '--json', '--config', configFile],
      // The group of the socket is that of this process.
      { uid: 65_534, gid: 0, env: { ...AS_THE_SUITE, HOME: folder }, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [output, exitCode] = await Promise.all([
      text(doctor.stdout),
      new Promise((resolve) => doctor.once('exit', resolve)),
    ]);
    const { checks } = JSON.parse(output) as { checks: Check[] };
    expect(checks.filter(({ severity }) => severity === 'bad')).toEqual([]);
    expect(exitCode).toBe(0);
    expect(checks).toContainEqual(
      expect.objectContaining({ subject: 'files', severity: 'doubtful', remedy: 'sudo gatehouse doctor' }),
    );
  },
);

it('takes nothing for new that this user may not look at', () => {
  const refusal = Object.assign(new Error("EACCES: permission denied, stat 'x'"), { code: 'EACCES' });
  const explained = new Error('/x may not be read by this user: run chown on it', { cause: refusal });
  for (const error of [refusal, explained])
    expect(refused('vault key', error)).toMatchObject({
      severity: 'bad',
      remedy: expect.stringMatching(/run this as the user of the service, or with sudo/),
    });
});

describe('of the network', () => {
  it('distinguishes a free port, the daemon and another program', async () => {
    const { port, close } = await occupied();
    const listen = `127.0.0.1:${port}`;
    const { of } = await examined(configure({ http: { listen } }));
    const found = () => of(`port ${port}`)[0];
    expect(found()).toMatchObject({
      severity: 'bad',
      remedy: expect.stringMatching(/^stop the other program \(ss -ltnp/),
    });
    await close();
    expect((await examined(configure({ http: { listen } }))).of(`port ${port}`)).toEqual([good]);
    const gateway = await openTestGateway({ http: { listen, plain: true } });
    expect((await examined(gateway.configFile)).of(`port ${port}`)[0]?.text).toMatch(/the daemon has it/);
  });

  it('reaches the notification service, or says why not', async () => {
    const { port, close } = await occupied();
    const found = async (url: string) => (await examined(configure({ upstream: { url } }))).of('upstream')[0];
    expect(await found(`mqtt://127.0.0.1:${port}`)).toMatchObject({ severity: 'good' });
    await close();
    expect(await found(`mqtt://127.0.0.1:${port}`)).toMatchObject({
      severity: 'bad',
      text: expect.stringMatching(/ECONNREFUSED.*events wait/),
    });
  });

  it('does not trust a notification service with a certificate of no one known', async () => {
    const gateway = await openTestGateway({ http: { listen: '127.0.0.1:0' } });
    const url = gateway.gateway.baseUrl.replace('https:', 'mqtts:');
    const { of } = await examined(configure({ upstream: { url } }));
    expect(of('upstream')[0]).toMatchObject({
      severity: 'bad',
      remedy: expect.stringMatching(/upstream\.caFile/),
    });
    const caFile = join(gateway.dataDirectory, 'pki', 'root.crt');
    expect((await examined(configure({ upstream: { url, caFile } }))).of('upstream')).toEqual([good]);
  });
});

const database = ({ dataDirectory }: TestGateway) => join(dataDirectory, 'gatehouse.db');
const key = ({ dataDirectory }: TestGateway) => join(dataDirectory, 'keys', 'vault.key');
const issuerKey = ({ dataDirectory }: TestGateway) => join(dataDirectory, 'pki', 'encoder-issuer.key');
const server = ({ dataDirectory }: TestGateway) => join(dataDirectory, 'pki', 'server.pem');

async function occupied(): Promise<{ port: number; close(): Promise<void> }> {
  const other = createServer((socket) => socket.on('error', () => {}));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as { port: number };
  const close = () => new Promise<void>((resolve) => other.close(() => resolve()));
  onTestFinished(close);
  return { port, close };
}
