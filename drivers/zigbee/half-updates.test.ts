/** Firmware that stops half-way: of a lock, whose update ends honestly and goes on where it was; and of a coordinator. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import {
  folder,
  joined,
  LOCK,
  opened,
  simulated,
  type TestGateway,
} from '../../test/drivers/zigbee/gateway.ts';
import { otaFile } from '../../test/ota-file.ts';
import type { SimulatedGateway } from '../../test/simulators/zigbee/gateway.ts';
import { MAKE } from '../../test/simulators/zigbee/make.ts';
import { shortenTimeouts } from '../../test/simulators/zigbee/short-pauses.ts';

const NEW = 0x0102_0500;
const IMAGE = otaFile(NEW, { bytes: 600 });
const BLOCK_BYTES = 50;
const PATIENCE = { timeout: 40_000 };
/** Of the library: so long it waits for the next block (OTA_SETTINGS of herdsman/herdsman.ts). */
const BLOCK_MS = 150_000;

async function halfWay() {
  const site = await simulated({ locks: [{ ieee: LOCK, mains: true }] });
  const gateway = await opened(site);
  await joined(gateway, site);
  const file = join(folder(), 'lock.ota');
  writeFileSync(file, IMAGE);
  const update = { hwId: LOCK, file };
  await gateway.execute('updateLock', update);
  await expect.poll(async () => (await download(site)).blocks, PATIENCE).toBeGreaterThan(3);
  return { site, gateway, update, before: (await site.state(LOCK)).firmware.version };
}

const download = async (site: SimulatedGateway) =>
  (await site.state(LOCK)).firmware.download as { offset: number; blocks: number; status: number };
const ends = ({ events }: TestGateway) =>
  events.filter(({ kind }) => kind === 'lockUpdated').map(({ data }) => data);

/** The lock has what it had before until it has all of the new one, and is sent only what it lacks. */
async function goesOn(
  { site, update, before }: Awaited<ReturnType<typeof halfWay>>,
  gateway: TestGateway,
): Promise<void> {
  expect((await site.state(LOCK)).firmware.version).toBe(before);
  const { offset, blocks } = await download(site);
  expect(offset).toBeGreaterThan(0);
  expect(offset).toBeLessThan(IMAGE.length);
  const ended = ends(gateway).length;
  await gateway.execute('updateLock', update);
  await expect.poll(() => ends(gateway)[ended], PATIENCE).toMatchObject({ outcome: 'updated' });
  expect((await site.state(LOCK)).firmware.version).toBe(NEW);
  expect((await download(site)).blocks - blocks).toBe(Math.ceil((IMAGE.length - offset) / BLOCK_BYTES));
}

it('a lock whose gateway is lost half-way is given the rest when it is back', async () => {
  const half = await halfWay();
  await half.site.drop();
  expect(await half.gateway.ended).toMatchObject({ code: 'LINK_LOST' });
  await half.gateway.close();
  // It asks for its block in vain, and gives up.
  await expect.poll(async () => (await download(half.site)).status, PATIENCE).toBe(0);
  await goesOn(half, await opened(half.site, {}, { again: half.gateway }));
}, 120_000);

it('a lock that loses its power half-way is not said to be updated, and is given the rest afterwards', async () => {
  // Before any block is waited for.
  shortenTimeouts(0.05, BLOCK_MS);
  const half = await halfWay();
  await half.site.set(LOCK, { faults: { offline: true } });
  await expect.poll(() => ends(half.gateway), PATIENCE).toMatchObject([{ outcome: 'failed' }]);
  await expect.poll(async () => (await download(half.site)).status, PATIENCE).toBe(0);
  await half.site.set(LOCK, { faults: null, announce: true });
  await goesOn(half, half.gateway);
}, 120_000);

/** Of the Gecko bootloader (UG266, Silicon Labs), which an EFR32 stays in; a CC2652 in its own says nothing unasked (SWCU185). */
const MENU = '\r\nGecko Bootloader v1.12.00\r\n1. upload gbl\r\n2. run\r\n3. ebl info\r\nBL > ';

it('a coordinator that was left in its bootloader is not started, and what to look at is said', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => MAKE.adapter === 'ember' && socket.write(MENU));
  });
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
  shortenTimeouts(0.2);
  await expect(opened({ port })).rejects.toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringContaining(`see that its port is that of ${MAKE.called}`),
  });
  shortenTimeouts(1);
  // The process can start another one.
  const gateway = await opened(await simulated({}));
  expect(gateway.reports.get('gateway')).toMatchObject({ connected: true });
}, 120_000);
