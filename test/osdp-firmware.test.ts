/** Firmware and addresses of OSDP devices end to end: operation, job, host, driver, simulated device on its bus. */
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openReader } from '../src/platform/database/connection.ts';
import { waitFor } from './rs485-site.ts';
import { openSimulatedBus } from './simulators/bus/bus.ts';
import { openTestSite } from './simulators/test-site.ts';

const PATH = '/network/rs485';
const NAME = '0a4748-1-4711';
/** What the simulated device calls 2.1.0. */
const FILE = Buffer.from(
  Array.from({ length: 16_000 }, (_, index) => [2, 1, 0][index] ?? (index * index) >> 5),
);
const sha256 = createHash('sha256').update(FILE).digest('hex');
const MANIFEST = { vendorCode: '0a4748', models: [1], version: '2.1.0', sha256 };

interface Job {
  id: string;
  status: string;
  position: number | null;
  progress: { done: number; total: number | null };
  result: object | null;
  error: { code: string; message: string } | null;
}

async function openSite() {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-osdp-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'io.bin'), FILE);
  await writeFile(
    join(folder, 'io.bin.json'),
    JSON.stringify({ ...MANIFEST, apps: [{ name: 'io', version: '2' }] }),
  );
  await writeFile(join(folder, 'other.bin'), FILE);
  await writeFile(join(folder, 'other.bin.json'), JSON.stringify({ ...MANIFEST, vendorCode: '00068e' }));
  await writeFile(join(folder, 'broken.bin'), FILE.subarray(1));
  await writeFile(join(folder, 'broken.bin.json'), JSON.stringify(MANIFEST));
  const files = { keeps: true, endsWith: 2 as const, messageMax: 256, delayMs: 60 };
  const bus = stack.use(
    await openSimulatedBus({
      protocol: 'osdp',
      baudRate: 115_200,
      parity: 'none',
      stopBits: 1,
      pacing: 'cheap',
      link: join(folder, 'readers'),
      devices: [
        { address: 3, kind: 'osdp-io', hwId: '4711', osdp: { files } },
        { address: 4, kind: 'osdp-io', hwId: '4712', osdp: { files } },
      ],
    }),
  );
  const options = { port: bus.port, baudRate: 115_200, pollEveryMs: 20 };
  const links = [{ id: 'readers', protocol: 'osdp', options }];
  const site = stack.use(await openTestSite({ more: { links, firmwareDirectory: folder } }));
  const call = (method: string, path: string, body?: object) =>
    site.daemon.call(method, path, site.tokens['service-tool'], body);
  const job = async (id: string) => (await call('GET', `/jobs/${id}`)).body as unknown as Job;
  const ended = (id: string) =>
    waitFor(async () => {
      const one = await job(id);
      expect(one.status).not.toMatch(/running|queued/);
      return one;
    });
  const start = async (path: string, body: object) => {
    const { status, body: job } = await call('POST', path, body);
    expect([status, job], JSON.stringify(job)).toMatchObject([202, {}]);
    return (job as { id: string }).id;
  };
  await waitFor(async () =>
    expect((await call('GET', `${PATH}/buses`)).body).toMatchObject({ items: [{ up: true }] }),
  );
  const pair = async (address: number) => {
    const paired = await ended(await start(`${PATH}/buses/readers/pair`, { address, seconds: 20 }));
    return (paired.result as { deviceId: string }).deviceId;
  };
  const deviceId = await pair(3);
  const device = async () =>
    (await call('GET', `${PATH}/${deviceId}`)).body as {
      upgradeJobInfo: object | null;
      platform: { version: string };
      connectionState: { connected: boolean };
    };
  const state = async () => (await call('GET', `${PATH}/${deviceId}/state`)).body;
  const connected = () => waitFor(async () => expect((await device()).connectionState.connected).toBe(true));
  await connected();
  const opened = stack.move();
  return {
    bus,
    site,
    call,
    job,
    ended,
    start,
    device,
    state,
    connected,
    deviceId,
    pair,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Bytes that the device has confirmed, as the next daemon will read them. */
function storedOffset(directory: string): number {
  using connection = openReader(join(directory, 'data', 'gatehouse.db'));
  return connection.prepare<[], { offset: number }>('SELECT offset FROM osdp_transfer').get()?.offset ?? 0;
}

it('gives a device new firmware, over the loss of the device, of its host and of the daemon', async () => {
  await using osdp = await openSite();
  const { bus, site, call, job, ended, start, device, deviceId } = osdp;
  const path = `${PATH}/${deviceId}/firmware`;
  for (const [file, reason] of [
    ['other.bin', '00068e-1'],
    ['broken.bin', 'SHA-256'],
    ['absent.bin', 'firmwareDirectory'],
  ] as const) {
    const refused = await call('POST', path, { file });
    expect(refused).toMatchObject({ status: 400, body: { error: 'VALIDATION_FAILED' } });
    expect(JSON.stringify(refused.body)).toContain(reason);
  }

  const first = await start(path, { file: 'io.bin' });
  expect(await call('POST', path, { file: 'io.bin' })).toMatchObject({
    status: 409,
    body: { error: 'IN_PROGRESS' },
  });
  await waitFor(async () =>
    expect(await device()).toMatchObject({
      upgradeJobInfo: { id: first, app: [{ name: 'io', version: '2' }], platform: { version: '2.1.0' } },
    }),
  );
  const progress: number[] = [];
  const reached = async (bytes: number) =>
    waitFor(async () => {
      progress.push((await job(first)).progress.done);
      expect(progress.at(-1)).toBeGreaterThan(bytes);
    });
  await reached(1_000);
  await bus.set(3, { restart: true });
  await reached(3_000);
  const { pid } = JSON.parse(await readFile(join(site.directory, 'data/hosts/rs485.pid'), 'utf8'));
  process.kill(pid, 'SIGKILL');
  await reached(5_000);
  await bus.set(3, { faults: { dead: true } });
  await waitFor(async () => expect((await device()).connectionState.connected).toBe(false));
  await bus.set(3, { faults: null });
  await reached(7_000);
  // From where it was, each time.
  expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  await site.daemon.kill();
  // A kill of the daemon costs what it had not stored yet.
  const kept = storedOffset(site.directory);
  expect(kept).toBeGreaterThan(0);
  await site.daemon.start();
  progress.splice(0, progress.length, kept);
  await reached(9_000);
  expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  expect(await ended(first)).toMatchObject({
    status: 'done',
    result: { deviceId, hwId: NAME, file: 'io.bin', version: '2.1.0', platformVersion: '2.1.0' },
  });
  expect(await device()).toMatchObject({ upgradeJobInfo: null, platform: { version: '2.1.0' } });
  expect(await bus.state(3)).toMatchObject({ files: [{ type: 1, length: FILE.length, sha256 }] });

  const third = await start(path, { file: 'io.bin' });
  await waitFor(async () => expect((await bus.state(3)).transfer).not.toBeNull());
  await call('DELETE', `/jobs/${third}`);
  expect(await ended(third)).toMatchObject({ status: 'cancelled' });
  await waitFor(async () => expect((await bus.state(3)).transfer).toBeNull());
  expect((await bus.state(3)).files).toHaveLength(1);
}, 180_000);

it('gives the devices of a bus firmware one after the other, in their order, across a restart', async () => {
  await using osdp = await openSite();
  const { bus, site, call, job, ended, start, device, deviceId, pair } = osdp;
  const other = await pair(4);
  const order = (id: string) => start(`${PATH}/${id}/firmware`, { file: 'io.bin' });
  const first = await waitFor(() => order(deviceId));
  const second = await waitFor(() => order(other));
  expect(await job(second)).toMatchObject({ status: 'queued', position: 1 });
  await waitFor(async () => expect((await bus.state(3)).transfer).not.toBeNull());
  await site.daemon.kill();
  await site.daemon.start();
  expect(await job(second)).toMatchObject({ status: 'queued', position: 1 });
  await call('DELETE', `/jobs/${second}`);
  expect(await ended(second)).toMatchObject({ status: 'cancelled' });
  const third = await waitFor(() => order(other));
  expect(await job(third)).toMatchObject({ status: 'queued', position: 1 });
  await waitFor(async () => expect(await device()).toMatchObject({ upgradeJobInfo: { id: first } }));
  expect(await ended(first)).toMatchObject({ status: 'done' });
  expect(await ended(third)).toMatchObject({ status: 'done', result: { deviceId: other } });
  expect((await bus.state(4)).files).toMatchObject([{ type: 1, length: FILE.length, sha256 }]);
}, 180_000);

it('gives a device another address, and says what became of one that has another baud rate', async () => {
  await using osdp = await openSite();
  const { bus, site, call, ended, start, device, state, connected, deviceId } = osdp;
  const path = `${PATH}/${deviceId}/communication`;
  expect((await call('POST', path, {})).status).toBe(400);
  expect(await ended(await start(path, { address: 9 }))).toMatchObject({
    status: 'done',
    result: { hwId: NAME, from: 3, address: 9, baudRate: 115_200, outcome: 'moved' },
  });
  await connected();
  expect(await state()).toMatchObject({ address: 9, security: 'secure' });
  // No one is looked for where it was.
  await waitFor(async () =>
    expect((await call('GET', `${PATH}/buses`)).body).toMatchObject({
      items: [{ warnings: [], devices: [{ address: 9, alive: true }] }],
    }),
  );
  await site.daemon.kill();
  await site.daemon.start();
  await connected();
  expect(await state()).toMatchObject({ address: 9, security: 'secure' });

  expect(await call('POST', path, { baudRate: 9_600 })).toMatchObject({
    status: 409,
    body: { error: 'CONFIRMATION_NEEDED' },
  });
  expect(await ended(await start(path, { baudRate: 9_600, confirm: true }))).toMatchObject({
    status: 'done',
    result: { from: 9, address: 9, baudRate: 9_600, outcome: 'left' },
  });
  await waitFor(async () => expect((await device()).connectionState.connected).toBe(false));
  expect((await bus.state(3)).isPaired).toBe(true);
}, 120_000);
