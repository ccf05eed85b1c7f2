/** The Zigbee gateways of the demo and their locks: simulated ones, each gateway in a process of its own. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Daemon, Role } from '../../test/simulators/daemon.ts';
import { openSimulatedGateway, type SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import type { Screen } from './screen.ts';

export interface DemoGateway {
  floor: Floor;
  simulated: SimulatedGateway;
}

export interface DemoDoor {
  id: string;
  name: string | null;
  mac: string;
  /** GET shows what its lock does, POST changes it (test/simulators/zigbee/control.ts). */
  simulatorControl: string;
}

interface Floor {
  number: number;
  name: string;
  link: string;
  deviceId: string;
  ieee: string;
}

type Tokens = Record<Role, string>;
interface ShownDoor {
  id: string;
  name: string | null;
  mac: string | null;
}

const FLOORS: readonly Floor[] = [
  {
    number: 1,
    name: 'First floor',
    link: 'zigbee-1',
    ieee: '00124b0014d9a001',
    deviceId: '4e1a2c0f-93b7-4b5e-8a44-5d3f0c6b7a01',
  },
  {
    number: 2,
    name: 'Second floor',
    link: 'zigbee-2',
    ieee: '00124b0014d9a002',
    deviceId: '4e1a2c0f-93b7-4b5e-8a44-5d3f0c6b7a02',
  },
];
export const NETWORK = 'd2f7c1b4-58e0-4c7d-b6a9-1e0f3a5c8d01';
const ROOMS = 20;
/** Of the simulated locks, as of their maker. */
const MANUFACTURER = 0x1234;
/** In its box: it joins when a person lets locks join on the first floor. */
const SPARE_LOCK = '00158d00010000ff';
const SPARE_LOOK_MS = 3_000;
const LQI_BEST = 220;
const LQI_STEP = 7;
/** Forming a network, and twenty interviews over the air, on a machine that does the rest of the demo too. */
const UP_TIMEOUT_MS = 60_000;
const LOOK_MS = 200;
const WINDOW_S = 60;

const roomsOf = ({ number }: Floor) => Array.from({ length: ROOMS }, (_, index) => number * 100 + index + 1);
const macOf = (room: number) => `00158d0001${room.toString(16).padStart(6, '0')}`;

/** The memory of the sticks is kept in the directory: the next demo there finds its networks. */
export async function openGateways(directory: string, stack: AsyncDisposableStack): Promise<DemoGateway[]> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return await Promise.all(
    FLOORS.map(async (floor) => {
      const locks = roomsOf(floor).map((room, index) => ({
        ieee: macOf(room),
        lqi: LQI_BEST - LQI_STEP * index,
      }));
      const memory = join(directory, `${floor.link}.json`);
      if (floor.number === 1) locks.push({ ieee: SPARE_LOCK, lqi: LQI_BEST });
      return { floor, simulated: stack.use(await openSimulatedGateway({ ieee: floor.ieee, memory, locks })) };
    }),
  );
}

/** Of the configuration. */
export function gatewaySettings(gateways: readonly DemoGateway[]) {
  return {
    links: gateways.map(({ floor, simulated }) => ({
      id: floor.link,
      protocol: 'zigbee',
      options: { port: simulated.port, manufacturerCode: MANUFACTURER },
    })),
    zgates: gateways.map(({ floor: { deviceId, link, name } }) => ({
      deviceId,
      link,
      name,
      networkId: NETWORK,
    })),
    networks: [{ id: NETWORK, description: 'Guest rooms' }],
  };
}

/** Has all locks join, each at the door of its room. Resolves with the doors when every lock has its configuration. */
export async function bringUpGateways(
  daemon: Daemon,
  gateways: readonly DemoGateway[],
  tokens: Tokens,
  screen: Screen,
): Promise<DemoDoor[]> {
  await createRooms(daemon, tokens['front-desk-admin']);
  const doors = await Promise.all(gateways.map((one) => bringUp(daemon, one, tokens, screen)));
  return doors.flat();
}

/** Once all others have joined, so that none of the windows of the demo itself is for it. */
export function offerSpareLock(
  gateways: readonly DemoGateway[],
  joined: Promise<unknown>,
  stack: AsyncDisposableStack,
): void {
  const [first] = gateways;
  let timer: NodeJS.Timeout | undefined;
  stack.defer(() => clearInterval(timer));
  const ask = async () => {
    // The gateway may be unplugged, or the demo be ending.
    const outcome = await first?.simulated.join(SPARE_LOCK).catch(() => undefined);
    if (outcome === 'joined') clearInterval(timer);
  };
  joined.then(
    () => {
      timer = setInterval(ask, SPARE_LOOK_MS);
    },
    () => undefined,
  );
}

async function createRooms(daemon: Daemon, token: string): Promise<void> {
  const known = new Set((await doorsOf(daemon, token)).map(({ mac }) => mac));
  for (const room of FLOORS.flatMap(roomsOf).filter((one) => !known.has(macOf(one)))) {
    const door = { name: `Room ${room}`, mac: macOf(room), connectionType: 'zigbee' };
    const { status, body } = await daemon.call('POST', '/access/doors', token, door);
    if (status !== 200) throw new Error(`room ${room} was refused: ${status} ${JSON.stringify(body)}`);
  }
}

async function bringUp(
  daemon: Daemon,
  { floor, simulated }: DemoGateway,
  tokens: Tokens,
  screen: Screen,
): Promise<DemoDoor[]> {
  const path = `/network/zgate/${floor.deviceId}`;
  const technician = tokens['service-tool'];
  const admin = tokens['front-desk-admin'];
  const gateway = await until(`${floor.name} has no gateway`, async () => {
    const { body } = await daemon.call('GET', path, technician);
    return (body.connectionState as { connected: boolean }).connected ? body : undefined;
  });
  screen.done(`Gateway ${floor.name} is up`, `Zigbee, channel ${gateway.zigbeeChannel}`);
  await daemon.call('POST', `${path}/permit-join`, technician, { seconds: WINDOW_S });
  const macs = roomsOf(floor).map(macOf);
  for (const mac of macs) await simulated.join(mac);
  const doors = (await doorsOf(daemon, admin)).filter(({ mac }) => mac !== null && macs.includes(mac));
  for (const { id, name } of doors)
    await until(`the lock of ${name} has not joined`, async () => {
      const { body } = await daemon.call('GET', `/access/doors/${id}/state`, admin);
      const { connection, configuration } = body as Record<string, Record<string, unknown> | null>;
      return (connection?.status === 'connected' && configuration?.inForce === true) || undefined;
    });
  await daemon.call('POST', `${path}/permit-join`, technician, { seconds: 0 });
  screen.done(`The locks of ${floor.name} have joined`, `${doors.length} doors`);
  return doors.map(({ id, name, mac }) => ({
    id,
    name,
    mac: String(mac),
    simulatorControl: `${simulated.control}/locks/${mac}`,
  }));
}

async function doorsOf(daemon: Daemon, token: string): Promise<ShownDoor[]> {
  const { body } = await daemon.call('GET', '/access/doors?limit=100', token);
  return body.items as ShownDoor[];
}

async function until<T>(otherwise: string, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + UP_TIMEOUT_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`${otherwise} after ${UP_TIMEOUT_MS} ms`);
    await sleep(LOOK_MS);
  }
}
