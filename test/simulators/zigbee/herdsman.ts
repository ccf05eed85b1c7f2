/** zigbee-herdsman as a host of a simulated gateway: unmodified, one at a time in a process. */
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { Controller, setLogger } from 'zigbee-herdsman';
import { temporaryFolder } from '../../temporary.ts';
import './short-pauses.ts';
import { openSimulatedGateway, type SimulatedGateway } from './gateway.ts';
import { MAKE } from './make.ts';
import type { GatewayPlan } from './plan.ts';

/** Of a test, on a machine that is busy. */
export const HOST_TIMEOUT_MS = 90_000;
const quiet = { debug() {}, info() {}, warning() {}, error() {} };

/** Of the make of this run. Closed when the test ends. */
export async function openStick(plan: GatewayPlan = {}): Promise<SimulatedGateway> {
  const gateway = await openSimulatedGateway({ adapter: MAKE.adapter, ...plan });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

export interface HostOptions {
  port: string;
  /** Where it keeps its database and its backup. */
  folder: string;
  channel?: number;
  adapter?: 'zstack' | 'ember';
  /** What it lets in; absent: every device. */
  accept?: (ieee: string) => boolean;
}

export type Host = Controller;
export const EXTENDED_PAN_ID = [1, 2, 3, 4, 5, 6, 7, 8];
const NETWORK_KEY = [...Array(16).keys()].map((byte) => byte * 3 + 1);
export const PAN_ID = 0x1a62;

/** Not started yet. Stopped when the test ends. */
export function openHost(options: HostOptions): Host {
  const { port, folder, channel = 15, adapter = MAKE.adapter, accept = () => true } = options;
  setLogger(quiet);
  const host = new Controller({
    network: {
      panID: PAN_ID,
      extendedPanID: EXTENDED_PAN_ID,
      channelList: [channel],
      networkKey: NETWORK_KEY,
    },
    serialPort: { path: port, adapter },
    databasePath: join(folder, 'database.db'),
    databaseBackupPath: join(folder, 'database.db.backup'),
    backupPath: join(folder, 'coordinator_backup.json'),
    adapter: { disableLED: false },
    acceptJoiningDeviceHandler: async (ieee) => accept(ieee.slice(2)),
  });
  onTestFinished(() => host.stop().catch(() => undefined));
  return host;
}

/** What the host reports, by the names of its events. */
export function listen(host: Host): { name: string; ieee: string | undefined; data: unknown }[] {
  const heard: { name: string; ieee: string | undefined; data: unknown }[] = [];
  const names = ['deviceJoined', 'deviceInterview', 'deviceAnnounce', 'deviceLeave', 'message'] as const;
  for (const name of names)
    host.on(name, (message: object) => {
      const { device, ieeeAddr, type, status, cluster, data } = message as {
        device?: { ieeeAddr: string };
        ieeeAddr?: string;
        type?: string;
        status?: string;
        cluster?: string;
        data?: unknown;
      };
      heard.push({
        name: type ?? (status === undefined ? name : `${name}:${status}`),
        ieee: (device?.ieeeAddr ?? ieeeAddr)?.slice(2),
        data: cluster === undefined ? undefined : { cluster, data },
      });
    });
  return heard;
}

/** A host with a network, and these nodes in it, interviewed. */
export async function openHostWith(
  gateway: SimulatedGateway,
  nodes: string[],
  options: Partial<HostOptions> = {},
): Promise<Host> {
  const host = openHost({ port: gateway.port, folder: temporaryFolder(), ...options });
  await host.start();
  for (const node of nodes) {
    // Again for each: a router that has joined since is closed.
    await host.permitJoin(254);
    if ((await gateway.join(node)) !== 'joined') throw new Error(`${node} did not join`);
    await expect.poll(() => host.getDeviceByIeeeAddr(`0x${node}`)?.interviewState).toBe('SUCCESSFUL');
  }
  return host;
}

export function deviceOf(host: Host, ieee: string) {
  const device = host.getDeviceByIeeeAddr(`0x${ieee}`);
  if (!device) throw new Error(`the host does not know ${ieee}`);
  return device;
}

export function endpointOf(host: Host, ieee: string, id = 1) {
  const endpoint = deviceOf(host, ieee).getEndpoint(id);
  if (!endpoint) throw new Error(`${ieee} has no endpoint ${id}`);
  return endpoint;
}

export function coordinatorOf(host: Host) {
  const [coordinator] = host.getDevicesByType('Coordinator');
  if (!coordinator) throw new Error('the host has no coordinator');
  return coordinator;
}
