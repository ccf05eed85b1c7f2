/** A daemon of ours on simulated coordinators, each lock of which is a door. */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { openTestSite, type TestSite } from '../../simulators/test-site.ts';
import { openSimulatedGateway, type SimulatedGateway } from '../../simulators/zigbee/gateway.ts';
import type { GatewayPlan } from '../../simulators/zigbee/plan.ts';
import { until } from './waiting.ts';

export interface BenchSite extends AsyncDisposable {
  site: TestSite;
  gateways: readonly BenchGateway[];
  /** Over a connection that is kept. Throws unless the lock confirmed it. */
  unlock(mac: string): Promise<void>;
  /** The same without TLS, over the local socket. */
  unlockLocally(mac: string): Promise<void>;
  /** Stops the daemon in order. */
  stop(): Promise<void>;
  /** Resolves when all gateways are connected. */
  allUp(): Promise<void>;
}

export interface BenchGateway {
  simulated: SimulatedGateway;
  locks: readonly string[];
  hostPid(): number;
}

const NETWORK = '8f0c2f1e-6a86-4a4f-9f0e-3d2b7a5c9e01';
const WINDOW_S = 254;
/** Ten hosts that start at once, on a machine with other things to do. */
const UP_TIMEOUT_MS = 180_000;
const JOINED_TIMEOUT_MS = 180_000;
const LOOK_EVERY_MS = 50;
/** Locks that join at once. */
const GROUP = 10;
const GATEWAYS_AT_ONCE = 3;
/** A look at all doors of a large site is work for it. */
const LOOK_AT_DOORS_EVERY_MS = 2_000;
const PAGE = 100;

/** The same for both contenders: no latency of the air, and no time that the bolt takes. */
export function planOf(index: number, locks: number, more: Partial<GatewayPlan> = {}): GatewayPlan {
  // More children than a stick has: the routers of such a site would only add to the time of the air, which is none.
  return {
    ieee: `00124b0014d9b${hex(index, 3)}`,
    children: Math.max(locks, 50),
    locks: locksOf(index, locks),
    ...more,
  };
}

export const macsOf = (index: number, locks: number) => locksOf(index, locks).map(({ ieee }) => ieee);

function locksOf(index: number, locks: number) {
  return Array.from({ length: locks }, (_, lock) => ({
    ieee: `00158d000${hex(index, 3)}${hex(lock, 4)}`,
    boltMs: 0,
  }));
}

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0');

/** Resolves when every lock is a door whose configuration is in force. `more`: links beside those of the gateways. `environment`: of the daemon. */
export async function openBenchSite(
  plans: readonly GatewayPlan[],
  more: readonly object[] = [],
  environment: Record<string, string> = {},
): Promise<BenchSite> {
  await using stack = new AsyncDisposableStack();
  const simulated = await Promise.all(plans.map((plan) => openSimulatedGateway(plan)));
  for (const one of simulated) stack.use(one);
  const idOf = (index: number) => `0b6f7c1a-1c55-4c0a-8d5e-6f1f0a2b3${hex(index, 3)}`;
  const linkOf = (index: number) => `zb-${index}`;
  const links = simulated.map(({ port, adapter }, index) => ({
    id: linkOf(index),
    protocol: 'zigbee',
    options: { port, adapter, manufacturerCode: 0x1234 },
  }));
  const zgates = links.map(({ id }, index) => ({ deviceId: idOf(index), link: id, networkId: NETWORK }));
  const site = stack.use(
    await openTestSite({
      environment,
      more: { links: [...links, ...more], zgates, networks: [{ id: NETWORK }] },
    }),
  );
  const macs = plans.map(({ locks = [] }) => locks.map(({ ieee }) => ieee));
  // Not all at once: a machine that plays a thousand locks as well would keep them waiting for their answers.
  const unjoined = simulated.entries();
  const joinNext = async () => {
    for (const [index, gateway] of unjoined) await joinAll(site, gateway, idOf(index), macs[index] ?? []);
  };
  await Promise.all(Array.from({ length: GATEWAYS_AT_ONCE }, joinNext));
  const doors = await allApplied(site, macs.flat().length);
  const client = stack.use(clientOf(site));
  const opened = stack.move();
  return {
    site,
    gateways: simulated.map((gateway, index) => ({
      simulated: gateway,
      locks: macs[index] ?? [],
      hostPid() {
        const file = join(site.directory, `data/hosts/zigbee-${linkOf(index)}.pid`);
        return JSON.parse(readFileSync(file, 'utf8')).pid;
      },
    })),
    unlock: (mac) => client.unlock(doors.get(mac) ?? ''),
    async unlockLocally(mac) {
      const { status, body } = await site.daemon.callLocally(
        'POST',
        `/access/doors/${doors.get(mac)}/unlock`,
      );
      if (status !== 200 || body.outcome !== 'confirmed')
        throw new Error(`an unlock was answered ${status} ${JSON.stringify(body)}`);
    },
    async stop() {
      const { daemon } = site;
      process.kill(daemon.pid, 'SIGTERM');
      await daemon.exited();
    },
    async allUp() {
      for (const { deviceId } of zgates) await isUp(site, deviceId);
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

function isUp({ daemon, tokens }: TestSite, deviceId: string): Promise<void> {
  return until('the gateway comes up', UP_TIMEOUT_MS, LOOK_EVERY_MS, async () => {
    const { body } = await daemon.call('GET', `/network/zgate/${deviceId}`, tokens['service-tool']);
    return (body.connectionState as { connected: boolean }).connected;
  });
}

async function joinAll(
  site: TestSite,
  gateway: SimulatedGateway,
  deviceId: string,
  macs: readonly string[],
): Promise<void> {
  const { daemon, tokens } = site;
  const path = `/network/zgate/${deviceId}`;
  const token = tokens['service-tool'];
  await isUp(site, deviceId);
  const permit = async (seconds: number) => {
    const { status } = await daemon.call('POST', `${path}/permit-join`, token, { seconds });
    if (status !== 200) throw new Error(`the join window was answered ${status}`);
  };
  await permit(WINDOW_S);
  for (let from = 0; from < macs.length; from += GROUP) {
    const group = macs.slice(from, from + GROUP);
    for (const mac of group) {
      const outcome = await gateway.join(mac);
      if (outcome !== 'joined') throw new Error(`lock ${mac} did not join: ${outcome}`);
    }
    await allReport(gateway, group);
  }
  await permit(0);
}

/** Resolves when their gateway has asked all of them to report. */
export async function allReport(gateway: SimulatedGateway, macs: readonly string[]): Promise<void> {
  const silent = new Set(macs);
  await until('the locks are configured to report', JOINED_TIMEOUT_MS, LOOK_EVERY_MS, async () => {
    for (const mac of silent) {
      // To ask a simulated lock for all of its state is work for the process that plays it.
      if ((await gateway.state(mac)).reporting.length === 0) return false;
      silent.delete(mac);
    }
    return true;
  });
}

/** The ids of the doors by the MACs of their locks. */
async function allApplied({ daemon, tokens }: TestSite, count: number): Promise<Map<string, string>> {
  const doors = new Map<string, string>();
  await until('the locks have their configuration', JOINED_TIMEOUT_MS, LOOK_AT_DOORS_EVERY_MS, async () => {
    let after = '';
    do {
      const path = `/access/doors?limit=${PAGE}${after}`;
      const { status, body } = await daemon.call('GET', path, tokens['front-desk-admin']);
      if (status !== 200) throw new Error(`the doors were answered ${status}: ${JSON.stringify(body)}`);
      const { items, next } = body as { items: Door[]; next: string | null };
      for (const { id, mac, applied } of items) if (applied) doors.set(mac, id);
      after = next ? `&cursor=${encodeURIComponent(next)}` : '';
    } while (after !== '');
    return doors.size === count;
  });
  return doors;
}

interface Door {
  id: string;
  mac: string;
  applied: unknown;
}

function clientOf({ daemon, tokens }: TestSite) {
  const agent = new Agent({ keepAlive: true, ca: readFileSync(daemon.caFile) });
  const headers = { authorization: `Bearer ${tokens['front-desk-admin']}` };
  const unlock = (doorId: string) =>
    new Promise<void>((resolve, reject) => {
      const options = { agent, method: 'POST', headers };
      const sent = request(`${daemon.baseUrl}/access/doors/${doorId}/unlock`, options, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
        response.on('end', () => {
          const body = Buffer.concat(chunks).toString();
          if (response.statusCode === 200 && body.includes('"outcome":"confirmed"')) resolve();
          else reject(new Error(`an unlock was answered ${response.statusCode} ${body}`));
        });
      });
      sent.on('error', reject).end();
    });
  return { unlock, [Symbol.dispose]: () => agent.destroy() };
}
