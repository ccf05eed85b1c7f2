/** Zigbee on the real daemon with the real driver: two gateways, each a simulated stick, of either make, with locks around it. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { openReader } from '../src/platform/database/connection.ts';
import { openVault } from '../src/platform/vault.ts';
import { type Gateway, openZigbeeSite, waitFor, type ZigbeeSite } from './zigbee-site.ts';

const [ROOM, SUITE, SPA] = ['00158d0001000001', '00158d0001000002', '00158d0002000001'] as const;
const NEW_STICK = '00124b0014d9a0ff';
const OTHERS_MAY = 0o077;
/** Hosts are started again in most tests, and a coordinator takes its seconds to begin. */
vi.setConfig({ testTimeout: 120_000 });

let all: ZigbeeSite;
let [first, second] = [] as unknown as [Gateway, Gateway];
beforeAll(async () => {
  all = await openZigbeeSite([
    { ieee: '00124b0014d9a001', locks: [{ ieee: ROOM }, { ieee: SUITE }] },
    { ieee: '00124b0014d9a002', adapter: 'ember', locks: [{ ieee: SPA, lqi: 120 }] },
  ]);
  [first, second] = all.gateways;
  for (const gateway of all.gateways) await isUp(gateway);
  await all.join(second, SPA);
}, 120_000);
afterAll(() => all[Symbol.asyncDispose]());

const isUp = ({ read }: Gateway) =>
  waitFor(async () => expect(await read()).toMatchObject({ connectionState: { connected: true } }));
const networkOf = async ({ simulated }: Gateway) => {
  const { panId, extendedPanId, channel } = (await simulated.stats()).stick;
  return { panId, extendedPanId, channel };
};
/** Without what locks it: a gateway that starts locks at once what it had to see locked, and a lock relocks by itself. */
const openedAt = async ({ simulated }: Gateway, mac: string) =>
  (await simulated.state(mac)).executed.filter(({ what }) => what === 'unlock' || what === 'jam');

async function unlocksOnce(gateway: Gateway, mac: string): Promise<void> {
  const before = await openedAt(gateway, mac);
  const { status, body } = await all.unlock(mac);
  expect([status, body]).toMatchObject([200, { outcome: 'confirmed', via: 'zigbee' }]);
  const done = (await openedAt(gateway, mac)).slice(before.length);
  expect(done).toMatchObject([{ what: 'unlock', source: 'rf' }]);
}

const statusOf = async (mac: string) => ((await all.doorState(mac)).connection as { status: string }).status;

it('a gateway says which it is, forms a network of its own, and lets no one in unasked', async () => {
  const network = await networkOf(first);
  expect(await first.read()).toMatchObject({
    hwId: '00124b0014d9a001',
    type: 'zstack',
    permitJoin: false,
    zigbeeChannel: network.channel,
    platform: { version: '20230507' },
  });
  expect(network.panId).not.toBe((await networkOf(second)).panId);
  expect(await first.simulated.join(ROOM)).toBe('closed');
});

it('a lock that is turned away from a window for others is shown at its gateway, until it joins', async () => {
  const path = `/network/zgate/${first.deviceId}`;
  const failed = async () => (await all.call('GET', `${path}/state`)).body.failedJoins;
  await all.call('POST', `${path}/permit-join`, { seconds: 60, allowed: [SPA] });
  await first.simulated.join(ROOM);
  await waitFor(async () => expect(await failed()).toMatchObject([{ mac: ROOM, reason: 'notAllowed' }]));
  await waitFor(async () => expect((await first.simulated.state(ROOM)).isJoined).toBe(false));
  await all.join(first, ROOM);
  expect(await failed()).toEqual([]);
});

it('a lock that joins is a door, which is configured, seen, and unlocked once', async () => {
  const door = await all.door(ROOM);
  expect(door).toMatchObject({ gatewayId: first.deviceId, connectionState: { lqi: expect.any(Number) } });
  await unlocksOnce(first, ROOM);
  const { lastSeen } = (await all.door(ROOM)).connectionState;
  await first.simulated.set(ROOM, { lqi: 70 });
  await first.simulated.set(ROOM, { manual: 'lock' });
  await waitFor(async () => {
    const { connectionState } = await all.door(ROOM);
    // Before it was 180; what is heard differs by up to 10.
    expect(Math.abs((connectionState.lqi ?? 0) - 70)).toBeLessThanOrEqual(10);
    expect(connectionState.lastSeen).toBeGreaterThan(lastSeen ?? Number.POSITIVE_INFINITY);
  });
});

it('a door stands open by its lock for a time, and is locked afterwards, as the lock shows', async () => {
  const { id } = await all.door(ROOM);
  const path = `/access/doors/${id}`;
  expect(await all.call('POST', `${path}/stand-open`, { seconds: 600 })).toMatchObject({
    status: 409,
    body: { error: 'STAND_OPEN_NOT_ALLOWED' },
  });
  await all.call('PUT', path, { standOpenEnabled: true });
  await waitFor(async () =>
    expect(await all.doorState(ROOM)).toMatchObject({ configuration: { inForce: true }, standingOpen: null }),
  );
  expect(await all.call('POST', `${path}/stand-open`, { seconds: 600 })).toMatchObject({
    status: 200,
    body: { outcome: 'confirmed', standingOpen: { state: 'open', on: true } },
  });
  await waitFor(async () =>
    expect((await all.doorState(ROOM)).lockState).toMatchObject({ value: 'unlocked' }),
  );
  expect(await all.call('DELETE', `${path}/stand-open`)).toMatchObject({
    status: 200,
    body: { outcome: 'confirmed', standingOpen: null },
  });
  await waitFor(async () => expect((await all.doorState(ROOM)).lockState).toMatchObject({ value: 'locked' }));
  expect(await all.call('POST', `${path}/lock`)).toMatchObject({ body: { outcome: 'confirmed' } });
});

it('a lock that sleeps is unlocked, locked, and stands open for a time', async () => {
  const { id } = await all.door(SPA);
  const path = `/access/doors/${id}`;
  await all.call('PUT', path, { standOpenEnabled: true });
  await waitFor(async () =>
    expect(await all.doorState(SPA)).toMatchObject({ configuration: { inForce: true } }),
  );
  // It fetches each frame from its parent when it polls, and sleeps again at once.
  await second.simulated.set(SPA, { sleepy: { pollMs: 4_000, awakeMs: 0 } });
  await unlocksOnce(second, SPA);
  expect(await all.call('POST', `${path}/lock`)).toMatchObject({ body: { outcome: 'confirmed' } });
  const begun = await all.call('POST', `${path}/stand-open`, { seconds: 600 });
  expect([begun.status, begun.body.outcome]).toEqual([200, expect.stringMatching(/^(confirmed|unknown)$/)]);
  await waitFor(async () =>
    expect(await all.doorState(SPA)).toMatchObject({ standingOpen: { state: 'open' } }),
  );
  const ended = await all.call('DELETE', `${path}/stand-open`);
  expect([ended.status, ended.body.outcome]).toEqual([200, expect.stringMatching(/^(confirmed|unknown)$/)]);
  await waitFor(async () =>
    expect(await all.doorState(SPA)).toMatchObject({ standingOpen: null, lockState: { value: 'locked' } }),
  );
  expect(await second.simulated.state(SPA)).toMatchObject({ lockState: 1, operatingMode: 0 });
  await second.simulated.set(SPA, { sleepy: null });
});

it('an update of a door travels to its lock, and is applied with the frames as they were sent', async () => {
  const before = await all.door(ROOM);
  const wanted = { name: 'Room 101', number: 101 };
  const { status, body } = await all.call('PUT', `/access/doors/${before.id}`, wanted);
  expect([status, body.configVersion]).toEqual([200, before.configVersion + 1]);
  await waitFor(async () =>
    expect(await all.doorState(ROOM)).toMatchObject({
      configuration: { inForce: true, reported: before.configVersion + 1 },
    }),
  );
  const { applied } = await all.door(ROOM);
  expect(applied?.versions.doorVersion).toBe(body.version);
  const frames = applied?.payloads.map((frame) => Buffer.from(frame, 'base64').toString('latin1'));
  expect(frames?.join('')).toContain('Room 101');
  const { vendor } = await first.simulated.state(ROOM);
  expect(vendor?.applied.at(-1)).toMatchObject({ configVersion: before.configVersion + 1 });
});

it('a gateway whose host hangs leaves the other and its doors alone, and is replaced', async () => {
  const spa = await all.door(SPA);
  const { connection } = await all.doorState(SPA);
  const pid = first.hostPid();
  process.kill(pid, 'SIGSTOP');
  // Looked at all the time: an unlock may take longer than another host to take its place.
  let isLost = false;
  const loss = waitFor(async () => expect(await statusOf(ROOM)).toBe('unknown')).finally(() => {
    isLost = true;
  });
  let unlocks = 0;
  do {
    await unlocksOnce(second, SPA);
    unlocks += 1;
  } while (!isLost);
  await loss;
  // The first of them did not wait until the host was given up.
  expect(unlocks).toBeGreaterThan(1);
  await all.isConnected(ROOM);
  expect(first.hostPid()).not.toBe(pid);
  expect((await all.doorState(SPA)).connection).toMatchObject({
    status: 'connected',
    since: (connection as { since: string }).since,
  });
  expect(await all.door(SPA)).toMatchObject({ id: spa.id, configVersion: spa.configVersion });
});

it('a stick that hangs leaves the other and its doors alone, and opens no door when it wakes', async () => {
  process.kill(first.simulated.pid, 'SIGSTOP');
  for (let time = 0; time < 3; time += 1) await unlocksOnce(second, SPA);
  // No one knows yet.
  expect(await statusOf(ROOM)).toBe('connected');
  expect(await all.unlock(ROOM)).toMatchObject({ status: 503, body: { error: 'DEVICE_OFFLINE' } });
  await unlocksOnce(second, SPA);
  process.kill(first.simulated.pid, 'SIGCONT');
  const executed = (await openedAt(first, ROOM)).length;
  await waitFor(async () => expect(await all.unlock(ROOM)).toMatchObject({ status: 200 }));
  // What was sent to it before comes before.
  expect(await openedAt(first, ROOM)).toHaveLength(executed + 1);
});

it.each(['the host', 'the daemon'])(
  '%s that is killed comes back with its network and doors',
  async (who) => {
    const [network, before] = [await networkOf(first), await all.door(ROOM)];
    const unlocked = (await openedAt(first, ROOM)).length;
    const pid = first.hostPid();
    if (who === 'the host') process.kill(pid, 'SIGKILL');
    else {
      await all.site.daemon.kill();
      await all.site.daemon.start();
    }
    await waitFor(() => expect(first.hostPid()).not.toBe(pid));
    for (const mac of [ROOM, SPA]) await all.isConnected(mac);
    expect(await networkOf(first)).toEqual(network);
    // The summary says since when its lock is there: since the start.
    const { connectionState: _, state: __, ...kept } = before as typeof before & { state: unknown };
    expect(await all.door(ROOM)).toMatchObject(kept);
    // Nothing that was done is done again.
    expect(await openedAt(first, ROOM)).toHaveLength(unlocked);
    await unlocksOnce(first, ROOM);
  },
);

it('a new stick is left alone until somebody has the network restored on it', async () => {
  await all.join(first, SUITE);
  const network = await networkOf(first);
  const doors = [await all.door(ROOM), await all.door(SUITE)].map(({ id }) => id);
  await waitFor(async () => expect(await gatehouse('list')).toMatch(/^ +\d+ +\S+Z +2 +00124b0014d9a001/m));
  await first.simulated.setGateway({ newStick: { ieee: NEW_STICK }, drop: true });
  await waitFor(async () =>
    expect(await first.read()).toMatchObject({ connectionState: { connected: false } }),
  );
  await waitFor(() => expect(log()).toContain('gatehouse zgate restore'));
  expect((await networkOf(first)).panId).not.toBe(network.panId);
  expect(await gatehouse('restore', first.deviceId, '--yes')).toMatch(/\(2 locks\) goes to the coordinator/);
  await isUp(first);
  await waitFor(async () => expect(await networkOf(first)).toEqual(network));
  for (const mac of [ROOM, SUITE]) await waitFor(() => unlocksOnce(first, mac));
  expect([await all.door(ROOM), await all.door(SUITE)].map(({ id }) => id)).toEqual(doors);
});

it('shows the key of a network to no one', () => {
  const state = join(all.site.directory, 'data/zigbee', first.deviceId);
  const data = join(all.site.directory, 'data');
  const key = networkKeyOf(data, first.deviceId);
  const logged = log().toLowerCase();
  expect(key).toMatch(/^[0-9a-f]{32}$/);
  for (const form of formsOf(key)) expect(logged).not.toContain(form);
  const files = readdirSync(all.site.directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  const holding = files.filter((file) => {
    const content = readFileSync(file).toString('latin1').toLowerCase();
    return formsOf(key).some((form) => content.includes(form));
  });
  expect(existsSync(join(state, 'coordinator_backup.sealed'))).toBe(true);
  expect(holding).toEqual([]);
  for (const file of files.filter((one) => one.startsWith(join(all.site.directory, 'data/zigbee'))))
    expect([file, statSync(file).mode & OTHERS_MAY]).toEqual([file, 0]);
  expect(statSync(state).mode & OTHERS_MAY).toBe(0);
});

/** As the daemon has drawn it, unsealed with the key of the vault. */
function networkKeyOf(data: string, deviceId: string): string {
  using connection = openReader(join(data, 'gatehouse.db'));
  const row = connection
    .prepare<[string], { sealed: Buffer }>('SELECT sealed FROM zgate_network WHERE device_id = ?')
    .get(deviceId);
  const vault = openVault(join(data, 'keys/vault.key'), { create: false });
  const secrets = vault.open(row?.sealed ?? Buffer.alloc(0), `zgate network ${deviceId}`);
  return JSON.parse(secrets.toString()).networkKey;
}

/** As text, as bytes, and as a list of numbers. */
function formsOf(key: string): string[] {
  const bytes = Buffer.from(key, 'hex');
  return [key, bytes.toString('latin1').toLowerCase(), [...bytes].join(','), [...bytes].join(', ')];
}

const log = () => readFileSync(all.site.daemon.logFile, 'utf8');

/** `gatehouse zgate …`, in a process of its own. */
function gatehouse(...args: string[]): Promise<string> {
  const start = join(import.meta.dirname, '../src/start.js');
  const config = join(all.site.directory, 'gatehouse.yaml');
  const child = spawn(process.execPath, [start, 'zgate', ...args, '--config', config]);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  return new Promise((resolve) => child.on('close', () => resolve(output)));
}
