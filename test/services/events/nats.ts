/** nats-server with JetStream as the notification service: an independent peer. Streams are asked for over its own API. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../free-port.ts';

/** As apt puts it where root alone looks. */
export const NATS_SERVER = '/usr/sbin/nats-server';

const ANSWER_MS = 20_000;

export const natsMissing = spawnSync(NATS_SERVER, ['--version']).error !== undefined;

export interface TestNats extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** One request of the JetStream API, such as STREAM.INFO.events. */
  ask(name: string, body?: object): Promise<Record<string, unknown>>;
  kill(): Promise<void>;
}

/** Started and accepting connections; it chooses a free port, unless one is given. `further`: arguments of nats-server(8). */
export async function openNats(
  folder: string,
  { port, further = [] }: { port?: number; further?: string[] } = {},
): Promise<TestNats> {
  const chosen = port ?? (await freePort());
  const ports = join(folder, 'ports');
  mkdirSync(ports, { recursive: true });
  const argv = ['-js', '-sd', join(folder, 'streams'), '-a', '127.0.0.1', '-p', String(chosen)];
  const child = spawn(NATS_SERVER, [...argv, '--ports_file_dir', ports, ...further], { stdio: 'ignore' });
  const end = (signal: NodeJS.Signals) => async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  const file = join(ports, `nats-server_${child.pid}.ports`);
  let url: string | undefined;
  while (url === undefined) {
    if (child.exitCode !== null) throw new Error(`nats-server ended with ${child.exitCode}`);
    url = urlIn(file);
    if (url === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const found = Number(new URL(url).port);
  return {
    url: `nats://127.0.0.1:${found}`,
    port: found,
    ask: (name, body) => ask(found, `$JS.API.${name}`, body),
    kill: end('SIGKILL'),
    [Symbol.asyncDispose]: end('SIGTERM'),
  };
}

/** Undefined: it is not written yet. */
function urlIn(file: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { nats: string[] }).nats[0];
  } catch {
    return undefined;
  }
}

/** One request and its answer, by the NATS client protocol. */
export async function ask(port: number, subject: string, body?: object): Promise<Record<string, unknown>> {
  const socket = connect(port, '127.0.0.1');
  // A stream without a leader answers nothing.
  socket.setTimeout(ANSWER_MS, () => socket.destroy());
  const payload = body ? JSON.stringify(body) : '';
  socket.write('CONNECT {"verbose":false}\r\nSUB answer 1\r\n');
  socket.write(`PUB ${subject} answer ${Buffer.byteLength(payload)}\r\n${payload}\r\n`);
  let text = '';
  try {
    for await (const chunk of socket) {
      text += String(chunk);
      const [, json] = /^MSG answer 1 \d+\r\n(.*)\r\n/m.exec(text) ?? [];
      if (json !== undefined) return JSON.parse(json) as Record<string, unknown>;
    }
    throw new Error(`nats-server does not answer: ${text}`);
  } finally {
    socket.destroy();
  }
}
