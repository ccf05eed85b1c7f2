import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type TestShell, testShell } from '../../test/shell.ts';
import { type GatewayOptions, openGateway } from '../app/gateway.ts';
import { configSchema } from '../platform/config/config.ts';
import { TooLittleRoom } from '../platform/database/migrate.ts';
import { roomForStart } from '../platform/database/space.ts';
import { holdDataDirectory } from './data-directory.ts';
import { markFinished, markUnfinished } from './leftovers.ts';
import { run } from './program.ts';
import { startFailure } from './serve.ts';

vi.mock('../app/gateway.ts', () => ({ openGateway: vi.fn() }));

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-serve-'));
  file = join(folder, 'gatehouse.yaml');
  writeFileSync(file, 'dataDirectory: data\n');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const closed: string[] = [];
const reloads: string[] = [];
/** In place of the gateway: opens at once, and says when it is closed. */
function opens(close: () => Promise<void> = async () => {}): void {
  closed.length = 0;
  vi.mocked(openGateway).mockImplementation(async ({ config }: GatewayOptions) => ({
    systemId: 'S',
    baseUrl: 'https://gateway:8443',
    encoderUrl: 'mqtts://gateway:8883',
    adminSocket: join(config.dataDirectory, 'admin.sock'),
    vitals: [],
    reload: async () => void reloads.push(config.dataDirectory),
    async [Symbol.asyncDispose]() {
      await close();
      closed.push(config.dataDirectory);
    },
  }));
}
function fails(error: unknown): void {
  vi.mocked(openGateway).mockRejectedValue(error);
}
const serving = (shell: TestShell) => run(['serve', '--config', file], shell);
const ready = (shell: TestShell) =>
  vi.waitFor(() => expect(shell.written.stdout).toContain('ready at https://gateway:8443'));

it('says where it serves, and closes everything at a signal', async () => {
  opens();
  const shell = testShell();
  const served = serving(shell);
  await ready(shell);
  const lines = shell.written.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.at(-1)).toMatchObject({ level: 'info', systemId: 'S', encoderUrl: 'mqtts://gateway:8883' });
  expect(closed).toEqual([]);
  shell.stop();
  expect(await served).toBe(0);
  expect(closed).toEqual([join(folder, 'data')]);
});

it('removes what a killed restore or backup has left, and follows no link', async () => {
  opens();
  const data = join(folder, 'data');
  const elsewhere = join(folder, 'elsewhere');
  for (const path of ['restoring/data/keys', 'backups/making-a', 'backups/replaced-b'])
    mkdirSync(join(data, path), { recursive: true });
  mkdirSync(elsewhere);
  for (const file of [
    join(data, 'restoring/data/keys/vault.key'),
    join(data, 'backups/making-a/gatehouse.db'),
    join(elsewhere, 'file'),
  ])
    writeFileSync(file, 'secret');
  symlinkSync(elsewhere, join(data, 'restoring', 'link'));
  symlinkSync(elsewhere, join(data, 'backups', 'making-link'));
  const shell = testShell();
  const served = serving(shell);
  await ready(shell);
  shell.stop();
  expect(await served).toBe(0);
  expect(existsSync(join(data, 'restoring'))).toBe(false);
  expect(readdirSync(join(data, 'backups'))).toEqual(['replaced-b']);
  expect(readdirSync(elsewhere)).toEqual(['file']);
  expect(shell.written.stdout).toMatch(/restoring.*removed what is left of a restore/);
});

it('leaves what a restore is at work with, which holds the data directory', async () => {
  opens();
  const restoring = join(folder, 'data', 'restoring');
  mkdirSync(restoring, { recursive: true });
  using _restore = holdDataDirectory(join(folder, 'data'));
  expect(await serving(testShell())).toBe(1);
  expect(existsSync(restoring)).toBe(true);
});

it('does not begin on what a restore has put in place by halves, and leaves what it had unpacked', async () => {
  opens();
  const data = join(folder, 'data');
  mkdirSync(join(data, 'restoring'), { recursive: true });
  markUnfinished(data, '/media/stick/copy.age');
  const shell = testShell();
  expect(await serving(shell)).toBe(1);
  expect(shell.written.stderr).toMatch(/restore into .* was cut short.*run gatehouse restore again/);
  expect(existsSync(join(data, 'restoring'))).toBe(true);
  markFinished(data);
  const again = testShell();
  const served = serving(again);
  await ready(again);
  again.stop();
  expect(await served).toBe(0);
});

it('starts the first host before it opens the gateway, and leaves none behind', async () => {
  writeFileSync(file, 'dataDirectory: data\nlinks: [{ id: desk, protocol: loopback, host: field }]\n');
  fails(new Error('no'));
  expect(await serving(testShell())).toBe(1);
  const { first } = vi.mocked(openGateway).mock.lastCall?.[0].processes ?? {};
  expect(first).toMatchObject({ name: 'field', process: { pid: expect.any(Number) } });
  expect(await first?.process.exited).toBe('it ended with SIGKILL');
});

it('stops at a signal that came while it was starting', async () => {
  opens();
  const shell = testShell();
  shell.stop();
  expect(await serving(shell)).toBe(0);
  expect(closed).toHaveLength(1);
});

it('refuses to run twice on one data directory, and starts when the first is gone', async () => {
  opens();
  const first = testShell();
  const served = serving(first);
  await ready(first);
  const second = testShell();
  expect(await serving(second)).toBe(1);
  expect(second.written.stderr).toBe(
    `dataDirectory: another Gatehouse is running on ${join(folder, 'data')}: stop it (systemctl stop gatehouse), or give this one a dataDirectory of its own\n`,
  );
  first.stop();
  await served;
  const third = testShell();
  third.stop();
  expect(await serving(third)).toBe(0);
});

it('says what to do about a data directory it may not have', async () => {
  opens();
  writeFileSync(join(folder, 'data'), 'a file');
  const shell = testShell();
  expect(await serving(shell)).toBe(1);
  expect(shell.written.stderr).toMatch(
    /^dataDirectory: .*data cannot be used: give this user .*: EEXIST[^\n]*\n$/,
  );
});

it('says in the log that others may write to the data directory', async () => {
  opens();
  const data = join(folder, 'data');
  mkdirSync(data);
  for (const [mode, isSaid] of [
    [0o777, true],
    [0o770, true],
    [0o750, false],
  ] as const) {
    chmodSync(data, mode);
    const shell = testShell();
    const served = serving(shell);
    await ready(shell);
    shell.stop();
    expect(await served).toBe(0);
    expect(shell.written.stdout.includes(`chmod go-w ${data}`)).toBe(isSaid);
  }
});

it('refuses a data directory where no folder can be made, at once', async () => {
  opens();
  writeFileSync(file, 'dataDirectory: /proc/gatehouse/data\n');
  const shell = testShell();
  expect(await serving(shell)).toBe(1);
  expect(shell.written.stderr).toMatch(/^dataDirectory: \/proc\/gatehouse\/data cannot be used: [^\n]+\n$/);
});

it('lets the data directory go when the gateway does not start', async () => {
  fails(new Error('no'));
  expect(await serving(testShell())).toBe(1);
  opens();
  const shell = testShell();
  shell.stop();
  expect(await serving(shell)).toBe(0);
});

it('ends with 2 and the place for a mistake in the configuration', async () => {
  writeFileSync(file, 'encoders:\n  vendorRoots: [missing.pem]\n');
  const shell = testShell();
  expect(await serving(shell)).toBe(2);
  expect(shell.written.stderr).toMatch(/gatehouse\.yaml:2:17: encoders\.vendorRoots\[0\]: cannot read/);
});

it('gives one line for a failure to start, and the stack at debug only', async () => {
  for (const level of ['info', 'debug']) {
    writeFileSync(file, `dataDirectory: data\nlog: { level: ${level} }\n`);
    fails(new Error('the disk is upside down', { cause: new Error('gravity') }));
    const shell = testShell();
    expect(await serving(shell)).toBe(1);
    expect(shell.written.stderr).toBe('the disk is upside down: gravity\n');
    expect(shell.written.stdout.includes('serve.test.ts')).toBe(level === 'debug');
  }
});

it('logs a crash once it has a log', async () => {
  opens();
  const shell = testShell();
  const served = serving(shell);
  await ready(shell);
  shell.crash?.(new Error('a fault'));
  expect(shell.written.stdout).toMatch(/"level":"error".*"message":"a fault".*crashed/);
  shell.stop();
  await served;
});

it('names the setting of an address or path that cannot be had', async () => {
  const occupied = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => occupied.once('listening', resolve));
  const { port } = occupied.address() as { port: number };
  const inUse = await new Promise<Error>((resolve) =>
    createServer().once('error', resolve).listen(port, '127.0.0.1'),
  );
  occupied.close();
  const unknown = await new Promise<Error>((resolve) =>
    createServer().once('error', resolve).listen(0, 'no-such-host.invalid'),
  );
  const config = configSchema.parse({
    dataDirectory: '/data',
    http: { listen: 'no-such-host.invalid:1' },
    encoders: { listen: `127.0.0.1:${port}` },
  });
  expect(startFailure(new Error('in use', { cause: inUse }), config)).toMatch(/^encoders\.listen: in use: /);
  expect(startFailure(unknown, config)).toMatch(/^http\.listen: getaddrinfo ENOTFOUND/);
  expect(startFailure(new Error('outer: inner', { cause: new Error('inner') }), config)).toBe('outer: inner');
  expect(startFailure('text', config)).toBe('text');
});

it('does not wait for ever for what does not close', async () => {
  opens(() => new Promise(() => {}));
  const shell = testShell();
  const served = serving(shell);
  await ready(shell);
  shell.stop();
  await vi.waitFor(() => expect(shell.clock.sleepers()).toBe(1));
  await shell.clock.advance(9_999);
  expect(shell.written.stderr).toBe('');
  await shell.clock.advance(1);
  expect(await served).toBe(1);
  expect(shell.written.stderr).toBe('not everything was closed within 10 s\n');
});

it('has itself killed in 20 s from the signal on, for a disk may hold it up in a write', async () => {
  opens();
  const killed: [milliseconds: number, lastWords: string][] = [];
  const shell = testShell({ killAfter: (...order) => void killed.push(order) });
  const served = serving(shell);
  await ready(shell);
  expect(killed).toEqual([]);
  shell.stop();
  expect(await served).toBe(0);
  expect(killed).toEqual([
    [20_000, expect.stringMatching(/^gatehouse: .* What was answered is stored; .*\n$/)],
  ]);
});

it('reads the configuration again at SIGHUP, also at one that came before it was ready', async () => {
  opens();
  reloads.length = 0;
  const shell = testShell();
  const served = serving(shell);
  await vi.waitFor(() => expect(shell.hangUp).toBeDefined());
  shell.hangUp?.();
  await ready(shell);
  await vi.waitFor(() => expect(reloads).toHaveLength(1));
  shell.hangUp?.();
  expect(reloads).toHaveLength(2);
  shell.stop();
  await served;
});

it('says how much room a new schema needs beyond what is free, and waits for it', async () => {
  const missingBytes = 2 ** 50;
  fails(new TooLittleRoom('gatehouse.db', roomForStart(folder).freeBytes + missingBytes));
  mkdirSync(join(folder, 'data'));
  const shell = testShell();
  const served = serving(shell);
  await vi.waitFor(() => expect(shell.written.stdout).toContain('waiting for room before the end'));
  shell.stop();
  expect(await served).toBe(1);
  // Other programs write to this disk meanwhile.
  const [, missingKib] =
    /too little room, \d+ KiB are free: .* when (\d+) KiB more are/.exec(shell.written.stderr) ?? [];
  expect(Number(missingKib) / (missingBytes / 1_024)).toBeCloseTo(1, 3);
});
