/**
 * Firmware of locks on the real daemon, behind a coordinator of each make, that stops half-way: its job goes on or says how it ended,
 * the lock works with what it had before, and nothing is kept waiting. How the library's own patience ends is in
 * drivers/zigbee/half-updates.test.ts; firmware of OSDP devices in osdp-firmware.test.ts.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { otaFile } from './ota-file.ts';
import { MAKES } from './simulators/zigbee/makes.ts';
import type { GatewayPlan } from './simulators/zigbee/plan.ts';
import { type Gateway, openZigbeeSite, waitFor, type ZigbeeSite } from './zigbee-site.ts';

const NEW = 0x0102_0500;
const OLD = 0x0102_0300;
const IMAGE = otaFile(NEW, { bytes: 1_500 });
const BLOCK_BYTES = 50;
const FILE = 'lock.ota';
const NEWER = 0x0102_0600;
const NEWER_FILE = 'newer.ota';
vi.setConfig({ testTimeout: 240_000 });

interface Lane {
  gateway: Gateway;
  /** That is given firmware, and another one of its network. */
  lock: string;
  other: string;
  job: string;
}

const macs = (gateway: number) => [1, 2].map((lock) => `00158d00000${gateway}000${lock}`) as [string, string];
const planOf = (gateway: number, { adapter }: (typeof MAKES)['zstack' | 'ember']): GatewayPlan => ({
  ieee: `00124b0014d9a00${gateway}`,
  adapter,
  locks: macs(gateway).map((ieee) => ({ ieee, mains: true })),
});

let all: ZigbeeSite;
let lanes: Lane[];
beforeAll(async () => {
  const firmwareDirectory = mkdtempSync(join(tmpdir(), 'gatehouse-firmware-'));
  afterAll(() => rmSync(firmwareDirectory, { recursive: true, force: true }));
  writeFileSync(join(firmwareDirectory, FILE), IMAGE);
  writeFileSync(join(firmwareDirectory, NEWER_FILE), otaFile(NEWER, { bytes: 200 }));
  const plans = [planOf(1, MAKES.zstack), planOf(2, MAKES.ember)] as const;
  all = await openZigbeeSite(plans, { more: { firmwareDirectory }, networks: 'two' });
  lanes = all.gateways.map((gateway, index) => {
    const [lock, other] = macs(index + 1);
    return { gateway, lock, other, job: '' };
  });
  await both(async ({ gateway, lock, other }) => {
    await waitFor(async () =>
      expect(await gateway.read()).toMatchObject({ connectionState: { connected: true } }),
    );
    for (const mac of [lock, other]) await all.join(gateway, mac);
  });
}, 120_000);
afterAll(() => all[Symbol.asyncDispose]());

const both = (work: (lane: Lane) => Promise<unknown>) => Promise.all(lanes.map(work));
const call = (method: string, path: string, body?: object) =>
  all.site.daemon.call(method, path, all.site.tokens['service-tool'], body);
const jobOf = async (id: string) => (await call('GET', `/jobs/${id}`)).body;
/** Links come up and 30 blocks are fetched before that: half a minute on a busy machine. */
const ends = (id: string, end: object) =>
  vi.waitFor(async () => expect(await jobOf(id)).toMatchObject(end), { timeout: 100_000, interval: 20 });

/** A lock on mains reports no battery that counts. */
async function order(mac: string, file = FILE): Promise<string> {
  const path = `/access/doors/${(await all.door(mac)).id}/firmware`;
  const { status, body } = await call('POST', path, { file, ignoreBattery: true });
  expect([status, body]).toMatchObject([202, {}]);
  return String(body.id);
}
async function download({ gateway, lock }: Lane) {
  const { firmware } = await gateway.simulated.state(lock);
  return { version: firmware.version, ...(firmware.download as { offset: number; blocks: number }) };
}
/** It has fetched some blocks more than it has now. */
async function fetches(lane: Lane): Promise<void> {
  const { blocks } = await download(lane);
  await waitFor(async () => expect((await download(lane)).blocks).toBeGreaterThan(blocks + 2));
}
async function halfWay(lane: Lane): Promise<void> {
  lane.job = await order(lane.lock);
  await fetches(lane);
}
/** Its door is opened once, by the firmware that it has. */
async function works({ gateway, lock }: Lane, mac = lock, version = OLD): Promise<void> {
  await all.isConnected(mac);
  // The unlock before is over: a bolt that it still draws, or that is locked again just now, shows nothing of the next one.
  await waitFor(async () => expect((await gateway.simulated.state(mac)).lockState).toBe(1));
  const opened = async () =>
    (await gateway.simulated.state(mac)).executed.filter(({ what }) => what === 'unlock').length;
  const before = await opened();
  expect(await all.unlock(mac)).toMatchObject({ status: 200, body: { outcome: 'confirmed' } });
  expect(await opened()).toBe(before + 1);
  expect((await gateway.simulated.state(mac)).firmware.version).toBe(version);
}

const LOST = {
  status: 'failed',
  error: { code: 'LINK_LOST', message: expect.stringContaining('goes on where it was') },
};

it('fails with the host process that is killed, and is ordered again', async () => {
  await both(async (lane) => {
    await halfWay(lane);
    process.kill(lane.gateway.hostPid(), 'SIGKILL');
    await ends(lane.job, LOST);
    await works(lane);
  });
});

it('fails with the link of its coordinator, and is ordered again', async () => {
  await both(async (lane) => {
    await halfWay(lane);
    await lane.gateway.simulated.drop();
    await ends(lane.job, LOST);
    await works(lane);
  });
});

it('goes on by itself when the daemon was killed, and has sent each block once over all of that', async () => {
  await both(halfWay);
  await all.site.daemon.kill();
  await all.site.daemon.start();
  await both(async (lane) => {
    await ends(lane.job, { status: 'done' });
    await works(lane, lane.lock, NEW);
    expect(await download(lane)).toMatchObject({
      version: NEW,
      blocks: Math.ceil(IMAGE.length / BLOCK_BYTES),
    });
  });
});

it('of a lock that is off holds up no door and no other lock, and is called off at once', async () => {
  await both(async ({ lock: other, other: lock, ...lane }) => {
    const off = { ...lane, lock, other };
    await halfWay(off);
    await lane.gateway.simulated.set(lock, { faults: { offline: true } });
    await works(off, other, NEW);
    const next = await order(other, NEWER_FILE);
    expect(await jobOf(next)).toMatchObject({ status: 'queued' });
    await call('DELETE', `/jobs/${off.job}`);
    await ends(off.job, { status: 'cancelled' });
    await ends(next, { status: 'done' });
    expect((await lane.gateway.simulated.state(other)).firmware.version).toBe(NEWER);
    await lane.gateway.simulated.set(lock, { faults: null, announce: true });
    await works(off);
  });
});
