/**
 * `gatehouse simulate`: devices that are not there, in front of a gateway that runs: for training, and for who writes software
 * for front desks and encoders. The simulators are those of the tests, in a process of their own (test/simulators/simulate.ts).
 */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { dirname, resolve } from 'node:path';
import { json } from 'node:stream/consumers';
import type { Config } from '../platform/config/config.ts';
import { readConfig } from '../platform/config/config-file.ts';
import { readText } from '../platform/yaml/yaml-file.ts';
import type { Encoder } from '../resources/encoders/schema.ts';
import type { Status } from '../services/status/schema.ts';
import { allItems, type Client } from './client.ts';
import { CommandFailed, EXIT, type Shell } from './shell.ts';
import { type Simulator, startSimulator } from './simulator.ts';
import { printable, safeJson } from './terminal-text.ts';

export interface SimulateOptions {
  /** Where keys and memories are kept between two runs. */
  data: string;
  iKnow?: boolean;
  json?: boolean;
}

type Link = Config['links'][number];

/** What a simulator listens on: nothing that is wired to a door can be there. */
const LOOPBACK = /^(?:tcp|modbus-tcp):\/\/(?:127\.\d+\.\d+\.\d+|localhost|\[::1\]):(\d+)$/;
/** Far ends of pseudo-terminals, as the demo has them. */
const PTY = '/dev/pts/';
const NAMED_MAX = 5;

/** The configuration that the daemon runs with, and its encoders. Throws CommandFailed where one of these is real, without --i-know. */
async function openForTraining(
  options: SimulateOptions,
  client: Client,
): Promise<{ config: Config; encoders: Encoder[] }> {
  const { configuration } = await client.call<Status>('GET', '/status');
  const config = readConfig(configuration.file);
  const encoders = await allItems<Encoder>('/encoder', '', client);
  if (options.iKnow) return { config, encoders };
  const real = [
    ...config.links.filter((link) => !isSimulated(portOf(link))).map(({ id }) => `link ${id}`),
    ...encoders.filter(({ metadata }) => metadata?.simulated !== 'true').map(({ id }) => `encoder ${id}`),
  ];
  if (real.length === 0) return { config, encoders };
  const more = real.length > NAMED_MAX ? ` and ${real.length - NAMED_MAX} more` : '';
  throw new CommandFailed(
    `This gateway has real devices: ${real.slice(0, NAMED_MAX).join(', ')}${more}. Simulate on one that has none; --i-know does it all the same.`,
  );
}

/** undefined: a link of the loopback driver, which has no wire. */
const portOf = ({ options }: Link): string | undefined => (options as { port?: string }).port;

function isSimulated(port: string | undefined): boolean {
  if (port === undefined || LOOPBACK.test(port)) return true;
  try {
    return realpathSync(port).startsWith(PTY);
  } catch {
    // A device that is unplugged now is real.
    return false;
  }
}

export interface EncoderOptions extends SimulateOptions {
  /** Only write the registration message there, for the console. */
  message?: string;
  /** What the console has answered to it. */
  credentials?: string;
  /** False: it has none but those that are put on it. */
  cards: boolean;
}

const FILE_MAX_BYTES = 256 * 1_024;

/** Until a signal. A line of input is a card that is put on it, or a command of the simulator as JSON. */
export async function simulateEncoder(
  id: string,
  options: EncoderOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  const { config, encoders } = await openForTraining(options, client);
  const isRegistered = encoders.some((one) => one.id === id);
  if (options.message !== undefined && options.credentials !== undefined)
    throw new CommandFailed(
      '--message comes first, --credentials after the console has answered.',
      EXIT.usage,
    );
  const args = ['--data', resolve(options.data), '--id', id, '--vendor-key', config.encoders.vendorKey];
  if (!isRegistered && options.credentials === undefined) args.push('--again');
  if (!options.cards) args.push('--no-cards');
  await using simulator = startSimulator('encoder', args, shell);
  for await (const event of simulator.events) {
    if (event.event !== 'unregistered') {
      report(id, event, options, shell);
      if (event.event === 'registered') simulator.takeInput(asCommand);
      continue;
    }
    assertTrusted(String(event.root), config.encoders.vendorRoots);
    if (options.message !== undefined) return writeMessage(options.message, id, event.message, shell);
    simulator.say(
      options.credentials === undefined
        ? await client.call<object>('PUT', `/encoder/${encodeURIComponent(id)}`, event.message)
        : JSON.parse(readText(options.credentials, 'the credentials', FILE_MAX_BYTES)),
    );
  }
}

/** Enter: a card. */
const asCommand = (line: string): unknown => (line.trim() === '' ? { do: 'card' } : JSON.parse(line));

function assertTrusted(root: string, trusted: readonly string[]): void {
  const isSame = (file: string) => readFileSync(file, 'utf8') === readFileSync(root, 'utf8');
  if (trusted.some(isSame)) return;
  throw new CommandFailed(
    `The gateway does not trust the maker of simulated encoders. Add its root to the configuration, restart the gateway, and repeat this:\n\nencoders:\n  vendorRoots: [${[...trusted, root].join(', ')}]`,
    EXIT.usage,
  );
}

function writeMessage(file: string, id: string, message: unknown, shell: Shell): void {
  writeFileSync(file, `${JSON.stringify({ id, ...(message as object) }, null, 2)}\n`);
  shell.stdout.write(
    `${file} is the registration message of ${id}. Load it in the console (Encoders, Register an encoder), then:\n  gatehouse simulate encoder ${id} --credentials ${id}.credentials.json\n`,
  );
}

const SAID: Record<string, (event: Record<string, unknown>) => string> = {
  registered: ({ generation, endpoint }) =>
    `is registered (generation ${generation}) and connects to ${endpoint}`,
  connected: () => 'is connected',
  disconnected: ({ reason }) => `is disconnected: ${reason}`,
  refused: ({ reason }) => `is not connected: ${reason}`,
  write: ({ requestId }) => `has the write request ${requestId}`,
  entry: ({ keyId, status }) => `key ${keyId}: ${status}`,
  cancel: ({ jobId }) => `is to cancel the job ${jobId}`,
  joined: () => 'has joined',
  up: ({ what, port, control }) =>
    `is simulated on ${port}: ${what}. What happens to them is said to ${control}`,
};

function report(
  id: string,
  event: Record<string, unknown>,
  { json: isJson }: SimulateOptions,
  { stdout }: Shell,
): void {
  if (isJson) return void stdout.write(`${safeJson({ id, ...event })}\n`);
  const words = SAID[String(event.event)]?.(event);
  if (words !== undefined) stdout.write(`${printable(`${id} ${words}`)}\n`);
}

export interface BusOptions extends SimulateOptions {
  /** Of its devices; by default those of the configuration. */
  addresses?: number[];
  kind?: string;
}

/** Of each protocol, as the simulators call them (test/simulators/bus/plan.ts). */
const PRODUCTS = {
  modbus: [
    'gatehouse-io',
    'waveshare-relay-8',
    'waveshare-io-8',
    'latching-relay-8',
    'icp-das-tm-r5',
    'wago-750-do8',
    'eletechsup-r421a08',
    'expertdaq-ex9060-m',
    'moxa-iologik-e1214',
    'advantech-adam-4150',
    'seneca-z-d-in',
    'novus-digirail-2r',
  ],
  dcon: ['adam-4055', 'adam-4060', 'adam-4068', 'i-7060', 'i-7050'],
  osdp: ['osdp-io'],
};
/** Where no kind is named. */
const KINDS = { modbus: 'gatehouse-io', dcon: 'i-7060', osdp: 'osdp-io' } as const;
type BusProtocol = keyof typeof KINDS;

/** Until a signal. */
export async function simulateBus(
  id: string,
  options: BusOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  const { config } = await openForTraining(options, client);
  const { port, link } = linkFor(id, Object.keys(KINDS), config);
  const protocol = link.protocol as BusProtocol;
  const wired = link.options as Wired;
  const addresses = options.addresses ?? wired.devices.map(({ unitId, address }) => unitId ?? address ?? 0);
  const kind = options.kind ?? KINDS[protocol];
  if (!PRODUCTS[protocol].includes(kind))
    throw new CommandFailed(`Expected --kind ${PRODUCTS[protocol].join(', ')}.`, EXIT.usage);
  const plan = {
    protocol,
    transport: port.transport,
    tcpPort: port.number,
    baudRate: wired.baudRate ?? BAUD_RATE,
    parity: wired.parity ?? 'none',
    stopBits: wired.stopBits ?? 1,
    pacing: 'cheap',
    devices: addresses.map((address) => ({ address, kind, ...identityOf(id, address, kind) })),
  };
  await using simulator = startSimulator('bus', ['-'], shell);
  simulator.say(plan);
  await runWired(simulator, id, `${addresses.length} devices (${kind})`, options, shell);
}

interface Wired {
  baudRate?: number;
  parity?: string;
  stopBits?: number;
  devices: { unitId?: number; address?: number }[];
}
/** Over TCP no one sees it. */
const BAUD_RATE = 9_600;

/** Site-unique, and the same in each run. */
function identityOf(bus: string, address: number, kind: string): { hwId?: string } {
  const digits = createHash('sha256').update(bus).digest().readUInt32BE() % 1_000_000;
  if (kind === 'osdp-io') return { hwId: `${digits * 1_000 + address}` };
  return kind === 'gatehouse-io' ? { hwId: `SIM-${digits}-${address}` } : {};
}

export interface ZigbeeOptions extends SimulateOptions {
  locks: number;
}

/** Of what no one makes. */
const IEEE_OF_SIMULATORS = 0xfa_ce;
const JOIN_MS = 3_000;

/** Until a signal. Locks that are in no network ask to join every few seconds: one that is let in stays. */
export async function simulateZigbee(
  id: string,
  options: ZigbeeOptions,
  client: Client,
  shell: Shell,
): Promise<void> {
  const { config } = await openForTraining(options, client);
  const { port, link } = linkFor(id, ['zigbee'], config);
  const number = createHash('sha256').update(id).digest().readUInt16BE();
  const ieee = (index: number) =>
    `${IEEE_OF_SIMULATORS.toString(16)}${number.toString(16).padStart(4, '0')}${index.toString(16).padStart(8, '0')}`;
  const locks = Array.from({ length: options.locks }, (_, index) => ieee(index + 1));
  const memory = resolve(options.data, `${id}.zigbee.json`);
  const members = openMembers(resolve(options.data, `${id}.locks.json`));
  const adapter = (link.options as { adapter?: string }).adapter ?? 'zstack';
  await using simulator = startSimulator('zigbee', ['-'], shell);
  simulator.say({
    transport: 'tcp',
    tcpPort: port.number,
    adapter,
    ieee: ieee(0),
    memory,
    locks: locks.map((lock) => ({ ieee: lock, ...members.of(lock) })),
  });
  const what = `a coordinator and ${locks.length} locks, which join where they are let in (${locks[0]} …)`;
  await runWired(simulator, id, what, options, shell, async (control) => {
    for (const lock of locks) {
      const { isJoined, nwk } = await ask<LockState>('GET', `${control}/locks/${lock}`);
      if (members.are(lock, isJoined, nwk)) report(`lock ${lock}`, { event: 'joined' }, options, shell);
      if (!isJoined) await ask('POST', `${control}/locks/${lock}/join`);
    }
  });
}

interface LockState {
  isJoined: boolean;
  /** Its address in the network. */
  nwk: number;
}

/** Which locks are of the network, as they keep it themselves when they lose their power. */
function openMembers(file: string) {
  const kept = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, number>) : {};
  mkdirSync(dirname(file), { recursive: true });
  // Until its coordinator is up a lock is of no network.
  const seen = new Set<string>();
  return {
    of: (lock: string) => (kept[lock] === undefined ? {} : { joined: true, nwk: kept[lock] }),
    /** True: it was none before. */
    are(lock: string, isJoined: boolean, nwk: number): boolean {
      const before = kept[lock];
      if (isJoined) {
        seen.add(lock);
        kept[lock] = nwk;
      } else if (seen.has(lock)) delete kept[lock];
      if (before !== kept[lock]) writeFileSync(file, `${JSON.stringify(kept)}\n`);
      return isJoined && before === undefined;
    },
  };
}

interface Port {
  transport: string;
  number: number;
}

/** The link that is to be simulated. Throws CommandFailed with what to write where there is none, or it is real. */
function linkFor(id: string, protocols: readonly string[], { links }: Config): { link: Link; port: Port } {
  const link = links.find((one) => one.id === id);
  if (!link)
    throw new CommandFailed(
      `The configuration has no link ${id}. Add one, have it read again (gatehouse reload), and repeat this:\n\n${sample(id, protocols)}`,
      EXIT.usage,
    );
  if (!protocols.includes(link.protocol))
    throw new CommandFailed(
      `The link ${id} speaks ${link.protocol}, not ${protocols.join(', ')}.`,
      EXIT.usage,
    );
  const port = portOf(link) ?? '';
  const [, number] = LOOPBACK.exec(port) ?? [];
  if (number === undefined)
    throw new CommandFailed(
      `The port of the link ${id} is ${port}: a simulator listens on tcp://127.0.0.1 alone.`,
      EXIT.usage,
    );
  return {
    link,
    port: { transport: port.startsWith('modbus-tcp') ? 'modbus-tcp' : 'tcp', number: Number(number) },
  };
}

function sample(id: string, [protocol]: readonly string[]): string {
  const head = `links:\n  - id: ${id}\n    protocol: ${protocol}\n    options:\n      port: tcp://127.0.0.1:5001\n`;
  if (protocol !== 'zigbee') return `${head}      devices: [{ unitId: 1 }, { unitId: 2 }]`;
  const network = randomUUID();
  return `${head}networks: [{ id: ${network} }]\nzgates: [{ deviceId: ${randomUUID()}, link: ${id}, networkId: ${network} }]`;
}

/** `tend` is called every few seconds, with where the simulator takes commands. */
async function runWired(
  simulator: Simulator,
  id: string,
  what: string,
  options: SimulateOptions,
  shell: Shell,
  tend?: (control: string) => Promise<void>,
): Promise<void> {
  for await (const { port, control } of simulator.events) {
    report(id, { event: 'up', what, port, control }, options, shell);
    while (tend && !shell.stopping.aborted) {
      await tend(String(control));
      await shell.clock.sleep(JOIN_MS, shell.stopping).catch(() => {});
    }
  }
}

async function ask<Answer>(method: string, url: string): Promise<Answer> {
  const { promise, resolve: answered, reject } = Promise.withResolvers<Answer>();
  request(url, { method, agent: false }, (response) => {
    (json(response) as Promise<Answer>).then(answered, reject);
  })
    .on('error', reject)
    .end();
  return promise;
}
