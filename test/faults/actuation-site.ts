/** A site with doors on simulated Zigbee locks and one on the relay of a simulated Modbus device. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, vi } from 'vitest';
import { openSimulatedBus, type SimulatedBus } from '../simulators/bus/bus.ts';
import type { Answer } from '../simulators/daemon.ts';
import { openTestSite, type TestSite } from '../simulators/test-site.ts';
import { openSimulatedGateway, type SimulatedGateway } from '../simulators/zigbee/gateway.ts';

const ZGATE = '0b6f7c1a-1c55-4c0a-8d5e-6f1f0a2b3c01';
const NETWORK = '8f0c2f1e-6a86-4a4f-9f0e-3d2b7a5c9e01';
const lockOf = (index: number) => `00158d000100000${index + 1}`;
/** Of a stick; forming the network at its pace as well would take ten seconds. */
const BOOT_MS = 1_000;
const DEVICE_ADDRESS = 1;
const RELAY = 2;
/** Of a slow device, which is therefore asked for long before its silence is taken for one. */
const TURNAROUND_MS = 40;
const MODBUS = { baudRate: 19_200, parity: 'even', stopBits: 1 } as const;
/** Cluster and commands of ZCL 7.3: Lock Door; Unlock Door, Unlock with Timeout. */
const DOOR_LOCK = 0x0101;
const LOCK_DOOR = 0x00;
const UNLOCKS = [0x01, 0x03];
/** Write Attributes (ZCL 2.5.3) of Operating Mode, enum8, Passage (ZCL 7.3.2.12.13): it opens a lock as an unlock does. */
const WRITE_ATTRIBUTES = 0x02;
const PASSAGE_MODE = '25003004';
/** A host, and a library that forms a network, on a busy machine. */
const PATIENCE = { timeout: 45_000, interval: 20 };

/** Until it holds; for what processes other than this one do. */
export const waitFor = <T>(condition: () => T | Promise<T>): Promise<T> => vi.waitFor(condition, PATIENCE);

/** A row of the audit. */
export interface Entry {
  outcome: string;
  correlationId: string;
}

export interface SiteDoor {
  id: string;
  via: 'zigbee' | 'rs485';
  /** Milliseconds after which nothing may reach it any more, as docs/interface.md has them. */
  deadlineMs: number;
  /** When it was ordered to open, each time; milliseconds of CLOCK_MONOTONIC. */
  heard(): Promise<number[]>;
  /** The same with what has it stand open: a lock that has taken the passage mode needs no unlock. */
  heardOpening(): Promise<number[]>;
  /** The same of locking; a relay receives nothing. */
  heardLock(): Promise<number[]>;
  /** Has it open at the next unlock and answer nothing; `false`: it answers again. */
  mute(on: boolean): Promise<unknown>;
  /** What is stored of its last unlock; `outcome` is null while it is under way. For loops that wait for nothing. */
  stored(): { at: number; outcome: string | null } | undefined;
  /** Resolves when it can be unlocked. */
  isReady(): Promise<void>;
  unlock(): Promise<Answer>;
  /** A request for the door; `path` is behind its id. */
  ask(method: string, path: string, body?: object): Promise<Answer>;
  /** Its …/state. */
  state(): Promise<Record<string, unknown>>;
  lastUnlock(): Promise<Record<string, unknown> | null>;
  /** Of its unlocks, oldest first. */
  audited(): Promise<Entry[]>;
}

export interface ActuationSite extends AsyncDisposable {
  readonly site: TestSite;
  readonly doors: readonly [lock: SiteDoor, relay: SiteDoor, ...otherLocks: SiteDoor[]];
  /** Processes of the hosts that run. */
  hostPids(): number[];
  /** What `gatehouse audit verify` says. */
  verifyAudit(): Promise<string>;
}

export interface ActuationSiteOptions {
  /** Of the daemon. */
  environment?: Record<string, string>;
  /** What the coordinator speaks. */
  adapter?: 'zstack' | 'ember';
  /** How many doors on locks there are beside the first. */
  otherLocks?: number;
}

export async function openActuationSite({
  environment = {},
  adapter = 'zstack',
  otherLocks = 0,
}: ActuationSiteOptions = {}): Promise<ActuationSite> {
  await using stack = new AsyncDisposableStack();
  const locks = Array.from({ length: 1 + otherLocks }, (_, index) => lockOf(index));
  const plan = { adapter, bootMs: BOOT_MS, locks: locks.map((ieee) => ({ ieee })) };
  const gateway = stack.use(await openSimulatedGateway(plan));
  const devices = [
    { address: DEVICE_ADDRESS, kind: 'gatehouse-io', hwId: 'IO-1', turnaroundMs: TURNAROUND_MS },
  ] as const;
  const bus = stack.use(
    await openSimulatedBus({ ...MODBUS, protocol: 'modbus', pacing: 'cheap', devices: [...devices] }),
  );
  const links = [
    { id: 'zb-1', protocol: 'zigbee', options: { port: gateway.port, adapter, manufacturerCode: 0x1234 } },
    {
      id: 'lobby',
      protocol: 'modbus',
      options: { ...MODBUS, port: bus.port, devices: [{ unitId: DEVICE_ADDRESS }] },
    },
  ];
  const zgates = [{ deviceId: ZGATE, link: 'zb-1', networkId: NETWORK }];
  const more = { links, zgates, networks: [{ id: NETWORK }] };
  const site = stack.use(await openTestSite({ environment, more }));
  const database = new DatabaseSync(join(site.directory, 'data/gatehouse.db'), { readOnly: true });
  stack.defer(() => database.close());
  const [relay, [lock, ...others]] = await Promise.all([
    relayDoor(site, bus, database),
    lockDoors({ site, gateway, database }, locks),
  ]);
  if (!lock) throw new Error('there is no lock');
  await gateway.setGateway({ pace: 1 });
  const opened = stack.move();
  return {
    site,
    doors: [lock, relay, ...others],
    hostPids: () =>
      ['zigbee-zb-1', 'rs485'].map(
        (host) => JSON.parse(readFileSync(join(site.directory, `data/hosts/${host}.pid`), 'utf8')).pid,
      ),
    verifyAudit: () => gatehouse(site, 'audit', 'verify'),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

interface LockSite {
  site: TestSite;
  gateway: SimulatedGateway;
  database: DatabaseSync;
}

async function lockDoors(on: LockSite, locks: readonly string[]): Promise<SiteDoor[]> {
  const permitJoin = () => call(on.site, 'POST', `/network/zgate/${ZGATE}/permit-join`, { seconds: 60 });
  await waitFor(async () => expect(await permitJoin()).toMatchObject({ status: 200 }));
  const doors: SiteDoor[] = [];
  for (const ieee of locks) doors.push(await lockDoor(on, ieee));
  return doors;
}

async function lockDoor({ site, gateway, database }: LockSite, ieee: string): Promise<SiteDoor> {
  expect(await gateway.join(ieee)).toBe('joined');
  const id = await waitFor(async () => {
    const { items } = (await call(site, 'GET', '/access/doors')).body as {
      items: { id: string; mac: string }[];
    };
    const found = items.find(({ mac }) => mac === ieee);
    if (!found) throw new Error('its lock has no door');
    return found.id;
  });
  const common = doorOf(site, id, database);
  await waitFor(common.isConfigured);
  return {
    ...common,
    id,
    via: 'zigbee',
    deadlineMs: 10_000,
    heard: () => heardOf(gateway, ieee, isCommand(UNLOCKS)),
    heardOpening: () => heardOf(gateway, ieee, (one) => isCommand(UNLOCKS)(one) || isPassage(one)),
    heardLock: () => heardOf(gateway, ieee, isCommand([LOCK_DOOR])),
    mute: (on) => gateway.set(ieee, { faults: { lostResponses: on ? 1_000 : null } }),
    isReady: () =>
      waitFor(async () =>
        expect(await common.state()).toMatchObject({ connection: { status: 'connected' } }),
      ),
  };
}

type Received = Awaited<ReturnType<SimulatedGateway['state']>>['received'][number];

async function heardOf(
  gateway: SimulatedGateway,
  ieee: string,
  fits: (one: Received) => boolean,
): Promise<number[]> {
  const { received } = await gateway.state(ieee);
  return received
    .filter((one) => one.cluster === DOOR_LOCK && fits(one))
    .map(({ monotonicMs }) => monotonicMs);
}

function isCommand(commands: readonly number[]) {
  return ({ command, isFoundation }: Received) => !isFoundation && commands.includes(command);
}

function isPassage({ command, isFoundation, payload }: Received): boolean {
  return isFoundation && command === WRITE_ATTRIBUTES && payload.includes(PASSAGE_MODE);
}

async function relayDoor(site: TestSite, bus: SimulatedBus, database: DatabaseSync): Promise<SiteDoor> {
  const id = String((await call(site, 'POST', '/access/doors', { name: 'Gate' })).body.id);
  const deviceId = await waitFor(async () => {
    const { items } = (await call(site, 'GET', '/network/rs485')).body as { items: { deviceId: string }[] };
    if (!items[0]) throw new Error('no device was found');
    return items[0].deviceId;
  });
  const settings = { doorId: id, relayIndex: RELAY, unlockDurationMilliseconds: 200 };
  expect((await call(site, 'PUT', `/network/rs485/${deviceId}`, settings)).status).toBe(200);
  const isReady = () =>
    waitFor(async () => {
      const path = `/network/rs485/${deviceId}`;
      expect((await call(site, 'GET', path)).body).toMatchObject({ connectionState: { connected: true } });
      expect((await call(site, 'GET', `${path}/state`)).body).toMatchObject({ inForce: true });
    });
  await isReady();
  const heard = async () => {
    const { pulse } = await bus.state(DEVICE_ADDRESS);
    return (pulse as { takenMs: number[] }).takenMs;
  };
  return {
    ...doorOf(site, id, database),
    id,
    via: 'rs485',
    deadlineMs: 5_000,
    isReady,
    heard,
    heardOpening: heard,
    heardLock: async () => [],
    mute: (on) => bus.set(DEVICE_ADDRESS, { faults: on ? { silentFromWrite: true } : null }),
  };
}

/** What is the same for both. */
function doorOf(site: TestSite, id: string, database: DatabaseSync) {
  const stored = database.prepare('SELECT at, outcome FROM actuation WHERE action = ? AND object = ?');
  const state = async () => (await call(site, 'GET', `/access/doors/${id}/state`)).body;
  return {
    state,
    stored: () => stored.get('door.unlock', `door/${id}`) as ReturnType<SiteDoor['stored']>,
    isConfigured: async () => expect(await state()).toMatchObject({ configuration: { inForce: true } }),
    ask: (method: string, path: string, body?: object) =>
      call(site, method, `/access/doors/${id}${path}`, body),
    unlock: () => call(site, 'POST', `/access/doors/${id}/unlock`),
    lastUnlock: async () => (await state()).lastUnlock as Record<string, unknown> | null,
    async audited() {
      const query = `object=door/${id}&action=door.unlock&limit=100`;
      const { items } = (await call(site, 'GET', `/audit?${query}`)).body as { items: Entry[] };
      return items.toReversed();
    },
  };
}

function call({ daemon, tokens }: TestSite, method: string, path: string, body?: object): Promise<Answer> {
  const role = path.startsWith('/network') ? 'service-tool' : 'front-desk-admin';
  return daemon.call(method, path, tokens[role], body);
}

/** The command, in a process of its own. */
function gatehouse({ directory }: TestSite, ...args: string[]): Promise<string> {
  const start = join(import.meta.dirname, '../../src/start.js');
  const child = spawn(process.execPath, [start, ...args, '--config', join(directory, 'gatehouse.yaml')]);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  return new Promise((resolve) => child.on('close', (code) => resolve(`${code} ${output}`)));
}
