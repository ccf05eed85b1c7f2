/** mosquitto as the notification service, and mosquitto_sub as its consumer: independent peers. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../../free-port.ts';

export const mosquittoMissing = spawnSync('mosquitto_sub', ['--help']).error !== undefined;

export interface Mosquitto extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
  /** Kills it with -9. */
  kill(): Promise<void>;
}

export interface MosquittoOptions {
  folder: string;
  /** Further lines of mosquitto.conf(5). */
  lines?: string[];
  port?: number;
  name?: string;
}

const TRIES = 3;

/** Started and accepting connections. */
export async function openMosquitto(options: MosquittoOptions): Promise<Mosquitto> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await started(options, options.port ?? (await freePort()));
    } catch (error) {
      // Something else may have taken the port meanwhile.
      if (options.port !== undefined || tries === TRIES) throw error;
    }
  }
}

async function started(options: MosquittoOptions, port: number): Promise<Mosquitto> {
  const { folder, lines = [], name = 'mosquitto' } = options;
  const file = join(folder, `${name}.conf`);
  const common = [
    `listener ${port} 127.0.0.1`,
    'allow_anonymous true',
    'set_tcp_nodelay true',
    'max_queued_messages 0',
    'max_inflight_messages 1000',
    'log_type error',
  ];
  // Started by root it would otherwise become a user who cannot read the folder.
  if (process.getuid?.() === 0) common.push('user root');
  writeFileSync(file, [...common, ...lines, ''].join('\n'));
  const child = spawn('mosquitto', ['-c', file], { stdio: ['ignore', 'inherit', 'inherit'] });
  await accepting(port, child);
  const end = (signal: NodeJS.Signals) => async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  return { port, pid: child.pid ?? 0, kill: end('SIGKILL'), [Symbol.asyncDispose]: end('SIGTERM') };
}

export interface Subscriber extends AsyncDisposable {
  /** `at`: performance.now() of this process. */
  readonly received: { topic: string; payload: string; at: number }[];
}

/** Subscribed with QoS 1, to everything of ours when no topics are named. `further`: arguments of mosquitto_sub(1). */
export async function openSubscriber(
  port: number,
  { topics: named = ['gatehouse/#'], further = [] }: { topics?: string[]; further?: string[] } = {},
): Promise<Subscriber> {
  const received: Subscriber['received'] = [];
  const topics = [...named, 'ready'].flatMap((topic) => ['-t', topic]);
  const args = [
    '-h',
    '127.0.0.1',
    '-p',
    String(port),
    '-q',
    '1',
    '-V',
    '5',
    ...topics,
    '-F',
    '%t %p',
    ...further,
  ];
  const child = spawn('mosquitto_sub', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const { promise: ready, resolve } = Promise.withResolvers<void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const space = line.indexOf(' ');
    if (line.startsWith('ready')) resolve();
    else
      received.push({ topic: line.slice(0, space), payload: line.slice(space + 1), at: performance.now() });
  });
  // Its own subscription is proven by what comes through it.
  const knock = setInterval(() => {
    spawn('mosquitto_pub', ['-h', '127.0.0.1', '-p', String(port), '-t', 'ready', '-m', '1', ...further]);
  }, 50);
  await ready.finally(() => clearInterval(knock));
  return {
    received,
    async [Symbol.asyncDispose]() {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
    },
  };
}

async function accepting(port: number, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`mosquitto ended with ${child.exitCode}`);
    const socket = connect(port, '127.0.0.1');
    const up = await new Promise((resolve) =>
      socket.once('connect', () => resolve(true)).once('error', resolve),
    );
    socket.destroy();
    if (up === true) return;
  }
}
