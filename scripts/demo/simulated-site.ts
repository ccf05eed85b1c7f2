/** The site of the demo: the daemon, a notification broker, two encoders, three RS-485 buses, two Zigbee gateways. */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drawKey } from '../../src/platform/age.ts';
import { type Daemon, logTail, openDaemon, ROLES, type Role } from '../../test/simulators/daemon.ts';
import { type Factory, makeFactory, openFactory } from '../../test/simulators/encoder/factory.ts';
import { register } from '../../test/simulators/encoder/registration.ts';
import { openSiteEncoder, type SiteEncoder } from '../../test/simulators/site.ts';
import { isTerminalEvent, openUpstream, type Upstream } from '../../test/simulators/upstream.ts';
import {
  type DemoBus,
  findDevices,
  linksOf,
  openBuses,
  pairReaders,
  type Rs485Device,
  setUpRelay,
} from './buses.ts';
import type { Flags } from './flags.ts';
import {
  bringUpGateways,
  type DemoDoor,
  type DemoGateway,
  gatewaySettings,
  NETWORK,
  offerSpareLock,
  openGateways,
} from './gateways.ts';
import type { DemoFile } from './guide.ts';
import type { Key, Screen } from './screen.ts';

export interface Site {
  daemon: Daemon;
  upstream: Upstream;
  encoders: SiteEncoder[];
  buses: DemoBus[];
  rs485: Rs485Device[];
  gateways: DemoGateway[];
  /** Once all locks have joined, which goes on meanwhile. */
  doors: Promise<DemoDoor[]>;
  tokens: Record<Role, string>;
  factory: { caCert: string; caKey: string };
  systemId: string;
}

const ENCODERS = ['desk-1', 'desk-2'] as const;
/** Defaults of the configuration. */
const VENDOR_KEY = 'vendor';
const PRODUCT_SEGMENT = 'access';
const WRITE_MS = 200;
/** One card takes so long, to show what waiting looks like. */
const SLOW_WRITE_MS = 1_500;
const KEYS_TIMEOUT_MS = 60_000;

/** What it opens is closed with the stack, the encoders first. `started` receives each child's pid. */
export async function openSite(
  { directory, http, mqtt }: Flags,
  screen: Screen,
  stack: AsyncDisposableStack,
  started: (pid: number) => void,
): Promise<Site> {
  // The maker of `gatehouse simulate --data DIR/simulated` too: an encoder of that is trusted here.
  const factoryDirectory = join(directory, 'simulated', 'maker');
  const factory = existsSync(join(factoryDirectory, 'ca.key'))
    ? await openFactory(factoryDirectory)
    : await makeFactory();
  const factoryFiles = await factory.save(factoryDirectory);
  const upstream = stack.use(await openUpstream());
  upstream.onEvent = (event) => screen.event(event);
  const buses = await openBuses(join(directory, 'buses'), stack);
  const gateways = await openGateways(join(directory, 'gateways'), stack);
  for (const { simulated } of [...buses, ...gateways]) started(simulated.pid);
  const wiring = gatewaySettings(gateways);
  const backup = { recipients: [await backupKey(directory)] };
  const daemon = stack.use(
    await openDaemon({
      directory,
      http,
      mqtt,
      vendorRoots: [factoryFiles.caCert],
      upstreamUrl: upstream.url,
      more: { ...wiring, backup, links: [...linksOf(buses), ...wiring.links] },
    }),
  );
  const since = performance.now();
  await daemon.start();
  started(daemon.pid);
  screen.done('Gatehouse is up', `${daemon.baseUrl}, ${Math.round(performance.now() - since)} ms`);

  const tokens = {} as Record<Role, string>;
  for (const role of ROLES) tokens[role] = await daemon.createToken(role);
  const doors = bringUpGateways(daemon, gateways, tokens, screen);
  // Awaited at the end, by which it may have failed.
  doors.catch(() => undefined);
  const { body: status } = await daemon.callLocally('GET', '/local/status');
  const encoders: SiteEncoder[] = [];
  for (const id of ENCODERS) {
    const encoder = stack.use(await registerEncoder(daemon, factory, tokens['service-tool'], id));
    encoder.start();
    started(encoder.process.pid);
    await encoder.process.waitFor(({ event }) => event === 'connected');
    screen.done(`Encoder ${id} is registered and connected`, `generation ${encoder.bundle.generation}`);
    encoders.push(encoder);
  }
  offerSpareLock(gateways, doors, stack);
  const rs485 = await bringUpBuses(daemon, buses, tokens['service-tool'], screen);
  const systemId = String(status.systemId);
  const wired = { buses, rs485, gateways, doors };
  return { daemon, upstream, encoders, ...wired, tokens, factory: factoryFiles, systemId };
}

/** The public half; on a real controller the secret one is never there. */
async function backupKey(directory: string): Promise<string> {
  const { identity, recipient } = await drawKey();
  // Those of earlier runs stay: each opens its archives.
  await appendFile(join(directory, 'backup-key.txt'), `${identity}\n`, { mode: 0o600 });
  return recipient;
}

async function bringUpBuses(
  daemon: Daemon,
  buses: DemoBus[],
  token: string,
  screen: Screen,
): Promise<Rs485Device[]> {
  await pairReaders(daemon, token, buses);
  const rs485 = await findDevices(daemon, token, buses);
  for (const { id, plan } of buses) {
    const found = rs485.filter(({ bus }) => bus === id).length;
    screen.done(
      `Bus ${id} is up`,
      `${plan.protocol}, ${plan.baudRate} baud, ${found} of ${plan.devices.length} devices`,
    );
  }
  const [first] = rs485;
  if (!first) throw new Error('there is no RS-485 device');
  await setUpRelay(daemon, token, first);
  screen.done('The relay of the staff entrance is set up', `${first.bus}, device ${first.address}`);
  return rs485;
}

async function registerEncoder(
  daemon: Daemon,
  factory: Factory,
  token: string,
  id: string,
): Promise<SiteEncoder> {
  const device = await factory.makeDevice(id);
  const bundle = await register({
    baseUrl: daemon.baseUrl,
    ca: readFileSync(daemon.caFile, 'utf8'),
    token,
    encoderId: id,
    device,
    vendorKey: VENDOR_KEY,
    name: `Front desk ${id.slice(-1)}`,
    metadata: { simulated: 'true' },
  });
  const directory = join(daemon.directory, 'encoders', id);
  return await openSiteEncoder({ directory, bundle, device, timings: { writeMs: WRITE_MS } });
}

/** Resolves when the events of all three have arrived upstream. */
export async function writeThreeKeys(
  { daemon, upstream, encoders, tokens }: Site,
  screen: Screen,
): Promise<void> {
  const [encoder] = encoders;
  if (!encoder) throw new Error('there is no encoder');
  const keys = [1, 2, 3].map((number): Key => ({ keyId: randomUUID(), label: `key ${number}` }));
  const slow = keys[1]?.keyId;
  encoder.onMessage = (message) => {
    if (message.event !== 'entry' || message.keyId !== slow) return;
    const writeMs = message.status === 'written' ? WRITE_MS : SLOW_WRITE_MS;
    encoder.command({ do: 'timings', timings: { writeMs } });
  };
  const requestId = `demo-${Date.now()}`;
  const { status, body } = await daemon.call(
    'PUT',
    `/encoder/${encoder.id}/write-request/${requestId}`,
    tokens['front-desk'],
    {
      description: 'Three keys for room 101',
      data: keys.map(({ keyId }) => ({ keyId, blocks: [randomBytes(16).toString('hex')] })),
    },
  );
  if (status !== 202) throw new Error(`the write request was refused: ${status} ${JSON.stringify(body)}`);
  screen.done('Write request accepted', `${encoder.id}/${requestId}`);

  using _ = screen.follow(keys);
  for (const { keyId, label } of keys) {
    const { data } = await upstream.waitFor(
      (event) => event.subject === keyId && isTerminalEvent(event),
      KEYS_TIMEOUT_MS,
    );
    if (data.status !== 'written') throw new Error(`${label} ended ${JSON.stringify(data)}`);
  }
}

async function loginCode(daemon: Daemon): Promise<string> {
  const order = { label: 'Demo', roles: ['service-tool', 'front-desk-admin', 'front-desk'] };
  const { status, body } = await daemon.callLocally('POST', '/login-codes', order);
  if (status !== 200) throw new Error(`no login code: ${status} ${JSON.stringify(body)}`);
  return String(body.code);
}

export async function describe(site: Site, doors: DemoDoor[]): Promise<DemoFile> {
  const { daemon, upstream, encoders, rs485, gateways, tokens, factory, systemId } = site;
  return {
    baseUrl: daemon.baseUrl,
    caFile: daemon.caFile,
    productSegment: PRODUCT_SEGMENT,
    vendorKey: VENDOR_KEY,
    systemId,
    pid: daemon.pid,
    loginCode: await loginCode(daemon),
    tokens,
    factory,
    mqtt: { url: daemon.encoderUrl },
    upstream: { url: upstream.url, topic: `gatehouse/1/${systemId}/encoders/+/events` },
    encoders: encoders.map(({ id }) => ({ id })),
    doors,
    rs485,
    zgates: gateways.map(({ floor: { deviceId }, simulated: { control } }) => ({
      deviceId,
      simulatorControl: control,
    })),
    networks: [{ id: NETWORK }],
  };
}

/** Throws when the daemon, an encoder, a bus or a gateway ends though no one asked for it. */
export async function unexpectedEnd({ daemon, encoders, buses, gateways }: Site): Promise<never> {
  const ends = [
    ...encoders.map(({ id, process }) => process.exited.then(() => `encoder ${id}`)),
    ...buses.map(({ id, simulated }) => simulated.exited.then(() => `the simulator of ${id}`)),
    ...gateways.map(({ floor, simulated }) => simulated.exited.then(() => `the gateway of ${floor.name}`)),
  ];
  const who = await Promise.race([...ends, daemon.exited().then(() => 'Gatehouse')]);
  throw new Error(`${who} has ended by itself. The end of the log:\n${logTail(daemon.logFile)}`);
}
