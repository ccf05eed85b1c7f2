/** A site with everything that has secrets, in which they are remembered, and so is all that the gateway answers and prints. */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { onTestFinished, vi } from 'vitest';
import { run } from '../../src/cli/program.ts';
import { drawKey } from '../../src/platform/age.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { issuerKey, keySet } from '../services/auth/issuer.ts';
import { type TestShell, testShell } from '../shell.ts';
import { openSimulatedBus } from '../simulators/bus/bus.ts';
import { openTestSite, type TestSite } from '../simulators/test-site.ts';
import { openSimulatedGateway } from '../simulators/zigbee/gateway.ts';
import { temporaryFolder } from '../temporary.ts';
import { filesBelow, type Place, type Secret, secret } from './search.ts';

export const LOCK = '00158d0001000002';
export const NETWORK = randomUUID();
export const ZGATE = randomUUID();
export const AUDIENCE = 'desk';
/** Nothing answers there, which is said in many places. */
const NOWHERE = 'http://127.0.0.1:1';
export const ISSUER = 'https://login.example';
const WIRE = { protocol: 'osdp', baudRate: 115_200, parity: 'none', stopBits: 1, pacing: 'cheap' } as const;

/** For what other processes do, on a busy machine. */
export const waitFor = <T>(condition: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 50 });

export const block = () => randomBytes(16).toString('hex');
const eightDigits = () => String(randomInt(10_000_000, 100_000_000));
/** What is secret of a token or of a session's: its kind and the 12 characters of its id are not. */
export const partOf = (token: string) => token.slice(17, 60);

export interface Sent {
  bearer?: string;
  headers?: Record<string, string>;
  /** As it is where it is a text. */
  body?: object | string;
  /** The answer is meant to hold a secret. */
  secretly?: boolean;
}

export type CanarySite = Awaited<ReturnType<typeof openCanarySite>>;

export async function openCanarySite() {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const secrets: Secret[] = [];
  const places: Place[] = [];
  /** Remembers that it is secret, and returns it. */
  const hide = <Value extends string | Buffer>(name: string, value: Value, ...mayBeIn: string[]): Value => {
    secrets.push(secret(name, value, ...mayBeIn));
    return value;
  };
  const outside = temporaryFolder();
  const write = (name: string, text: string) => {
    writeFileSync(join(outside, name), text, { mode: 0o600 });
    return join(outside, name);
  };
  const drawn = {
    radioPin: hide('PIN for the radio', eightDigits()),
    typedPin: hide('PIN typed at the lock', eightDigits()),
    installCode: hide('install code', installCode()),
    backupKey: await drawKey(),
  };
  hide('secret key of backups', drawn.backupKey.identity);
  const { zigbee, readers } = await openDevices(stack, drawn);
  const issuer = issuerKey('k1');
  const oidc = { issuer: ISSUER, audience: AUDIENCE, jwksFile: write('jwks.json', keySet(issuer)) };
  const password = hide('password of the notification service', block());
  const webhook = hide('credential in an address', block());
  const site = stack.use(
    await openTestSite({
      config: { upstream: { username: 'gatehouse', passwordFile: write('password', `${password}\n`) } },
      more: {
        ...wiring(zigbee.port, readers.port),
        sinks: [{ kind: 'https', name: 'hook', urls: [`${NOWHERE}/hooks/${webhook}`] }],
        access: { decisionService: { url: `${NOWHERE}/decide?key=${webhook}` } },
        backup: { recipients: [drawn.backupKey.recipient] },
        auth: { oidc },
        log: { level: 'debug' },
      },
    }),
  );
  for (const [role, token] of Object.entries(site.tokens)) hide(`token of ${role}`, partOf(token));
  const data = join(site.directory, 'data');

  /** The command line; what it prints is one of the places unless `secretly`. */
  async function gatehouse(
    argv: string[],
    { secretly = false, stopping }: { secretly?: boolean; stopping?: AbortSignal } = {},
  ) {
    const shell: TestShell = testShell({
      clock: systemClock as TestShell['clock'],
      ...(stopping && { stopping }),
    });
    const code = await run([...argv, '--config', join(site.directory, 'gatehouse.yaml')], shell);
    const { stdout, stderr } = shell.written;
    const shown = secretly ? stderr : `${stdout}\n${stderr}`;
    places.push({ name: `gatehouse ${argv.slice(0, 2).join(' ')}`, content: Buffer.from(shown) });
    return { code, stdout, stderr };
  }

  return {
    ...drawn,
    site,
    zigbee,
    readers,
    issuer,
    outside,
    write,
    data,
    secrets,
    places,
    hide,
    ask: openAsking(site, places),
    gatehouse,
    /** The daemon and its hosts. */
    processes: () => processesFrom(site.daemon.pid),
    /** All that is on the disk of the gateway and not put there by an operator, and what is known of its processes. */
    stored(): Place[] {
      const { logFile, pid } = site.daemon;
      const log = { name: 'log', content: readFileSync(logFile) };
      const names = processesFrom(pid).flatMap((one) => [`/proc/${one}/cmdline`, `/proc/${one}/environ`]);
      const processes = names.map((name) => ({ name, content: readFileSync(name) }));
      return [...filesBelow(data), log, ...processes];
    },
  };
}

/** One exchange whose answer is one of the places unless `secretly`. */
function openAsking(site: TestSite, places: Place[]) {
  return async function ask(
    method: string,
    path: string,
    { bearer, headers = {}, body, secretly }: Sent = {},
  ) {
    const answer = await exchange(`${site.daemon.baseUrl}${path}`, readFileSync(site.daemon.caFile), {
      method,
      headers: {
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: typeof body === 'object' ? JSON.stringify(body) : body,
    });
    const name = `answer to ${method} ${path.split('?')[0]}`;
    if (!secretly)
      places.push({
        name,
        content: Buffer.concat([Buffer.from(JSON.stringify(answer.headers)), answer.content]),
      });
    const text = answer.content.toString();
    const json = answer.headers['content-type']?.includes('json') ? JSON.parse(text) : {};
    return { status: answer.status, headers: answer.headers, body: json };
  };
}

function wiring(zigbeePort: string, osdpPort: string) {
  const osdp = { port: osdpPort, baudRate: 115_200, pollEveryMs: 20, devices: [{ address: 3 }] };
  return {
    links: [
      { id: 'zb', protocol: 'zigbee', options: { port: zigbeePort, manufacturerCode: 0x1234 } },
      { id: 'readers', protocol: 'osdp', options: osdp },
    ],
    networks: [{ id: NETWORK }],
    zgates: [{ deviceId: ZGATE, link: 'zb', networkId: NETWORK }],
  };
}

async function openDevices(
  stack: AsyncDisposableStack,
  { radioPin, typedPin, installCode: code }: { radioPin: string; typedPin: string; installCode: string },
) {
  const pins = [
    { user: 0, code: radioPin },
    { user: 1, code: typedPin },
  ];
  const locks = [{ ieee: LOCK, installCode: code, requirePin: true, pins }];
  const devices = [{ address: 3, kind: 'osdp-io', hwId: '4711' }] as const;
  const [zigbee, readers] = await Promise.all([
    openSimulatedGateway({ locks }),
    openSimulatedBus({ ...WIRE, devices: [...devices] }),
  ]);
  return { zigbee: stack.use(zigbee), readers: stack.use(readers) };
}

/** 16 bytes and their CRC (CRC-16/X-25, low byte first), as printed on a lock. */
function installCode(): string {
  const bytes = randomBytes(16);
  let crc = 0xffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >> 1) ^ 0x8408 : crc >> 1;
  }
  crc ^= 0xffff;
  return `${bytes.toString('hex')}${Buffer.from([crc & 0xff, crc >> 8]).toString('hex')}`;
}

interface Exchange {
  method: string;
  headers: Record<string, string>;
  body?: string | undefined;
}

function exchange(url: string, ca: Buffer, { method, headers, body }: Exchange) {
  type Answer = { status: number; headers: import('node:http').IncomingHttpHeaders; content: Buffer };
  return new Promise<Answer>((resolve, reject) => {
    const sent = request(url, { method, headers, ca, agent: false }, (response) => {
      const { statusCode: status = 0, headers: answered } = response;
      buffer(response).then((content) => resolve({ status, headers: answered, content }), reject);
    });
    sent.on('error', reject).end(body);
  });
}

/** The process, and those it has started, and they (proc(5)). */
function processesFrom(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return [pid, ...children.flatMap((child) => processesFrom(Number(child)))];
}
