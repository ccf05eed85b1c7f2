/**
 * docs/operations.md: its blocks for devices that need a technician beside them, executed on one site with a bus of boards, a bus of
 * readers and a Zigbee gateway, all simulated. The buses have the names that the page uses. What waits for devices does so at once.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it, vi } from 'vitest';
import { atTerminal, HAS_TERMINAL } from './at-terminal.ts';
import { blockWith } from './operations-page.ts';
import { openSimulatedBus, type SimulatedBus } from './simulators/bus/bus.ts';
import { openTestSite, type TestSite } from './simulators/test-site.ts';
import { openSimulatedGateway, type SimulatedGateway } from './simulators/zigbee/gateway.ts';
import { waitFor } from './zigbee-site.ts';

vi.setConfig({ testTimeout: 120_000 });

const ROOT = join(import.meta.dirname, '..');
const READER = '0a4748-1-4711';
/** As the page lets it in. */
const LOCK = '00158d0001a2b3c4';
const GATEWAY_ID = '4e1a2c0f-93b7-4b5e-8a44-5d3f0c6b7a01';
const NETWORK_ID = '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e';
/** Its gateway is reached by TLS. */
const NET_ID = '8f0c2f1e-6a86-4a4f-9f0e-3d2b7a5c9e01';
const NEW_STICK = '00124b0014d9a0ff';
/** What the simulated reader calls 2.1.0. */
const FIRMWARE = Buffer.from([2, 1, 0, ...Array.from({ length: 500 }, (_, index) => index & 0xff)]);

let site: TestSite;
let boards: SimulatedBus;
let stick: SimulatedGateway;
let firmware: string;
beforeAll(async () => {
  await using stack = new AsyncDisposableStack();
  const serial = { parity: 'none', stopBits: 1, pacing: 'cheap' } as const;
  boards = stack.use(
    await openSimulatedBus({
      ...serial,
      protocol: 'modbus',
      baudRate: 9_600,
      devices: [{ address: 3, kind: 'icp-das-tm-r5' }],
    }),
  );
  const readers = stack.use(
    await openSimulatedBus({
      ...serial,
      protocol: 'osdp',
      baudRate: 115_200,
      devices: [{ address: 1, kind: 'osdp-io', hwId: '4711', osdp: { files: { keeps: true, endsWith: 2 } } }],
    }),
  );
  stick = stack.use(await openSimulatedGateway({ ieee: '00124b0014d9a001', locks: [{ ieee: LOCK }] }));
  firmware = mkdtempSync(join(tmpdir(), 'gatehouse-firmware-'));
  stack.defer(() => rmSync(firmware, { recursive: true, force: true }));
  const options = ({ port }: SimulatedBus, baudRate: number) => ({
    port,
    baudRate,
    parity: 'none',
    stopBits: 1,
  });
  const links = [
    {
      id: 'bus-1',
      protocol: 'modbus',
      options: { ...options(boards, 9_600), devices: [{ unitId: 3, profile: 'icp-das-tm-r5' }] },
    },
    {
      id: 'bus-3',
      protocol: 'osdp',
      options: { ...options(readers, 115_200), devices: [{ address: 1 }] },
    },
    { id: 'zb-1', protocol: 'zigbee', options: { port: stick.port, manufacturerCode: 0x1234 } },
  ];
  const zgates = [{ deviceId: GATEWAY_ID, link: 'zb-1', networkId: NETWORK_ID }];
  const networks = [{ id: NETWORK_ID }, { id: NET_ID }];
  site = stack.use(await openTestSite({ more: { links, zgates, networks, firmwareDirectory: firmware } }));
  const opened = stack.move();
  await Promise.all([deviceOf('bus-1-3'), deviceOf(READER)]);
  return () => opened.disposeAsync();
}, 120_000);

const call = (method: string, path: string, body?: object) =>
  site.daemon.call(method, path, site.tokens['service-tool'], body);
const deviceOf = (hwId: string) =>
  waitFor(async () => {
    const { items } = (await call('GET', '/network/rs485')).body as {
      items: { hwId: string; deviceId: string }[];
    };
    const found = items.find((one) => one.hwId === hwId);
    if (!found) throw new Error(`no ${hwId} among ${items.map((one) => one.hwId).join(', ')}`);
    return found.deviceId;
  });

const gatewayOf = async () => (await call('GET', `/network/zgate/${GATEWAY_ID}`)).body;

/** As typed at the controller: the block, and what it is typed with. */
function typing(block: string) {
  const { daemon, directory, tokens } = site;
  const script = [
    'sudo() { "$@"; }',
    `gatehouse() { GATEHOUSE_CONFIG="${directory}/gatehouse.yaml" "${process.execPath}" "${ROOT}/src/start.js" "$@"; }`,
    block
      .replaceAll('https://gatehouse.hotel.example:8443', daemon.baseUrl)
      .replaceAll('gatehouse-root.crt', daemon.caFile)
      .replaceAll('/var/lib/gatehouse-firmware', firmware),
  ].join('\n');
  const [SERVICE_TOKEN, ADMIN_TOKEN] = [tokens['service-tool'], tokens['front-desk-admin']];
  return { script, cwd: directory, env: { ...process.env, SERVICE_TOKEN, ADMIN_TOKEN, NET_ID, GATEWAY_ID } };
}
async function typed(block: string): Promise<string> {
  const { script, ...options } = typing(block);
  return (await promisify(execFile)('bash', ['-euc', script], options)).stdout;
}

it('says how well a bus is heard, and who is alive on it', async () => {
  // All addresses take minutes.
  const block = blockWith('bus doctor bus-1').replace('doctor bus-1', '$& --from 1 --to 4');
  const said = await typed(block);
  expect(said).toMatch(/✓ +bus bus-1 +devices that answer: 1 /);
  expect(said).toMatch(/^bus-1 +modbus .* up .* 1 of 1$/m);
});

it.skipIf(!HAS_TERMINAL).concurrent('proves a watchdog, with somebody who watches the relay', async () => {
  const deviceId = await deviceOf('bus-1-3');
  expect(await call('PUT', `/network/rs485/${deviceId}`, { relayIndex: 0 })).toMatchObject({ status: 200 });
  const stateOf = async () => (await call('GET', `/network/rs485/${deviceId}/state`)).body;
  await waitFor(async () => expect(await stateOf()).toMatchObject({ inForce: true }));
  const { output, code } = await atTerminal(typing(blockWith('bus watchdog-test')), [
    [/Is nothing connected to it, and can you see or hear it\?/, 'y'],
    [/Did you see or hear the relay open by itself, both times\?/, 'y'],
  ]);
  expect([code, output]).toEqual([0, expect.stringContaining('The watchdog of bus-1-3 is proved')]);
  expect(await stateOf()).toMatchObject({ watchdog: { proven: true } });
  const closed = (await boards.state(3)).history.filter(({ on }) => on);
  expect(closed).toHaveLength(2);
});

it.concurrent('gives a reader its firmware', async () => {
  writeFileSync(join(firmware, 'io-2.1.0.bin'), FIRMWARE);
  await typed('sudo gatehouse osdp pair bus-3 1');
  expect(await typed(blockWith('gatehouse osdp firmware'))).toContain('2.1.0');
});

it.concurrent('gives a network the certificate of its gateway', async () => {
  copyFileSync(site.daemon.caFile, join(site.directory, 'gateway.pem'));
  const answer = JSON.parse(await typed(blockWith('--rawfile cert')));
  expect(answer).toMatchObject({ id: NET_ID, cert: expect.stringContaining('BEGIN CERTIFICATE') });
});

it.skipIf(!HAS_TERMINAL).concurrent(
  'lets a lock join, and puts its network onto another coordinator',
  async () => {
    await waitFor(async () =>
      expect(await gatewayOf()).toMatchObject({ connectionState: { connected: true } }),
    );
    expect(JSON.parse(await typed(blockWith('/permit-join')))).toMatchObject({ deviceId: GATEWAY_ID });
    expect(await stick.join(LOCK)).toBe('joined');
    const [list = '', restore = ''] = blockWith('zgate restore').split('\n');
    await waitFor(async () => expect(await typed(list)).toMatch(/^ +\d+ +\S+Z +1 +00124b0014d9a001/m));
    const { panId } = (await stick.stats()).stick;
    await stick.setGateway({ newStick: { ieee: NEW_STICK }, drop: true });
    await waitFor(async () => expect(await typed('gatehouse status')).toContain('another coordinator'));
    const { output, code } = await atTerminal(typing(restore), [
      [/Put the newest snapshot on the coordinator/, 'y'],
    ]);
    expect([code, output]).toEqual([0, expect.stringContaining('(1 locks) goes to the coordinator')]);
    await waitFor(async () => expect((await stick.stats()).stick.panId).toBe(panId));
    await waitFor(async () =>
      expect(await gatewayOf()).toMatchObject({ connectionState: { connected: true } }),
    );
  },
);
