/** The real daemon as a child process, with its configuration, which demo and tests may call and kill. */
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import type { Agent } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { freePort } from '../free-port.ts';
import { openDaemonProcess } from './daemon-process.ts';
import { call } from './encoder/registration.ts';

export const ROLES = ['service-tool', 'front-desk-admin', 'front-desk', 'pms'] as const;
export type Role = (typeof ROLES)[number];

export interface Address {
  host: string;
  port: number;
}

export interface DaemonOptions {
  /** Made when it is not there. Holds the configuration, the log, the admin socket and, below it, the daemon's data. */
  directory: string;
  /** Port 0: a free one. */
  http: Address;
  mqtt: Address;
  /** PEM files. */
  vendorRoots: string[];
  /** `mqtt://host:port` of a 3.1.1 broker; without it events stay with the daemon. */
  upstreamUrl?: string;
  /** Merged over everything else, one level deep. */
  config?: Record<string, Record<string, unknown>>;
  /** Added to the environment of this process. */
  environment?: Record<string, string>;
  /** Its loopback links have devices, as their options say (loopback/driver.ts). */
  simulatesLinks?: boolean;
  /** Further settings of the configuration, such as links. */
  more?: Record<string, unknown>;
}

export interface Answer {
  status: number;
  body: Record<string, unknown>;
  headers: Record<string, unknown>;
}

export interface Daemon extends AsyncDisposable {
  readonly baseUrl: string;
  readonly encoderUrl: string;
  readonly directory: string;
  /** PEM file of the root that HTTPS clients and encoders trust. */
  readonly caFile: string;
  readonly logFile: string;
  /** The running process. Throws when there is none. */
  readonly pid: number;
  /** Resolves when it serves; throws with the end of its log when it ends before. */
  start(): Promise<void>;
  /** Starts it, and waits for nothing. */
  launch(): void;
  /** Resolves when it has ended, no matter who ended it. */
  exited(): Promise<void>;
  /** kill -9, and waits until it is gone. */
  kill(): Promise<void>;
  /** One exchange over the network, on a connection of its own or of `agent`. `path` begins with a slash. */
  call(method: string, path: string, token?: string, body?: unknown, agent?: Agent): Promise<Answer>;
  /** One exchange over the admin socket, as the command line has them. */
  callLocally(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Resolves with the result of the job, once it is done; throws when it is not. */
  importSite(document: unknown): Promise<Record<string, unknown>>;
  /** A new token for one role. */
  createToken(role: Role): Promise<string>;
}

const READY_TIMEOUT_MS = 30_000;
const READY_POLL_MS = 20;
const JOB_POLL_MS = 20;
const LOG_TAIL_LINES = 12;
/** High enough that no demo, test or script meets it. */
const UNLIMITED = 100_000;

export async function openDaemon(options: DaemonOptions): Promise<Daemon> {
  const { directory } = options;
  const [http, mqtt] = [await withPort(options.http), await withPort(options.mqtt)];
  const configFile = join(directory, 'gatehouse.yaml');
  const logFile = join(directory, 'gatehouse.log');
  const adminSocket = join(directory, 'admin.sock');
  const caFile = join(directory, 'data', 'pki', 'root.crt');
  const scheme = options.config?.http?.plain === true ? 'http' : 'https';
  const baseUrl = `${scheme}://${reachable(http)}`;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(configFile, configuration({ ...options, http, mqtt }, adminSocket), { mode: 0o600 });
  const child = openDaemonProcess({
    configFile,
    logFile,
    environment: options.environment,
    ...(options.simulatesLinks && { program: 'test/simulators/loopback/main.ts' }),
  });
  const callLocally = (method: string, path: string, body?: unknown) =>
    callSocket(adminSocket, method, path, body);

  return {
    baseUrl,
    encoderUrl: `mqtts://${reachable(mqtt)}`,
    directory,
    caFile,
    logFile,
    callLocally,
    launch: child.launch,
    get pid() {
      const pid = child.pid();
      if (pid === undefined) throw new Error('the daemon is not running');
      return pid;
    },
    async start() {
      child.launch();
      const deadline = performance.now() + READY_TIMEOUT_MS;
      for (;;) {
        if (child.pid() === undefined) throw new Error(`the daemon ended at its start:\n${logTail(logFile)}`);
        const ready = await isReady(callLocally, baseUrl, caFile);
        if (ready) return;
        if (performance.now() > deadline) {
          throw new Error(`the daemon is not ready after ${READY_TIMEOUT_MS} ms:\n${logTail(logFile)}`);
        }
        await sleep(READY_POLL_MS);
      }
    },
    exited: child.exited,
    kill: child.kill,
    call: (method, path, token, body, agent) =>
      call({
        method,
        url: `${baseUrl}${path}`,
        ca: readFileSync(caFile, 'utf8'),
        ...(token !== undefined && { token }),
        ...(body !== undefined && { body }),
        ...(agent && { agent }),
      }),
    importSite: (document) => importSite(callLocally, document),
    async createToken(role) {
      const { status, body } = await callLocally('POST', '/tokens', {
        label: `demo ${role}`,
        roles: [role],
      });
      if (typeof body.token !== 'string') throw new Error(`no token for ${role}: ${status}`);
      return body.token;
    },
    [Symbol.asyncDispose]: child[Symbol.asyncDispose],
  };
}

async function importSite(
  callLocally: Daemon['callLocally'],
  document: unknown,
): Promise<Record<string, unknown>> {
  let { status, body } = await callLocally('POST', '/site/import', { document });
  while (status < 300 && body.finishedAt === null) {
    await sleep(JOB_POLL_MS);
    ({ status, body } = await callLocally('GET', `/jobs/${body.id}`));
  }
  if (body.status !== 'done') throw new Error(`the import was answered ${status}: ${JSON.stringify(body)}`);
  return body.result as Record<string, unknown>;
}

function configuration(options: DaemonOptions, adminSocket: string): string {
  const { directory, http, mqtt, vendorRoots, upstreamUrl, config = {}, more } = options;
  return stringify({
    dataDirectory: join(directory, 'data'),
    adminSocket,
    http: {
      listen: `${http.host}:${http.port}`,
      names: ['127.0.0.1', 'localhost'],
      requestsPerSecond: UNLIMITED,
      requestBurst: UNLIMITED,
      pmsRequestsPerSecond: UNLIMITED,
      pmsRequestBurst: UNLIMITED,
      ...config.http,
    },
    encoders: {
      listen: `${mqtt.host}:${mqtt.port}`,
      ...(!config.encoders?.broker && { endpoint: `mqtts://${reachable(mqtt)}` }),
      vendorRoots,
      registrationsPerHour: 10_000,
      ...config.encoders,
    },
    ...(upstreamUrl !== undefined && {
      upstream: { url: upstreamUrl, protocolVersion: 4, ...config.upstream },
    }),
    ...more,
  });
}

async function withPort({ host, port }: Address): Promise<Address> {
  return { host, port: port || (await freePort()) };
}

/** Where a client on this host reaches a listener; a wildcard address is no address to call. */
function reachable({ host, port }: Address): string {
  if (host === '0.0.0.0' || host === '::') return `127.0.0.1:${port}`;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

async function isReady(
  callLocally: Daemon['callLocally'],
  baseUrl: string,
  caFile: string,
): Promise<boolean> {
  try {
    await callLocally('GET', '/readyz');
    const ca = readFileSync(caFile, 'utf8');
    return (await call({ method: 'GET', url: `${baseUrl}/readyz`, ca })).status === 200;
  } catch {
    return false;
  }
}

function callSocket(socketPath: string, method: string, path: string, body?: unknown): Promise<Answer> {
  const content = body === undefined ? undefined : JSON.stringify(body);
  const headers = {
    host: 'localhost',
    ...(content !== undefined && { 'content-type': 'application/json' }),
  };
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, method, path, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        try {
          const answer = JSON.parse(Buffer.concat(chunks).toString() || '{}') as Record<string, unknown>;
          resolve({ status: response.statusCode ?? 0, body: answer, headers: response.headers });
        } catch (error) {
          reject(error);
        }
      });
    });
    sent.on('error', reject);
    sent.end(content);
  });
}

/** What the daemon last said, for the person who has to find out why it does not run. */
export function logTail(logFile: string): string {
  try {
    return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
  } catch {
    return '(it has no log)';
  }
}
