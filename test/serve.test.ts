/** The daemon as the system runs it: a process, its signals, its exit codes and what it says. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readdirSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { AS_THE_SUITE } from './as-the-suite.ts';
import { temporaryFolder } from './temporary.ts';

const ROOT = join(import.meta.dirname, '..');
const MAIN = join(ROOT, 'src/start.js');

// Each test starts several processes, on machines that do other things as well.
vi.setConfig({ testTimeout: 60_000 });

let folder: string;
let config: string;
beforeEach(() => {
  folder = temporaryFolder();
  config = join(folder, 'gatehouse.yaml');
  configure();
});

function configure(http = '127.0.0.1:0', encoders = '127.0.0.1:0'): void {
  writeFileSync(
    config,
    `dataDirectory: data\nhttp: { listen: '${http}' }\nencoders: { listen: '${encoders}' }\n`,
  );
}

interface Running {
  child: ChildProcess;
  output: { stdout: string; stderr: string };
  /** The exit code, or the name of the signal that ended it. */
  ended: Promise<number | string | null>;
}

/** A child with an environment of its own: its compile cache stays in the folder of the test. */
function environment(): Record<string, string> {
  return { ...AS_THE_SUITE, PATH: process.env.PATH ?? '', HOME: folder };
}

function serve(): Running {
  const child = spawn(process.execPath, [MAIN, 'serve', '--config', config], { env: environment() });
  onTestFinished(() => void child.kill('SIGKILL'));
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => (output.stdout += chunk));
  child.stderr.on('data', (chunk) => (output.stderr += chunk));
  return {
    child,
    output,
    ended: new Promise((resolve) => child.once('close', (code, signal) => resolve(code ?? signal))),
  };
}

async function ready({ child, output, ended }: Running): Promise<void> {
  const isReady = new Promise<void>((resolve) =>
    child.stdout?.on('data', () => {
      if (output.stdout.includes('"message":"ready at ')) resolve();
    }),
  );
  await Promise.race([
    isReady,
    ended.then((code) => {
      throw new Error(`ended with ${code}: ${output.stderr}`);
    }),
  ]);
}

const cli = (...argv: string[]) =>
  spawnSync(process.execPath, [MAIN, ...argv, '--config', config], { env: environment(), encoding: 'utf8' });

it('serves, answers the command line, and ends with 0 at SIGTERM', async () => {
  const daemon = serve();
  await ready(daemon);
  expect(daemon.output.stdout).toContain(
    'GATEHOUSE_BUNDLE' in AS_THE_SUITE ? '/dist/main/' : '/src/cli/serve.ts"',
  );
  const created = cli('token', 'create', '--role', 'pms', '--label', 'hotel system');
  expect(created.stdout).toMatch(/^gwt_[\w-]+\n$/);
  expect(cli('token', 'list').stdout).toContain('hotel system');
  const status = cli('status', '--json');
  expect(status.status).toBe(0);
  expect(JSON.parse(status.stdout).encoders).toMatchObject({ registered: 0, connected: 0 });
  expect(cli('status').stdout).toMatch(/✓ {2}interface +https:\/\/127\.0\.0\.1:\d+\n/);
  const id = created.stdout.split('_')[1] ?? '';
  expect(cli('token', 'revoke', id).status).toBe(0);
  expect(cli('token', 'list').stdout).toMatch(/revoked +pms/);

  daemon.child.kill('SIGTERM');
  expect(await daemon.ended).toBe(0);
  expect(daemon.output.stderr).toBe('');
  expect(cli('status')).toMatchObject({ status: 3, stdout: '' });
});

it('refuses a second on its data directory, and starts again after kill -9', async () => {
  const first = serve();
  await ready(first);
  const second = serve();
  expect(await second.ended).toBe(1);
  expect(second.output.stderr).toMatch(/^dataDirectory: another Gatehouse is running on [^\n]+\n$/);
  expect(cli('status').status).toBe(0);

  first.child.kill('SIGKILL');
  expect(await first.ended).toBe('SIGKILL');
  expect(cli('status').status).toBe(3);
  const third = serve();
  await ready(third);
  expect(cli('status').status).toBe(0);
  third.child.kill('SIGINT');
  expect(await third.ended).toBe(0);
});

it.each(['http.listen', 'encoders.listen'])('names %s when its port is in use', async (setting) => {
  const occupied = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => occupied.once('listening', resolve));
  onTestFinished(() => void occupied.close());
  const { port } = occupied.address() as { port: number };
  configure(...(setting === 'http.listen' ? [`127.0.0.1:${port}`] : ['127.0.0.1:0', `127.0.0.1:${port}`]));
  const daemon = serve();
  expect(await daemon.ended).toBe(1);
  expect(daemon.output.stderr).toMatch(/^[^\n]+\n$/);
  expect(daemon.output.stderr).toContain(`${setting}: `);
  expect(daemon.output.stderr).toMatch(/in use/);
});

it('says in one line what is wrong with its files', async () => {
  const daemon = serve();
  await ready(daemon);
  daemon.child.kill();
  await daemon.ended;
  writeFileSync(
    join(folder, 'data', 'gatehouse.db'),
    'no database, but long enough to be looked at '.repeat(40),
  );
  const broken = serve();
  expect(await broken.ended).toBe(1);
  expect(broken.output.stderr).toMatch(/^[^\n]*gatehouse\.db is damaged or not a database: [^\n]+\n$/);

  configure();
  writeFileSync(join(folder, 'root.pem'), 'no certificate');
  writeFileSync(
    config,
    'dataDirectory: other\nencoders: { vendorRoots: [root.pem], listen: "127.0.0.1:0" }\n',
  );
  const rootless = serve();
  expect(await rootless.ended).toBe(1);
  expect(rootless.output.stderr).toMatch(/^[^\n]*root\.pem[^\n]*\n$/);
});

it.each(['gatehouse.db', 'keys', 'pki'])('makes no new installation when %s was lost', async (lost) => {
  const daemon = serve();
  await ready(daemon);
  daemon.child.kill();
  await daemon.ended;
  renameSync(join(folder, 'data', lost), join(folder, 'lost'));
  const left = readdirSync(join(folder, 'data')).sort();
  const second = serve();
  expect(await second.ended).toBe(1);
  expect(second.output.stderr).toMatch(/^[^\n]* is missing[^\n]*\n$/);
  expect(second.output.stderr).toContain(`${join(folder, 'data', lost)}`);
  expect(second.output.stderr).toMatch(/: restore \S+ from its backup/);
  expect(
    readdirSync(join(folder, 'data'))
      .filter((name) => !/-wal|-shm/.test(name))
      .sort(),
  ).toEqual(left);
  renameSync(join(folder, 'lost'), join(folder, 'data', lost));
  await ready(serve());
});
