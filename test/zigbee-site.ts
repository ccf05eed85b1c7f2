/** A site with simulated Zigbee gateways for whole-daemon tests: each gateway and its locks in a process of its own. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { openTestSite, type TestSite } from './simulators/test-site.ts';
import { openSimulatedGateway, type SimulatedGateway } from './simulators/zigbee/gateway.ts';
import type { GatewayPlan } from './simulators/zigbee/plan.ts';

export interface Door {
  id: string;
  mac: string;
  gatewayId: string;
  configVersion: number;
  applied: { payloads: string[]; versions: { doorVersion: number } } | null;
  connectionState: { lqi: number | null; lastSeen: number | null };
}

export interface Gateway {
  /** On the interface. */
  deviceId: string;
  simulated: SimulatedGateway;
  /** Of its host; throws while there is none. */
  hostPid(): number;
  /** As the interface shows it. */
  read(): Promise<Record<string, unknown>>;
}

export interface ZigbeeSite extends AsyncDisposable {
  readonly site: TestSite;
  readonly gateways: readonly [Gateway, Gateway];
  /** Of the lock; throws while there is none. */
  door(mac: string): Promise<Door>;
  doorState(mac: string): Promise<Record<string, unknown>>;
  call(method: string, path: string, body?: object): ReturnType<TestSite['daemon']['call']>;
  unlock(mac: string): ReturnType<TestSite['daemon']['call']>;
  /** Opens the window, has the lock ask, closes the window, and waits for its door to have its configuration. */
  join(gateway: Gateway, mac: string): Promise<Door>;
  /** Resolves when the lock is there, by its own word. */
  isConnected(mac: string): Promise<void>;
}

const NETWORK = '8f0c2f1e-6a86-4a4f-9f0e-3d2b7a5c9e01';
const MANUFACTURER = 0x1234;
const IDS = ['0b6f7c1a-1c55-4c0a-8d5e-6f1f0a2b3c01', '0b6f7c1a-1c55-4c0a-8d5e-6f1f0a2b3c02'] as const;
/** A host, and a library that forms a network, on a busy machine. */
const PATIENCE = { timeout: 45_000, interval: 20 };

/** Until it holds; for what processes other than this one do. */
export const waitFor = <T>(condition: () => T | Promise<T>): Promise<T> => vi.waitFor(condition, PATIENCE);

/** `more` of the configuration; `networks`: each gateway has one of its own. */
export async function openZigbeeSite(
  plans: readonly [GatewayPlan, GatewayPlan],
  { more = {}, networks = 'one' }: { more?: object; networks?: 'one' | 'two' } = {},
): Promise<ZigbeeSite> {
  await using stack = new AsyncDisposableStack();
  const open = async (index: 0 | 1) => ({
    deviceId: IDS[index],
    simulated: stack.use(await openSimulatedGateway(plans[index])),
  });
  const sticks = [await open(0), await open(1)] as const;
  const linkOf = (deviceId: string) => `zb-${IDS.indexOf(deviceId as (typeof IDS)[0]) + 1}`;
  const links = sticks.map(({ deviceId, simulated: { port, adapter } }) => ({
    id: linkOf(deviceId),
    protocol: 'zigbee',
    options: { port, adapter, manufacturerCode: MANUFACTURER },
  }));
  const networkOf = (deviceId: string) => (networks === 'two' ? deviceId : NETWORK);
  const zgates = IDS.map((deviceId) => ({
    deviceId,
    link: linkOf(deviceId),
    networkId: networkOf(deviceId),
  }));
  const ids = [...new Set(IDS.map(networkOf))].map((id) => ({ id }));
  const site = stack.use(await openTestSite({ more: { links, zgates, networks: ids, ...more } }));
  const { daemon, tokens } = site;
  const call: ZigbeeSite['call'] = (method, path, body) =>
    daemon.call(method, path, tokens[path.startsWith('/access') ? 'front-desk-admin' : 'service-tool'], body);
  const gatewayOf = ({ deviceId, simulated }: (typeof sticks)[0 | 1]): Gateway => ({
    deviceId,
    simulated,
    hostPid() {
      const file = join(site.directory, `data/hosts/zigbee-${linkOf(deviceId)}.pid`);
      return JSON.parse(readFileSync(file, 'utf8')).pid;
    },
    read: async () => (await call('GET', `/network/zgate/${deviceId}`)).body,
  });

  async function door(mac: string): Promise<Door> {
    const { items } = (await call('GET', '/access/doors?limit=100')).body as { items: Door[] };
    const found = items.find((one) => one.mac === mac);
    if (!found) throw new Error(`no door has the lock ${mac}`);
    return found;
  }
  const doorState = async (mac: string) =>
    (await call('GET', `/access/doors/${(await door(mac)).id}/state`)).body;
  async function permitJoin({ deviceId }: Gateway, seconds: number): Promise<void> {
    const { status, body } = await call('POST', `/network/zgate/${deviceId}/permit-join`, { seconds });
    expect([status, body]).toMatchObject([200, { deviceId }]);
  }
  const opened = stack.move();

  return {
    site,
    gateways: [gatewayOf(sticks[0]), gatewayOf(sticks[1])],
    door,
    doorState,
    call,
    unlock: async (mac) => call('POST', `/access/doors/${(await door(mac)).id}/unlock`),
    async join(gateway, mac) {
      await permitJoin(gateway, 60);
      expect(await gateway.simulated.join(mac)).toBe('joined');
      await waitFor(() => door(mac));
      await permitJoin(gateway, 0);
      await waitFor(async () =>
        expect(await doorState(mac)).toMatchObject({ configuration: { inForce: true } }),
      );
      return door(mac);
    },
    isConnected: (mac) =>
      waitFor(async () =>
        expect(await doorState(mac)).toMatchObject({ connection: { status: 'connected' } }),
      ),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
