/** A site with simulated RS-485 buses for whole-daemon tests: Modbus and DCON, OSDP where asked for; each in a process of its own. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { openSimulatedBus, type SimulatedBus } from './simulators/bus/bus.ts';
import type { BusPlan } from './simulators/bus/plan.ts';
import { openTestSite, type TestSite } from './simulators/test-site.ts';

const MODBUS = {
  protocol: 'modbus',
  baudRate: 19_200,
  parity: 'even',
  stopBits: 1,
  pacing: 'cheap',
} as const;
const DCON = { protocol: 'dcon', baudRate: 9_600, parity: 'none', stopBits: 1, pacing: 'cheap' } as const;

/** As in the simulator, and as the daemon names them. */
export const LOBBY: BusPlan = {
  ...MODBUS,
  devices: [
    { address: 1, kind: 'gatehouse-io', hwId: 'IO-1' },
    { address: 2, kind: 'gatehouse-io', hwId: 'IO-2' },
  ],
};
export const READERS: BusPlan = {
  protocol: 'osdp',
  baudRate: 115_200,
  parity: 'none',
  stopBits: 1,
  pacing: 'cheap',
  devices: [{ address: 1, kind: 'osdp-io', hwId: '4711' }],
};
export const CELLAR: BusPlan = { ...DCON, devices: [{ address: 1, kind: 'i-7060' }] };

export interface Device {
  deviceId: string;
  hwId: string;
  settingsVersion: number;
  reportedSettingsVersion: number;
  relayIndex: number | null;
  connectionState: { connected: boolean; changedOn: string };
}

export interface Rs485Site extends AsyncDisposable {
  readonly site: TestSite;
  readonly lobby: SimulatedBus;
  readonly cellar: SimulatedBus;
  /** undefined: none was asked for. */
  readonly readers: SimulatedBus | undefined;
  /** Of the rs485 host; throws while none runs. */
  hostPid(): number;
  /** Throws when there is none of that name. */
  device(hwId: string): Promise<Device>;
  state(hwId: string): Promise<Record<string, unknown>>;
  bus(id: 'lobby' | 'cellar'): Promise<Record<string, unknown>>;
  /** Resolves with the device once it has the settings. */
  configure(hwId: string, settings: object): Promise<Device>;
  /** Resolves once the watchdog behind its relay is proved. */
  prove(hwId: string): Promise<void>;
  post(hwId: string, action: 'pulse' | 'replace', body?: object): ReturnType<TestSite['daemon']['call']>;
}

const PATIENCE = { timeout: 30_000, interval: 20 };

/** Until it holds; for what processes other than this one do. */
export const waitFor = <T>(condition: () => T | Promise<T>): Promise<T> => vi.waitFor(condition, PATIENCE);

export async function openRs485Site(
  plans: { lobby?: BusPlan; cellar?: BusPlan; readers?: BusPlan; hostWatchdogMs?: number } = {},
): Promise<Rs485Site> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-buses-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const open = async (id: string, plan: BusPlan) =>
    stack.use(
      await openSimulatedBus({
        ...plan,
        ...(['tcp', 'modbus-tcp'].includes(plan.transport ?? 'pty') ? {} : { link: join(folder, id) }),
      }),
    );
  const lobbyPlan = plans.lobby ?? LOBBY;
  const cellarPlan = plans.cellar ?? CELLAR;
  const lobby = await open('lobby', lobbyPlan);
  const cellar = await open('cellar', cellarPlan);
  const readers = plans.readers && (await open('readers', plans.readers));
  const { hostWatchdogMs = 10_000 } = plans;
  const links = [
    {
      id: 'lobby',
      protocol: 'modbus',
      options: {
        ...lineOf(lobbyPlan, lobby),
        devices: lobbyPlan.devices.map(({ address, kind }) => ({ unitId: address, profile: kind })),
      },
    },
    {
      id: 'cellar',
      protocol: 'dcon',
      options: {
        ...lineOf(cellarPlan, cellar),
        hostWatchdogMs,
        devices: cellarPlan.devices.map(({ address }) => ({ address })),
      },
    },
    ...(plans.readers && readers ? [readersLink(plans.readers, readers)] : []),
  ];
  const site = stack.use(await openTestSite({ more: { links } }));
  const { daemon, tokens } = site;
  const call = (method: string, path: string, body?: object) =>
    daemon.call(method, `/network/rs485${path}`, tokens['service-tool'], body);

  async function device(hwId: string): Promise<Device> {
    const { items } = (await call('GET', '?limit=100')).body as { items: Device[] };
    const found = items.find((one) => one.hwId === hwId);
    if (!found) throw new Error(`no device ${hwId} among ${items.map((one) => one.hwId).join(', ')}`);
    return found;
  }
  const state = async (hwId: string) => (await call('GET', `/${(await device(hwId)).deviceId}/state`)).body;
  const opened = stack.move();
  return {
    site,
    lobby,
    cellar,
    readers,
    device,
    state,
    hostPid: () => JSON.parse(readFileSync(join(site.directory, 'data/hosts/rs485.pid'), 'utf8')).pid,
    async bus(id) {
      const { items } = (await call('GET', '/buses')).body as { items: Record<string, unknown>[] };
      return items.find((one) => one.id === id) ?? {};
    },
    async configure(hwId, settings) {
      const { deviceId } = await waitFor(() => device(hwId));
      const { status, body } = await call('PUT', `/${deviceId}`, settings);
      if (status !== 200) throw new Error(`refused: ${JSON.stringify(body)}`);
      await waitFor(async () => {
        if ((await state(hwId)).inForce !== true) throw new Error(`${hwId} has not taken its settings`);
      });
      return device(hwId);
    },
    prove: async (hwId) => proved((await device(hwId)).deviceId, call),
    post: async (hwId, action, body) => call('POST', `/${(await device(hwId)).deviceId}/${action}`, body),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** A test, which somebody watches. Its silences last for longer than what else is waited for. */
async function proved(
  deviceId: string,
  call: (
    method: string,
    path: string,
    body?: object,
  ) => Promise<{ status: number; body: Record<string, unknown> }>,
): Promise<void> {
  const shows = async (name: 'awaitsWitness' | 'proven') => {
    const { watchdog, inForce } = (await call('GET', `/${deviceId}/state`)).body;
    const { connectionState } = (await call('GET', `/${deviceId}`)).body as unknown as Device;
    const isShown = (watchdog as { [name]: boolean } | null)?.[name];
    if (!isShown || !connectionState.connected || inForce !== true)
      throw new Error(`the watchdog of ${deviceId} does not show ${name}`);
  };
  const test = async (body: object) => {
    const answer = await call('POST', `/${deviceId}/watchdog-test`, body);
    if (answer.status !== 202) throw new Error(`refused: ${JSON.stringify(answer.body)}`);
  };
  await test({ confirm: true });
  await vi.waitFor(() => shows('awaitsWitness'), { ...PATIENCE, timeout: 60_000 });
  await test({ openedByItself: true });
  await waitFor(() => shows('proven'));
}

function readersLink(plan: BusPlan, bus: SimulatedBus) {
  const devices = plan.devices.map(({ address }) => ({ address }));
  return { id: 'readers', protocol: 'osdp', options: { ...lineOf(plan, bus), devices } };
}

function lineOf({ baudRate, parity, stopBits }: BusPlan, { port }: SimulatedBus) {
  return { port, baudRate, parity, stopBits };
}
