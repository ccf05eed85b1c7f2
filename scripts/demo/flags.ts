/** The flags of the demo, and everything that can be wrong with them before anything is started. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeFolder } from '../../src/platform/host/durable-file.ts';
import type { Address } from '../../test/simulators/daemon.ts';

export interface Flags {
  /** Absolute. */
  directory: string;
  /** Made for this run, and removed after it. */
  isTemporary: boolean;
  http: Address;
  mqtt: Address;
  once: boolean;
}

/** Something the person at the terminal can put right; the message says how. */
export class UsageError extends Error {}

export const USAGE = `usage: npm run demo -- [--data DIR] [--http HOST:PORT] [--mqtt HOST:PORT] [--once]

  --data DIR        keep everything in DIR and go on with what is there (default: a temporary folder)
  --http HOST:PORT  where the interface is served (default 127.0.0.1:8443; port 0 takes a free one)
  --mqtt HOST:PORT  where encoders connect (default 127.0.0.1:8883; port 0 takes a free one)
  --once            write three keys, wait for their events, and exit 0`;

/** A unix socket's path may have 107 bytes (unix(7)). */
const SOCKET_PATH_MAX_BYTES = 107;

/** Undefined when help was asked for. */
export async function readFlags(args: string[]): Promise<Flags | undefined> {
  const values = parse(args);
  if (values.help) return undefined;
  const http = await claim('--http', values.http);
  const mqtt = await claim('--mqtt', values.mqtt);
  const isTemporary = values.data === undefined;
  const directory = isTemporary
    ? await mkdtemp(join(tmpdir(), 'gatehouse-demo-'))
    : await prepare(resolve(values.data ?? ''));
  return { directory, isTemporary, http, mqtt, once: values.once };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        data: { type: 'string' },
        http: { type: 'string', default: '127.0.0.1:8443' },
        mqtt: { type: 'string', default: '127.0.0.1:8883' },
        once: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${USAGE}`);
  }
}

/** The address; the daemon finds a free port in place of 0. Throws when it cannot be listened on. */
async function claim(flag: string, value: string): Promise<Address> {
  const match = /^(?<host>\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):(?<port>\d{1,5})$/.exec(value);
  const host = match?.groups?.host?.replace(/^\[|\]$/g, '');
  const port = Number(match?.groups?.port);
  if (host === undefined || port > 65_535) {
    throw new UsageError(`${flag} ${value}: expected HOST:PORT, such as 127.0.0.1:8443`);
  }
  try {
    await tryListening(host, port);
    return { host, port };
  } catch (error) {
    const why = {
      EADDRINUSE: 'is in use',
      EACCES: 'needs more rights',
      EADDRNOTAVAIL: 'is not an address here',
    };
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UsageError(
      `${value} ${why[code as keyof typeof why] ?? message}: choose another with ${flag} HOST:PORT (port 0 takes a free one)`,
    );
  }
}

async function tryListening(host: string, port: number): Promise<void> {
  const server = createServer();
  const { promise, resolve: listening, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(port, host, listening);
  await promise;
  await new Promise((closed) => server.close(closed));
}

async function prepare(directory: string): Promise<string> {
  const socket = join(directory, 'admin.sock');
  if (Buffer.byteLength(socket) > SOCKET_PATH_MAX_BYTES) {
    throw new UsageError(`${directory} is too long for a socket in it: choose a shorter one with --data DIR`);
  }
  try {
    makeFolder(directory);
    const probe = join(directory, '.writable');
    await writeFile(probe, '');
    await rm(probe);
  } catch (error) {
    throw new UsageError(
      `${directory} cannot be written (${(error as Error).message}): choose another with --data DIR`,
    );
  }
  if (await answers(socket)) {
    throw new UsageError(
      `a demo is already running in ${directory}: end it, or choose another with --data DIR`,
    );
  }
  return directory;
}

async function answers(socketPath: string): Promise<boolean> {
  return await new Promise((resolved) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolved(true);
    });
    socket.once('error', () => resolved(false));
  });
}
