/** The service as systemd runs it: its unit, and what the daemon says on systemd's socket. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished, vi } from 'vitest';
import { KILL_DEADLINE_MS } from '../src/cli/serve.ts';
import { openConnection } from '../src/platform/database/connection.ts';
import { AS_THE_SUITE } from './as-the-suite.ts';
import { temporaryFolder } from './temporary.ts';

vi.setConfig({ testTimeout: 180_000 });

const ROOT = join(import.meta.dirname, '..');
const UNIT = join(ROOT, 'systemd/gatehouse.service');
const LAUNCH = join(ROOT, 'systemd/launch');
const MAIN = join(ROOT, 'src/start.js');
const NOTIFY = join(ROOT, 'src/platform/host/notify.ts');
/**
 * Tenths of 10, which is a service without any fence. 1.2 needs a list of addresses, which only the site knows (docs/operations.md,
 * Ports), and no setpriority, which the daily check of the database gives way with: strict.conf has both.
 */
const EXPOSURE_MAX = 14;
const EXPOSURE_STRICT_MAX = 12;
const STRICT = join(ROOT, 'systemd/strict.conf');
const HTTPS_SOCKET = join(ROOT, 'systemd/gatehouse-https.socket');
/** Two processes start, on a machine that may be busy with other tests. */
const PATIENCE_MS = 150_000;

const missing = (command: string, ...argv: string[]) => spawnSync(command, argv).status !== 0;
const NO_ANALYZE = missing('systemd-analyze', '--version');
const NO_SYSUSERS = missing('systemd-sysusers', '--version');
const NO_PEER = missing('/usr/bin/perl', '-v') || missing('/usr/bin/python3', '--version');

it.skipIf(NO_ANALYZE)('has a unit that systemd understands, with little exposed', () => {
  const strict = join(temporaryFolder(), 'gatehouse.service');
  const credential = '[Service]\nLoadCredentialEncrypted=upstream.password\n';
  writeFileSync(strict, readFileSync(UNIT, 'utf8') + readFileSync(STRICT, 'utf8') + credential);
  for (const units of [[UNIT, HTTPS_SOCKET], [strict]]) {
    const verified = spawnSync('systemd-analyze', ['verify', ...units], { encoding: 'utf8' });
    expect(verified).toMatchObject({ status: 0, stderr: '', stdout: '' });
  }
  for (const [unit, most] of [
    [UNIT, EXPOSURE_MAX],
    [strict, EXPOSURE_STRICT_MAX],
  ] as const) {
    const argv = ['security', '--offline=yes', `--threshold=${most}`, unit];
    const { status, stdout } = spawnSync('systemd-analyze', argv, { encoding: 'utf8' });
    expect(stdout).toMatch(/Overall exposure level/);
    expect(status, stdout.trim().split('\n').at(-1)).toBe(0);
  }
});

/** As systemd does it: a socket that listens is descriptor 3, and has a name. */
const ACTIVATE = `
import os, socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
print(s.getsockname()[1], flush=True)
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_FDNAMES="https", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], sys.argv[1:])
`;

it.skipIf(NO_PEER)('serves HTTPS on the socket that it is handed, whatever http.listen says', async () => {
  const folder = temporaryFolder();
  const config = join(folder, 'gatehouse.yaml');
  // Port 1 would be refused to a service that is not root, and root has it to itself.
  const settings = 'http: { listen: "127.0.0.1:1" }\nencoders: { listen: "127.0.0.1:0" }\n';
  writeFileSync(config, `dataDirectory: data\n${settings}`);
  const argv = ['-c', ACTIVATE, LAUNCH, process.execPath, MAIN, 'serve', '--config', config];
  const daemon = spawn('/usr/bin/python3', argv, {
    env: { ...AS_THE_SUITE, HOME: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void daemon.kill('SIGKILL'));
  let output = '';
  daemon.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  await vi.waitFor(() => expect(output).toContain('"ready at'), { timeout: PATIENCE_MS, interval: 20 });
  const [port] = output.split('\n');
  expect(output).toContain(`"baseUrl":"https://127.0.0.1:${port}"`);
  const status = await new Promise((resolve, reject) => {
    const ca = readFileSync(join(folder, 'data/pki/root.crt'));
    get(`https://127.0.0.1:${port}/readyz`, { ca }, (answer) => resolve(answer.resume().statusCode)).on(
      'error',
      reject,
    );
  });
  expect(status).toBe(200);
});

it('gives a stop more time than the daemon takes, whatever the disk does', () => {
  const [, seconds] = /^TimeoutStopSec=(\d+)s$/m.exec(readFileSync(UNIT, 'utf8')) ?? [];
  expect(Number(seconds) * 1_000).toBeGreaterThanOrEqual(KILL_DEADLINE_MS + 5_000);
});

it.skipIf(NO_SYSUSERS)('describes its user', () => {
  const file = join(ROOT, 'systemd/sysusers.d/gatehouse.conf');
  expect(spawnSync('systemd-sysusers', ['--dry-run', file], { encoding: 'utf8' })).toMatchObject({
    status: 0,
  });
});

interface Systemd {
  /** The datagrams so far. */
  words: string[];
  daemon: ChildProcess;
  /** Resolves once `count` more datagrams of this text have come. */
  hears(text: string, count?: number): Promise<void>;
  /** Resolves once all that was sent before has come. */
  drained(): Promise<void>;
  /** How many datagrams of this text have come. */
  count(text: string): number;
  /** The file of its database. */
  database: string;
}

/** In the place of systemd: a datagram socket, and the daemon started by the launcher. */
async function systemd(watchdogMs: number): Promise<Systemd> {
  const folder = temporaryFolder();
  const socket = join(folder, 'notify');
  const receiver = spawn('/usr/bin/python3', ['-u', '-c', RECEIVER, socket], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void receiver.kill('SIGKILL'));
  const words: string[] = [];
  let rest = '';
  receiver.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    words.push(...lines);
  });
  const waitFor = (until: () => boolean) =>
    vi.waitFor(() => expect(until()).toBe(true), { timeout: PATIENCE_MS, interval: 20 });
  await waitFor(() => words.includes('listening'));

  const config = join(folder, 'gatehouse.yaml');
  writeFileSync(
    config,
    'dataDirectory: data\nhttp: { listen: "127.0.0.1:0", names: [gatehouse.hotel.example] }\nencoders: { listen: "127.0.0.1:0" }\n',
  );
  const daemon = spawn(LAUNCH, [process.execPath, MAIN, 'serve', '--config', config], {
    env: { ...AS_THE_SUITE, HOME: folder, NOTIFY_SOCKET: socket, WATCHDOG_USEC: String(watchdogMs * 1_000) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  onTestFinished(() => void daemon.kill('SIGKILL'));
  let markers = 0;
  const count = (text: string) => words.filter((word) => word === text).length;
  return {
    words,
    daemon,
    async hears(text, more = 1) {
      const wanted = count(text) + more;
      await waitFor(() => count(text) >= wanted);
    },
    async drained() {
      markers += 1;
      const marker = `marker ${markers}`;
      receiver.stdin.write(`${marker}\n`);
      await waitFor(() => words.includes(marker));
    },
    count,
    database: join(folder, 'data', 'gatehouse.db'),
  };
}

/** Prints each datagram, and sends each line of its input to itself: datagrams of a unix socket keep their order. */
const RECEIVER = `
import socket, sys, threading
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
def mark():
    for line in sys.stdin:
        s.sendto(line.strip().encode(), sys.argv[1])
threading.Thread(target=mark, daemon=True).start()
print("listening")
while True:
    print(s.recv(4096).decode().replace("\\n", " | "))
`;

/** As proc(5) has it: T is stopped. */
function stateOf({ pid }: ChildProcess): string | undefined {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.[0];
}

/** Under a name of the certificate. */
const READY = /^READY=1 \| STATUS=ready at https:\/\/gatehouse\.hotel\.example:\d+, encoders at mqtts:/;

it.skipIf(NO_PEER)('says when it is ready, that it lives, and that it stops', async () => {
  const { words, daemon, hears } = await systemd(1_500);
  await hears('WATCHDOG=1', 3);
  expect(words[1]).toMatch(READY);
  expect(words.some((word) => /^STATUS=ready at /.test(word))).toBe(true);
  const ended = new Promise((resolve) => daemon.once('exit', resolve));
  daemon.kill('SIGTERM');
  expect(await ended).toBe(0);
  await vi.waitFor(() => expect(words.at(-1)).toBe('STOPPING=1 | STATUS=stopping'), PATIENCE_MS);
});

it.skipIf(NO_PEER)('gives no sign of life while its event loop hangs', async () => {
  const { daemon, hears, drained, count } = await systemd(900);
  await hears('WATCHDOG=1');
  daemon.kill('SIGSTOP');
  await vi.waitFor(() => expect(stateOf(daemon)).toBe('T'), PATIENCE_MS);
  await drained();
  const before = count('WATCHDOG=1');
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  await drained();
  expect(count('WATCHDOG=1')).toBe(before);
  daemon.kill('SIGCONT');
  await hears('WATCHDOG=1');
});

it.skipIf(NO_PEER)('lives while another program keeps its writer from the database', async () => {
  const { hears, drained, database } = await systemd(900);
  await hears('WATCHDOG=1');
  using intruder = openConnection(database);
  intruder.exec('BEGIN IMMEDIATE');
  // One may have been on its way.
  await drained();
  await hears('WATCHDOG=1', 2);
  intruder.exec('ROLLBACK');
});

it.skipIf(NO_PEER)(
  'is not held up by a systemd that does not listen, which hears later what it had not taken',
  async () => {
    const folder = temporaryFolder();
    const socket = join(folder, 'notify');
    const receiver = spawn('/usr/bin/python3', ['-u', '-c', RECEIVER, socket], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void receiver.kill('SIGKILL'));
    let heard = '';
    receiver.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      heard += chunk;
    });
    const hears = (text: string) => vi.waitFor(() => expect(heard).toContain(text), PATIENCE_MS);
    await hears('listening');
    receiver.kill('SIGSTOP');
    // More than the queue of any kernel holds (net.unix.max_dgram_qlen); then a word once systemd listens again.
    const program = `
    const { openNotifier } = await import(${JSON.stringify(pathToFileURL(NOTIFY).href)});
    const notifier = openNotifier(process.env);
    for (let sent = 0; sent < 5_000; sent += 1) notifier.alive();
    notifier.ready('all is well');
    console.log('goes on');
    process.stdin.once('data', () => { notifier.alive(); process.exit(); });
  `;
    const service = spawn(LAUNCH, [process.execPath, '--input-type=module', '-e', program], {
      env: { ...AS_THE_SUITE, HOME: folder, NOTIFY_SOCKET: socket },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => void service.kill('SIGKILL'));
    await once(service.stdout, 'data');
    receiver.kill('SIGCONT');
    await hears('WATCHDOG=1');
    service.stdin.write('\n');
    await hears('WATCHDOG=1 | READY=1 | STATUS=all is well');
  },
);

it.skipIf(NO_PEER)('runs without systemd, and with a descriptor that is no socket', async () => {
  const folder = temporaryFolder();
  const { stdout, status } = spawnSync(LAUNCH, [process.execPath, MAIN, 'version'], {
    env: { ...AS_THE_SUITE, HOME: folder, GATEHOUSE_NOTIFY_FD: '1', WATCHDOG_USEC: '1' },
    encoding: 'utf8',
  });
  expect(status).toBe(0);
  expect(stdout).toMatch(/^gatehouse /);
});
