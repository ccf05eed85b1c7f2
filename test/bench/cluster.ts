/**
 * Two gateways of a cluster on three NATS servers, all on this machine: how long a takeover takes from the kill of the active one until the
 * other has written a key and pulsed a relay, what `durability: quorum` costs an answer, and what a standby takes of the processor.
 */
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Status } from '../../src/services/status/schema.ts';
import { openNatsCluster } from '../nats-cluster.ts';
import { type Device, LOBBY } from '../rs485-site.ts';
import { openSimulatedBus } from '../simulators/bus/bus.ts';
import { type Daemon, openDaemon } from '../simulators/daemon.ts';
import { drawKeys, openTestSite, type TestSite } from '../simulators/test-site.ts';
import { isTerminalEvent } from '../simulators/upstream.ts';
import { connectEncoders } from './desk.ts';
import { cpuSeconds } from './processes.ts';
import { type BenchTable, quantile, type Row } from './table.ts';
import { until } from './zigbee/waiting.ts';

const PROGRAM = join(import.meta.dirname, '../../src/start.js');
const TAKEOVERS = 3;
const TAKEOVER_TARGET_MS = 15_000;
const ROUNDS = 5;
const CHANGES = 200;
const QUORUM_TARGET_MS = 3;
const LOAD_SECONDS = 20;
const CHANGES_PER_SECOND = 50;
const STANDBY_TARGET_PERCENT = 5;
const PATIENCE_MS = 60_000;
const LOOK_EVERY_MS = 20;

interface MemberOptions {
  name: string;
  urls: readonly string[];
  bucket?: string;
  links?: object[];
  durability?: 'local' | 'quorum';
}

export async function benchCluster(): Promise<BenchTable> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-cluster-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const { urls } = stack.use(await openNatsCluster(folder));
  const bus = stack.use(await openSimulatedBus({ ...LOBBY, devices: LOBBY.devices.slice(0, 1) }));
  const devices = [{ unitId: 1, profile: 'gatehouse-io' }];
  const options = { port: bus.port, baudRate: 19_200, parity: 'even', stopBits: 1, devices };
  const links = [{ id: 'lobby', protocol: 'modbus', options }];
  const site = stack.use(await openTestSite({ more: { links } }));
  stack.use(await connectEncoders(site, undefined, 1));
  await site.daemon.kill();
  const pair = [
    await openMember(site, { name: 'a', links, urls }),
    await openMember(site, { name: 'b', links, urls }),
  ] as Pair;
  for (const one of pair) stack.use(one);
  await begin(pair[0]);
  pair[1].launch();
  const rows = [await takeoverRow(site, pair), await standbyRow(pair)];
  for (const one of pair) await one.kill();
  const local = stack.use(await openMember(site, { name: 'local', urls, bucket: 'local' }));
  const quorum = stack.use(
    await openMember(site, { name: 'quorum', urls, bucket: 'quorum', durability: 'quorum' }),
  );
  for (const one of [local, quorum]) await begin(one);
  return {
    title: 'Two gateways of a cluster on three NATS servers',
    rows: [...rows, await quorumRow(local, quorum)],
    notes: ['gateways, NATS servers, bus, encoder and client share the machine'],
  };
}

/** The active one first. */
type Pair = [Daemon, Daemon];

/** With keys, site CA and database of the site; where it has links, on the ports of the site. */
async function openMember(
  { daemon, directory, factoryFiles, upstream }: TestSite,
  { name, urls, links, bucket = 'gatehouse', durability = 'local' }: MemberOptions,
): Promise<Daemon> {
  const own = join(directory, name);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  cpSync(join(daemon.directory, 'data'), join(own, 'data'), { recursive: true });
  for (const folder of ['keys', 'pki']) chmodSync(join(own, 'data', folder), 0o700);
  const address = (url: string) => ({ host: '127.0.0.1', port: links ? Number(new URL(url).port) : 0 });
  return openDaemon({
    directory: own,
    http: address(daemon.baseUrl),
    mqtt: address(daemon.encoderUrl),
    vendorRoots: [factoryFiles.caCert],
    upstreamUrl: upstream.url,
    more: { links: links ?? [], cluster: { name, urls, bucket, durability } },
  });
}

/** Where none has ever been an operator says which. */
async function begin(daemon: Daemon): Promise<void> {
  daemon.launch();
  const argv = [PROGRAM, 'cluster', 'promote', '--yes', '--config', join(daemon.directory, 'gatehouse.yaml')];
  const { status, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`it was not promoted: ${stderr}`);
  await serves(daemon);
}

const serves = (daemon: Daemon) =>
  wait('it serves', async () => (await daemon.callLocally('GET', '/readyz')).status === 200);
const wait = (what: string, isSo: () => Promise<boolean>) =>
  until(what, PATIENCE_MS, LOOK_EVERY_MS, () => isSo().catch(() => false));

async function follows({ callLocally }: Daemon): Promise<void> {
  await wait('the standby follows', async () => {
    const { cluster } = (await callLocally('GET', '/local/status')).body as unknown as Status;
    return cluster?.standby?.takesOver === true && cluster.standby.behind === 0;
  });
}

async function takeoverRow(site: TestSite, pair: Pair): Promise<Row> {
  const taken: { key: number; relay: number }[] = [];
  const device = await configured(pair[0]);
  for (let round = 0; round < TAKEOVERS; round += 1) {
    const [active, standby] = pair;
    await follows(active);
    await active.kill();
    const killedAt = performance.now();
    const since = () => performance.now() - killedAt;
    const [key, relay] = await Promise.all([written(site).then(since), pulsed(standby, device).then(since)]);
    taken.push({ key, relay });
    pair.reverse();
    active.launch();
  }
  const slowest = Math.max(...taken.flatMap(({ key, relay }) => [key, relay]));
  const seconds = (milliseconds: number) => (milliseconds / 1_000).toFixed(1);
  const each = taken.map(({ key, relay }) => `${seconds(key)} and ${seconds(relay)}`).join(', ');
  return {
    what: 'kill -9 of the active one → first key written, first relay pulsed by the standby',
    figure: `${each} s`,
    target: `≤ ${TAKEOVER_TARGET_MS / 1_000} s`,
    met: slowest <= TAKEOVER_TARGET_MS,
  };
}

async function configured({ callLocally }: Daemon): Promise<string> {
  let deviceId = '';
  await wait('the board is there', async () => {
    const { items } = (await callLocally('GET', '/network/rs485')).body as unknown as { items: Device[] };
    deviceId = items[0]?.connectionState.connected ? items[0].deviceId : '';
    return deviceId !== '';
  });
  const settings = { relayIndex: 1, unlockDurationMilliseconds: 200 };
  await callLocally('PUT', `/network/rs485/${deviceId}`, settings);
  return deviceId;
}

const pulsed = ({ callLocally }: Daemon, deviceId: string) =>
  wait('a relay is pulsed', async () => {
    const { body } = await callLocally('POST', `/network/rs485/${deviceId}/pulse`);
    return body.outcome === 'confirmed';
  });

async function written(site: TestSite): Promise<void> {
  const [keyId, requestId] = [randomUUID(), randomUUID()];
  await wait(
    'a write request is accepted',
    async () => (await site.requestWrite('bench-0', requestId, drawKeys([keyId]))).status === 202,
  );
  await site.upstream.waitFor((event) => event.subject === keyId && isTerminalEvent(event));
}

async function standbyRow([active, standby]: Pair): Promise<Row> {
  await follows(active);
  const before = cpuSeconds(standby.pid);
  const begun = performance.now();
  for (let index = 0; index < LOAD_SECONDS * CHANGES_PER_SECOND; index += 1) {
    await sleep(Math.max(0, begun + (index * 1_000) / CHANGES_PER_SECOND - performance.now()));
    await change(active);
  }
  const seconds = (performance.now() - begun) / 1_000;
  const percent = ((cpuSeconds(standby.pid) - before) / seconds) * 100;
  return {
    what: `processor of the standby at ${Math.round((LOAD_SECONDS * CHANGES_PER_SECOND) / seconds)} changes/s`,
    figure: `${percent.toFixed(1)} % of a core`,
    target: `≤ ${STANDBY_TARGET_PERCENT} %`,
    met: percent <= STANDBY_TARGET_PERCENT,
  };
}

/** Milliseconds until it is answered. */
async function change({ callLocally }: Daemon): Promise<number> {
  const begun = performance.now();
  const { status } = await callLocally('PUT', '/access/groups/bench', { name: randomUUID() });
  if (status >= 300) throw new Error(`a change was answered ${status}`);
  return performance.now() - begun;
}

/** In turn, a round each: what the machine does meanwhile is the same for both. */
async function quorumRow(local: Daemon, quorum: Daemon): Promise<Row> {
  const medians: { local: number; quorum: number }[] = [];
  const median = async (daemon: Daemon) => {
    const taken: number[] = [];
    for (let index = 0; index < CHANGES; index += 1) taken.push(await change(daemon));
    return quantile(taken, 0.5);
  };
  for (let round = 0; round < ROUNDS; round += 1)
    medians.push({ local: await median(local), quorum: await median(quorum) });
  const more = quantile(
    medians.map((one) => one.quorum - one.local),
    0.5,
  );
  const each = medians.map((one) => `${one.local.toFixed(1)} → ${one.quorum.toFixed(1)}`).join(', ');
  return {
    what: `what durability: quorum adds to a change, p50 of ${CHANGES}, median of ${ROUNDS} rounds`,
    figure: `${more.toFixed(1)} ms (${each} ms)`,
    target: `≤ ${QUORUM_TARGET_MS} ms`,
    met: more <= QUORUM_TARGET_MS,
  };
}
