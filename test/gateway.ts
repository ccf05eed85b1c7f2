/** A whole gateway in the process of the test, served without TLS, with its configuration in a file. */
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { type Gateway, openGateway } from '../src/app/gateway.ts';
import type { Membership, Takeover } from '../src/app/services.ts';
import { type Clock, systemClock } from '../src/platform/clock.ts';
import type { ConfigInput } from '../src/platform/config/config.ts';
import { openSource } from '../src/platform/config/config-file.ts';
import { openLog, silentLog } from '../src/platform/log.ts';
import { temporaryFolder } from './temporary.ts';

/** Hosts whose loopback links have devices. */
export const PROCESSES = {
  execPath: process.execPath,
  kill: (pid: number) => void process.kill(pid, 'SIGKILL'),
  hostEntry: join(import.meta.dirname, 'simulators/loopback/host.ts'),
};

export interface TestGateway {
  gateway: Gateway;
  folder: string;
  dataDirectory: string;
  configFile: string;
  /** On the admin socket. */
  local(method: string, path: string, body?: object): Promise<string>;
  token(role: string): Promise<string>;
  lan(path: string, bearer?: string): Promise<Response>;
  close(): Promise<void>;
}

/** Closed when the test ends. `folder` may be one that a gateway has used before. */
export async function openTestGateway(
  changes: ConfigInput = {},
  folder = temporaryFolder(),
  clock: Clock = systemClock,
  cluster?: Membership,
  takeover?: Takeover,
): Promise<TestGateway> {
  const input = {
    dataDirectory: 'data',
    http: { listen: '127.0.0.1:0', plain: true },
    encoders: { listen: '127.0.0.1:0' },
    ...changes,
  };
  const configFile = join(folder, 'gatehouse.yaml');
  // JSON is YAML.
  writeFileSync(configFile, JSON.stringify(input));
  const source = openSource(configFile);
  const config = source.read();
  const gateway = await openGateway({
    config,
    source,
    clock,
    log: silentLog,
    logControl: openLog({ level: 'info', journal: false, write: () => {} }).control,
    processes: PROCESSES,
    checkResponses: true,
    cluster,
    takeover,
  });
  let closed: Promise<void> | undefined;
  const close = async () => {
    closed ??= Promise.resolve(gateway[Symbol.asyncDispose]());
    await closed;
  };
  onTestFinished(close);
  const local = (method: string, path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' };
    const asked = request({ socketPath: gateway.adminSocket, method, path, headers });
    const answered = new Promise<string>((resolve, reject) => {
      asked.on('error', reject).on('response', (response) => text(response).then(resolve, reject));
    });
    asked.end(body && JSON.stringify(body));
    return answered;
  };
  return {
    gateway,
    folder,
    dataDirectory: config.dataDirectory,
    configFile,
    local,
    token: async (role) =>
      JSON.parse(await local('POST', '/tokens', { label: role, roles: [role] })).token as string,
    lan: (path, bearer) =>
      fetch(
        `${gateway.baseUrl}${path}`,
        bearer === undefined ? {} : { headers: { authorization: `Bearer ${bearer}` } },
      ),
    close,
  };
}
