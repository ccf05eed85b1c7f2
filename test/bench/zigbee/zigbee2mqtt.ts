/**
 * zigbee2mqtt, the peer: unmodified from npm, in a process of its own, with mosquitto for its broker. It is no
 * dependency: the first bench that needs it installs it into a folder for that.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { connectAsync } from 'mqtt';
import { stringify } from 'yaml';
import { mosquittoMissing, openMosquitto } from '../../services/events/mosquitto.ts';
import type { SimulatedGateway } from '../../simulators/zigbee/gateway.ts';
import { allReport } from './site.ts';
import { until } from './waiting.ts';

const VERSION = '2.14.1';
export const PEER = `zigbee2mqtt ${VERSION}`;
const BASE = 'zigbee2mqtt';
const INSTALL_TIMEOUT_MS = 300_000;
/** It forms its network in 5 s on a quiet machine. */
const TIMEOUT_MS = 120_000;
const LOOK_EVERY_MS = 200;
const GRACE_MS = 10_000;
const WINDOW_S = 254;
const PRIVATE = 0o700;

export interface Installed {
  entry: string;
}
/** Why there is none. */
export interface Missing {
  missing: string;
}

export const defaultCache = join(tmpdir(), `gatehouse-bench-${userInfo().uid}`);

/** Into the folder, unless it is there already. Prints what it does. */
export function installPeer(cache: string): Installed | Missing {
  if (mosquittoMissing) return { missing: 'mosquitto is not installed' };
  const prefix = join(cache, `zigbee2mqtt-${VERSION}`);
  const entry = join(prefix, 'node_modules/zigbee2mqtt/index.js');
  mkdirSync(prefix, { recursive: true, mode: PRIVATE });
  // What lies in a shared folder may be of somebody else.
  if (statSync(prefix).uid !== userInfo().uid) return { missing: `${prefix} belongs to somebody else` };
  if (isWhole(prefix)) return { entry };
  process.stdout.write(`\ninstalling ${PEER} into ${prefix}, once\n`);
  const args = ['install', '--prefix', prefix, '--no-audit', '--no-fund', '--loglevel=error'];
  const installed = spawnSync('npm', [...args, `zigbee2mqtt@${VERSION}`], {
    cwd: prefix,
    timeout: INSTALL_TIMEOUT_MS,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (installed.status === 0 && isWhole(prefix)) return { entry };
  rmSync(prefix, { recursive: true, force: true });
  const [why = 'npm could not be run'] = installed.stderr?.toString().trim().split('\n') ?? [];
  return { missing: `it could not be installed: ${why}` };
}

/** npm writes this file when all packages are in their places. */
function isWhole(prefix: string): boolean {
  return existsSync(join(prefix, 'node_modules/.package-lock.json'));
}

export interface Peer extends AsyncDisposable {
  readonly pid: number;
  /**
   * Asks by MQTT, again after each `againMs` when given, and waits until it publishes that the lock is unlocked. Rejects when
   * it does not in time. A lock reports a change once, whichever request has caused it: the waiting does not begin again.
   */
  unlock(mac: string, againMs?: number): Promise<void>;
  /** Lets all locks in, and waits until it has configured all of them to report. */
  join(gateway: SimulatedGateway, macs: readonly string[]): Promise<void>;
  /** SIGTERM, and its end. */
  stop(): Promise<void>;
  /** Resolves with its `online`. */
  start(): Promise<void>;
}

/** `page`: the port of its frontend. */
export async function openPeer(
  { entry }: Installed,
  coordinator: Pick<SimulatedGateway, 'port' | 'adapter'>,
  page?: number,
): Promise<Peer> {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-z2m-'));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const broker = stack.use(await openMosquitto({ folder }));
  const server = `mqtt://127.0.0.1:${broker.port}`;
  await writeFile(join(folder, 'configuration.yaml'), stringify(configuration(server, coordinator, page)));
  const log = openSync(join(folder, 'zigbee2mqtt.log'), 'a');
  stack.defer(() => closeSync(log));
  const client = await connectAsync(server, { protocolVersion: 4 });
  stack.defer(() => client.endAsync(true));
  /** Called with each message until they say that it was theirs. */
  const waiting = new Set<(topic: string, message: string) => void>();
  client.on('message', (topic, message, { retain }) => {
    if (!retain) for (const take of waiting) take(topic, message.toString());
  });
  await client.subscribeAsync(`${BASE}/#`);
  const published = (fits: (topic: string, message: string) => boolean) =>
    new Promise<void>((resolve, reject) => {
      const take = (topic: string, message: string) => {
        if (fits(topic, message)) end(resolve);
      };
      const failure = () => new Error(`${PEER} did not answer\n${logOf(folder)}`);
      const timer = setTimeout(() => end(() => reject(failure())), TIMEOUT_MS);
      const end = (settle: () => void) => {
        clearTimeout(timer);
        waiting.delete(take);
        settle();
      };
      waiting.add(take);
    });
  let child: ChildProcess | undefined;
  async function stop(): Promise<void> {
    const stopping = child;
    child = undefined;
    if (!stopping || stopping.exitCode !== null || stopping.signalCode !== null) return;
    const impatience = setTimeout(() => stopping.kill('SIGKILL'), GRACE_MS);
    const exited = once(stopping, 'exit');
    stopping.kill('SIGTERM');
    await exited;
    clearTimeout(impatience);
  }
  async function start(): Promise<void> {
    const online = published(
      (topic, message) => topic === `${BASE}/bridge/state` && message.includes('online'),
    );
    const env = { ...process.env, ZIGBEE2MQTT_DATA: folder };
    // It has no code cache by itself, and the one of this bench is not its own.
    delete (env as NodeJS.ProcessEnv).NODE_COMPILE_CACHE;
    child = spawn(process.execPath, [entry], { cwd: folder, stdio: ['ignore', log, log], env });
    await online;
  }
  stack.defer(stop);
  await start();
  const opened = stack.move();
  return {
    get pid() {
      return child?.pid ?? 0;
    },
    start,
    stop,
    async unlock(mac, againMs) {
      const unlocked = published(
        (topic, message) => topic === `${BASE}/0x${mac}` && message.includes('"state":"UNLOCK"'),
      );
      const ask = () => void client.publish(`${BASE}/0x${mac}/set`, '{"state":"UNLOCK"}');
      ask();
      const again = againMs === undefined ? undefined : setInterval(ask, againMs);
      await unlocked.finally(() => clearInterval(again));
    },
    async join(gateway, macs) {
      const permit = (time: number) =>
        client.publishAsync(`${BASE}/bridge/request/permit_join`, JSON.stringify({ time }));
      // It says that it is online before it listens.
      await until('zigbee2mqtt lets locks in', TIMEOUT_MS, LOOK_EVERY_MS, async () => {
        await permit(WINDOW_S);
        const [first = ''] = macs;
        return (await gateway.join(first)) === 'joined';
      });
      for (const mac of macs.slice(1)) await gateway.join(mac);
      await allReport(gateway, macs);
      await permit(0);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** As it comes, but for less of a log, and without its web page where it is not looked at. */
function configuration(
  server: string,
  { port, adapter }: Pick<SimulatedGateway, 'port' | 'adapter'>,
  page?: number,
) {
  return {
    version: 5,
    mqtt: { base_topic: BASE, server },
    serial: { port, adapter },
    frontend: page === undefined ? { enabled: false } : { enabled: true, port: page, host: '127.0.0.1' },
    homeassistant: { enabled: false },
    advanced: {
      log_level: 'warning',
      log_output: ['console'],
      channel: 15,
      network_key: 'GENERATE',
      pan_id: 'GENERATE',
      ext_pan_id: 'GENERATE',
    },
  };
}

function logOf(folder: string): string {
  return readFileSync(join(folder, 'zigbee2mqtt.log'), 'utf8').split('\n').slice(-20).join('\n');
}
