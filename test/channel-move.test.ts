/** Networks that move to another channel under the real daemon, with the pauses of the real library: which orders wait, and what is shown of the locks. */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { GatewayPlan } from './simulators/zigbee/plan.ts';
import { type Gateway, openZigbeeSite, waitFor, type ZigbeeSite } from './zigbee-site.ts';

const LOCKED = 1;
/** The library alone waits for 12 s in a move. */
vi.setConfig({ testTimeout: 120_000 });

const macs = (gateway: number) =>
  [1, 2, 3].map((lock) => `00158d00000${gateway}000${lock}`) as [string, string, string];
const planOf = (gateway: number, adapter: NonNullable<GatewayPlan['adapter']>): GatewayPlan => {
  const [follows, sleeps, stays] = macs(gateway);
  const own = { autoRelockSeconds: 0, vendorCluster: false };
  return {
    ieee: `00124b0014d9a00${gateway}`,
    adapter,
    locks: [
      { ieee: follows, ...own },
      { ieee: sleeps, ...own, sleepy: { pollMs: 3_000 }, rejoinMs: 4_000 },
      { ieee: stays, ...own, followsChannel: false },
    ],
  };
};

let all: ZigbeeSite;
beforeAll(async () => {
  all = await openZigbeeSite([planOf(1, 'zstack'), planOf(2, 'ember')]);
  for (const [index, gateway] of all.gateways.entries()) {
    await waitFor(async () =>
      expect(await gateway.read()).toMatchObject({ connectionState: { connected: true } }),
    );
    for (const mac of macs(index + 1)) await all.join(gateway, mac);
  }
}, 120_000);
afterAll(() => all[Symbol.asyncDispose]());

type Heard = Record<'lastSeen' | 'lastContact', unknown>;
async function heard(mac: string): Promise<Heard> {
  const { lastSeen, lastContact } = (await all.door(mac)).connectionState as unknown as Heard;
  return { lastSeen, lastContact };
}
async function stateOf(mac: string) {
  const state = await all.doorState(mac);
  return state as typeof state & {
    connection: { status: string; reportAge: number };
    lastLock: { outcome: string | null };
  };
}
const post = async (mac: string, what: string) =>
  all.call('POST', `/access/doors/${(await all.door(mac)).id}/${what}`);
const movements = async ({ simulated }: Gateway, mac: string) =>
  (await simulated.state(mac)).executed.map(({ what, source }) => `${what} by ${source}`);

it.each([
  [1, 'Z-Stack'],
  [2, 'EmberZNet'],
])(
  'gateway %i, %s: locks after a move, unlocks not during it, and shows what locks said themselves',
  async (number) => {
    const gateway = all.gateways[number - 1] as Gateway;
    const [follows, sleeps, stays] = macs(number);
    for (const mac of [follows, sleeps, stays]) {
      await gateway.simulated.set(mac, { manual: 'unlock' });
      await waitFor(async () => expect((await stateOf(mac)).lockState).toMatchObject({ value: 'unlocked' }));
      await gateway.simulated.set(mac, { clearLog: true });
    }
    const [before, { connection }] = [await heard(stays), await stateOf(stays)];
    const askedAt = performance.now();
    const { zigbeeChannel } = (await gateway.read()) as { zigbeeChannel: number };
    const channel = zigbeeChannel === 20 ? 25 : 20;
    const moved = await all.call('POST', `/network/zgate/${gateway.deviceId}/channel-move`, { channel });
    expect(moved.status).toBe(202);
    await waitFor(async () => expect((await stateOf(stays)).connection.status).toBe('unknown'));

    const orders = await Promise.all([
      ...[follows, sleeps, stays].map((mac) => post(mac, 'lock')),
      post(sleeps, 'unlock'),
    ]);
    const [, , , unlock] = orders;
    expect(unlock).toMatchObject({ status: 422, body: { error: 'QUEUE_FULL' } });
    for (const { status, body } of orders.slice(0, 3))
      expect([status, body.outcome]).toEqual([200, 'waiting']);
    await waitFor(async () => expect(await gateway.read()).toMatchObject({ zigbeeChannel: channel }));
    for (const mac of [follows, sleeps]) {
      await waitFor(async () =>
        expect((await stateOf(mac)).lastLock).toMatchObject({ outcome: 'confirmed' }),
      );
      expect(await gateway.simulated.state(mac)).toMatchObject({ lockState: LOCKED, channel });
      expect(await movements(gateway, mac)).toEqual(['lock by rf']);
      await all.isConnected(mac);
    }
    await waitFor(async () => expect((await stateOf(stays)).lastLock).toMatchObject({ outcome: 'unknown' }));
    const end = await stateOf(stays);
    expect(end).toMatchObject({ connection: { status: 'disconnected' }, offline: { code: 'STAYED_BEHIND' } });
    expect(await heard(stays)).toEqual(before);
    const passedMs = performance.now() - askedAt;
    expect(end.connection.reportAge - connection.reportAge).toBeGreaterThanOrEqual(
      Math.floor(passedMs) - 1_000,
    );
    expect(await movements(gateway, stays)).toEqual([]);
    // It would go on waiting for the lock that stays.
    await all.call('DELETE', `/jobs/${moved.body.id}`);
  },
);

const drop = ({ simulated }: Gateway) => simulated.drop();
const killHost = async ({ hostPid }: Gateway) => void process.kill(hostPid(), 'SIGKILL');
it.each([
  [1, 'Z-Stack', 'its connection broke', drop],
  [2, 'EmberZNet', 'its connection broke', drop],
  [2, 'EmberZNet', 'its host was killed', killHost],
])('gateway %i, %s: locks after a move that its next start finishes, as %s', async (number, _, __, lose) => {
  const gateway = all.gateways[number - 1] as Gateway;
  const [mac] = macs(number);
  await gateway.simulated.set(mac, { manual: 'unlock' });
  await waitFor(async () => expect((await stateOf(mac)).lockState).toMatchObject({ value: 'unlocked' }));
  await gateway.simulated.set(mac, { clearLog: true });
  const { zigbeeChannel } = (await gateway.read()) as { zigbeeChannel: number };
  const channel = zigbeeChannel === 20 ? 25 : 20;
  const body = { channel, confirm: true };
  const moved = await all.call('POST', `/network/zgate/${gateway.deviceId}/channel-move`, body);
  expect(moved.status).toBe(202);
  await waitFor(async () => expect((await stateOf(mac)).connection.status).toBe('unknown'));
  expect(await post(mac, 'lock')).toMatchObject({ status: 200, body: { outcome: 'waiting' } });
  await lose(gateway);
  await waitFor(async () =>
    expect(await gateway.read()).toMatchObject({ connectionState: { connected: false } }),
  );
  await waitFor(async () => expect((await stateOf(mac)).lastLock).toMatchObject({ outcome: 'confirmed' }));
  expect(await gateway.simulated.state(mac)).toMatchObject({ lockState: LOCKED, channel });
  expect(await movements(gateway, mac)).toEqual(['lock by rf']);
});
