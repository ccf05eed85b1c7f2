/** The RS-485 buses of the demo: simulated ones behind ptys, in processes of their own. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSimulatedBus, type SimulatedBus } from '../../test/simulators/bus/bus.ts';
import type { BusPlan } from '../../test/simulators/bus/plan.ts';
import type { Daemon } from '../../test/simulators/daemon.ts';

export interface DemoBus {
  id: string;
  plan: BusPlan;
  simulated: SimulatedBus;
}

export interface Rs485Device {
  deviceId: string;
  bus: string;
  address: number;
  /** GET shows what it does, POST changes it (test/simulators/bus/control.ts). */
  simulatorControl: string;
}

type DevicePlan = BusPlan['devices'][number];

const FIRST_UNIT = 17;
const UNITS = 10;
/** Wired and without power: a bus stays fast with them. */
const DEAD = [20, 25];
const MODULES = ['adam-4055', 'i-7060', 'i-7050', 'i-7060'] as const;
/** The last one has no key yet: `gatehouse osdp pair bus-3 3` gives it one. */
const READERS = 4;
const UNPAIRED = READERS - 1;
const PLANS: Record<string, BusPlan> = {
  'bus-1': {
    protocol: 'modbus',
    baudRate: 19_200,
    parity: 'even',
    stopBits: 1,
    pacing: 'cheap',
    devices: Array.from({ length: UNITS }, (_, index): DevicePlan => {
      const address = FIRST_UNIT + index;
      const hwId = `GIO-${String(4_200 + address).padStart(8, '0')}`;
      return { address, kind: 'gatehouse-io', hwId, faults: { dead: DEAD.includes(address) } };
    }),
  },
  'bus-2': {
    protocol: 'dcon',
    baudRate: 9_600,
    parity: 'none',
    stopBits: 1,
    pacing: 'cheap',
    devices: MODULES.map((kind, index): DevicePlan => ({ address: index + 1, kind })),
  },
  'bus-3': {
    protocol: 'osdp',
    baudRate: 115_200,
    parity: 'none',
    stopBits: 1,
    pacing: 'cheap',
    devices: Array.from({ length: READERS }, (_, address): DevicePlan => {
      return { address, kind: 'osdp-io', hwId: String(4_300 + address) };
    }),
  },
};

const FOUND_TIMEOUT_MS = 30_000;
const LOOK_MS = 100;

/** Links to their ports are kept in the directory, so that the configuration is the same in every run. */
export async function openBuses(directory: string, stack: AsyncDisposableStack): Promise<DemoBus[]> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return await Promise.all(
    Object.entries(PLANS).map(async ([id, plan]) => {
      const simulated = stack.use(await openSimulatedBus({ ...plan, link: join(directory, id) }));
      return { id, plan, simulated };
    }),
  );
}

/** `links` of the configuration. */
export function linksOf(buses: readonly DemoBus[]): Record<string, unknown>[] {
  return buses.map(({ id, plan, simulated }) => {
    const { protocol, baudRate, parity, stopBits } = plan;
    const named = protocol === 'modbus' ? 'unitId' : 'address';
    const devices = plan.devices.map(({ address }) => ({ [named]: address }));
    return { id, protocol, options: { port: simulated.port, baudRate, parity, stopBits, devices } };
  });
}

const PAIRING_S = 20;

/** Gives the readers of OSDP buses their keys, all but the one that is left to be tried. */
export async function pairReaders(daemon: Daemon, token: string, buses: readonly DemoBus[]): Promise<void> {
  for (const { id, plan } of buses) {
    if (plan.protocol !== 'osdp') continue;
    for (const { address } of plan.devices)
      if (address !== UNPAIRED) await pairReader(daemon, token, id, address);
  }
}

async function pairReader(daemon: Daemon, token: string, bus: string, address: number): Promise<void> {
  const deadline = performance.now() + FOUND_TIMEOUT_MS;
  const order = { address, seconds: PAIRING_S };
  for (;;) {
    const { status, body } = await daemon.call('POST', `/network/rs485/buses/${bus}/pair`, token, order);
    if (status === 202) return await jobDone(daemon, token, String(body.id));
    // The bus comes up after the daemon.
    if (status !== 503 || performance.now() > deadline)
      throw new Error(`reader ${address} of ${bus} was not paired: ${status} ${JSON.stringify(body)}`);
    await sleep(LOOK_MS);
  }
}

async function jobDone(daemon: Daemon, token: string, id: string): Promise<void> {
  for (;;) {
    const { body } = await daemon.call('GET', `/jobs/${id}`, token);
    if (body.status === 'done') return;
    if (body.status !== 'running') throw new Error(`a reader was not paired: ${JSON.stringify(body.error)}`);
    await sleep(LOOK_MS);
  }
}

/** Resolves when all that are alive were found. */
export async function findDevices(
  daemon: Daemon,
  token: string,
  buses: readonly DemoBus[],
): Promise<Rs485Device[]> {
  const expected = buses
    .flatMap(({ plan }) => plan.devices.map((device) => ({ ...device, protocol: plan.protocol })))
    .filter(
      ({ protocol, address, faults }) => !faults?.dead && !(protocol === 'osdp' && address === UNPAIRED),
    );
  const deadline = performance.now() + FOUND_TIMEOUT_MS;
  for (;;) {
    const found = await foundDevices(daemon, token, buses);
    if (found.length >= expected.length) return found;
    if (performance.now() > deadline)
      throw new Error(
        `${found.length} of ${expected.length} RS-485 devices were found within ${FOUND_TIMEOUT_MS} ms`,
      );
    await sleep(LOOK_MS);
  }
}

async function foundDevices(
  daemon: Daemon,
  token: string,
  buses: readonly DemoBus[],
): Promise<Rs485Device[]> {
  const found: Rs485Device[] = [];
  for (const { id, simulated } of buses) {
    const { body } = await daemon.call('GET', `/network/rs485?bus=${id}`, token);
    for (const { deviceId } of body.items as { deviceId: string }[]) {
      const { body: state } = await daemon.call('GET', `/network/rs485/${deviceId}/state`, token);
      const { address } = state;
      if (typeof address !== 'number') continue;
      const simulatorControl = `${simulated.control}/devices/${address}`;
      found.push({ deviceId, bus: id, address, simulatorControl });
    }
  }
  return found.toSorted((one, other) => one.bus.localeCompare(other.bus) || one.address - other.address);
}

/** What the relay of the staff entrance is to do, so that there is one to fire. Resolves when the device has it. */
export async function setUpRelay(daemon: Daemon, token: string, device: Rs485Device): Promise<void> {
  const path = `/network/rs485/${device.deviceId}`;
  const wanted = {
    name: 'Staff entrance',
    relayIndex: 0,
    unlockDurationMilliseconds: 3_000,
    useInputPinMemory: true,
    ioPins: { input0: true, output0: true },
  };
  const { status, body } = await daemon.call('PUT', path, token, wanted);
  if (status !== 200) throw new Error(`the settings were refused: ${status} ${JSON.stringify(body)}`);
  const deadline = performance.now() + FOUND_TIMEOUT_MS;
  for (;;) {
    const { body: state } = await daemon.call('GET', `${path}/state`, token);
    if (state.inForce === true) return;
    if (performance.now() > deadline) throw new Error(`the settings of ${path} were not put in force`);
    await sleep(LOOK_MS);
  }
}
