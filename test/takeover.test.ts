/** Two real gateways on one NATS: the second follows, takes over from one that is killed, and gives back what it took. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { AS_THE_SUITE } from './as-the-suite.ts';
import { natsMissing, openNats, type TestNats } from './services/events/nats.ts';
import { temporaryFolder } from './temporary.ts';

const PROGRAM = join(import.meta.dirname, '../src/start.js');
/** A lease is 12 s, and a start takes some seconds on a busy machine. */
const PATIENCE = { timeout: 60_000, interval: 100 };

interface Played {
  folder: string;
  /** What it has written since it was started last. */
  written(): string;
  start(): void;
  begin(): void;
  kill(): Promise<void>;
  run(...argv: string[]): Promise<string>;
}

function gateway(name: string, nats?: TestNats): Played {
  const folder = temporaryFolder();
  const file = join(folder, 'gatehouse.yaml');
  const lines = [
    'dataDirectory: data',
    "http: { listen: '127.0.0.1:0', plain: true }",
    "encoders: { listen: '127.0.0.1:0' }",
    'links: [{ id: loop, protocol: loopback, options: {} }]',
  ];
  writeFileSync(file, lines.join('\n'));
  if (nats) joinCluster(file, name, nats);
  let text = '';
  let running: ChildProcess | undefined;
  const program = (...argv: string[]) =>
    spawn(process.execPath, [PROGRAM, ...argv, '--config', file], { env: { ...AS_THE_SUITE } });
  const end = async (signal: NodeJS.Signals) => {
    if (!running || running.exitCode !== null || running.signalCode !== null) return;
    const exited = once(running, 'exit');
    running.kill(signal);
    await exited;
  };
  onTestFinished(() => end('SIGKILL'));
  return {
    folder,
    written: () => text,
    begin() {
      text += '--- begun\n';
      this.start();
    },
    start() {
      running = program('serve');
      for (const stream of [running.stdout, running.stderr])
        stream?.on('data', (chunk) => {
          text += String(chunk);
        });
      // As systemd does.
      running.on('exit', (code) => {
        if (code === 1) this.start();
      });
    },
    kill: () => end('SIGKILL'),
    async run(...argv) {
      const child = program(...argv);
      let answer = '';
      for (const stream of [child.stdout, child.stderr])
        stream?.on('data', (chunk) => {
          answer += String(chunk);
        });
      await once(child, 'close');
      return answer;
    },
  };
}

function joinCluster(file: string, name: string, nats: TestNats): void {
  const cluster = `\ncluster: { name: ${name}, urls: ['${nats.url}'], replicas: 1 }\n`;
  writeFileSync(file, readFileSync(file, 'utf8') + cluster);
}

const serves = (one: Played) =>
  vi.waitFor(() => expect(one.written().split('--- begun').at(-1)).toContain('ready at'), PATIENCE);
const says = (one: Played, text: string) =>
  vi.waitFor(async () => expect(await one.run('cluster', 'status')).toContain(text), PATIENCE);

it.skipIf(natsMissing)(
  'takes over from one that is killed, and gives back',
  { timeout: 180_000 },
  async () => {
    await using nats = await openNats(temporaryFolder());
    const a = gateway('a');
    const b = gateway('b', nats);
    a.begin();
    await serves(a);
    await a.kill();
    joinCluster(join(a.folder, 'gatehouse.yaml'), 'a', nats);
    // What an archive brings.
    for (const name of ['keys', 'pki', 'gatehouse.db', 'gatehouse.db-wal'])
      cpSync(join(a.folder, 'data', name), join(b.folder, 'data', name), { recursive: true });
    // As a restore makes them; a copy forgets it.
    for (const name of ['keys', 'pki']) chmodSync(join(b.folder, 'data', name), 0o700);
    a.begin();
    await serves(a);
    b.begin();
    await says(b, 'b follows and takes over when a is gone');

    await a.run('token', 'create', '--role', 'service-tool', '--label', 'before');
    await says(b, '0 messages behind');
    await a.kill();
    await serves(b);
    expect(await b.run('token', 'list')).toContain('before');
    expect(await b.run('audit', 'verify')).toContain('✓');
    expect(await b.run('status')).toContain('loop');

    a.begin();
    await says(a, 'a follows and takes over when b is gone');
    await b.run('token', 'create', '--role', 'service-tool', '--label', 'between');
    await says(a, '0 messages behind');
    expect(await a.run('cluster', 'promote')).toContain('a is active (epoch 3)');
    await serves(a);
    expect(await a.run('token', 'list')).toContain('between');
    await vi.waitFor(() => expect(b.written()).toContain('standby: a is active'), PATIENCE);
  },
);
