/** Locks that sleep, locks that lie and sticks that fail, with zigbee-herdsman as the host. */
import { expect, it } from 'vitest';
import { Zcl } from 'zigbee-herdsman';
import { temporaryFolder } from '../../temporary.ts';
import type { SimulatedGateway } from './gateway.ts';
import {
  coordinatorOf,
  endpointOf,
  HOST_TIMEOUT_MS,
  type Host,
  openHost,
  openHostWith,
  openStick,
} from './herdsman.ts';
import { MAKE } from './make.ts';
import type { Faults, GatewayPlan } from './plan.ts';

const LOCK = '00158d0001000001';
const ROUTER = '00158d00010000aa';
const NO_PIN = { pincodevalue: Buffer.alloc(0) };

async function opened(plan: GatewayPlan, nodes = [LOCK]): Promise<{ gateway: SimulatedGateway; host: Host }> {
  const gateway = await openStick(plan);
  return { gateway, host: await openHostWith(gateway, nodes) };
}

function unlock(host: Host, options: object = {}): Promise<unknown> {
  const endpoint = endpointOf(host, LOCK) as unknown as {
    command(cluster: string, command: string, payload: object, options: object): Promise<unknown>;
  };
  const immediate = { sendPolicy: 'immediate', disableRecovery: true, timeout: 1_000 };
  return endpoint.command('closuresDoorLock', 'unlockDoor', NO_PIN, { ...immediate, ...options });
}

const unlocks = async (gateway: SimulatedGateway) =>
  (await gateway.state(LOCK)).executed.filter(({ what }) => what === 'unlock').length;
const commands = async (gateway: SimulatedGateway) =>
  (await gateway.state(LOCK)).received.filter(
    ({ cluster, isFoundation }) => cluster === 0x0101 && !isFoundation,
  );

it(
  'has every fault of a lock',
  async () => {
    const { gateway, host } = await opened({ locks: [{ ieee: LOCK, boltMs: 0 }] });
    const during = async (faults: Faults) => {
      await gateway.set(LOCK, { faults, clearLog: true });
      const outcome = await unlock(host).catch((error: Error) => error.message);
      const state = { executed: await unlocks(gateway), commands: (await commands(gateway)).length };
      await gateway.set(LOCK, { faults: null });
      return { outcome, ...state };
    };
    const { says, attempts } = MAKE;
    const timeout = expect.stringMatching(says.unanswered);
    expect(await during({})).toEqual({ outcome: { status: 0 }, executed: 1, commands: 1 });
    expect(await during({ lostResponses: 1 })).toEqual({ outcome: timeout, executed: 1, commands: 1 });
    expect(await during({ lostRequests: 1 })).toEqual({ outcome: timeout, executed: 0, commands: 0 });
    expect(await during({ offline: true })).toMatchObject({
      outcome: expect.stringContaining(says.offline),
      executed: 0,
    });
    expect(await during({ refuse: { status: 1, commands: 1 } })).toMatchObject({
      outcome: { status: 1 },
      executed: 0,
    });
    expect(await during({ defaultResponse: { status: 0x81, commands: 1 } })).toMatchObject({
      outcome: { cmdId: 1, statusCode: 0x81 },
      executed: 0,
    });
    expect(await during({ jammed: true })).toMatchObject({ outcome: { status: 0 }, executed: 0 });
    for (const [status, name] of [
      ['MAC_NO_ACK', says.noAck],
      ['NO_ROUTE', says.noRoute],
      ['CHANNEL_ACCESS_FAILURE', says.busyChannel],
      ['BUFFER_FULL', says.bufferFull],
      ['TRANSACTION_EXPIRED', says.expired],
    ] as const) {
      const expected = { outcome: expect.stringContaining(name), executed: 0, commands: 0 };
      expect(await during({ confirm: { status, frames: attempts } })).toEqual(expected);
    }
    // Heard, although the confirm says that no one acknowledged it.
    const unacknowledged = { status: 'NO_ROUTE', frames: attempts, delivered: true } as const;
    expect(await during({ confirm: unacknowledged })).toEqual({
      // EmberZNet sends it again and again, and by then the answer is there.
      outcome: attempts === 1 ? expect.stringContaining(says.noRoute) : { status: 0 },
      executed: attempts,
      commands: attempts,
    });
    await gateway.setGateway({ confirm: { status: 'BUFFER_FULL', frames: attempts } });
    await expect(unlock(host)).rejects.toThrow(says.bufferFull);
    expect(await unlock(host)).toEqual({ status: 0 });
    const endpoint = endpointOf(host, LOCK);
    await gateway.set(LOCK, { faults: { invalidValues: true } });
    expect(await endpoint.read('closuresDoorLock', ['lockState'])).toEqual({ lockState: Number.NaN });
    await gateway.set(LOCK, { faults: { invalidValues: null, oversizedStrings: 150 } });
    const lcu = { name: 'lcu', ID: 0x10, type: Zcl.DataType.CHAR_STR };
    const door = { name: 'door', ID: 0xfc11, manufacturerCode: 0x1234, attributes: { lcu } };
    const custom = { ...door, commands: {}, commandsResponse: {} };
    host.getDeviceByIeeeAddr(`0x${LOCK}`)?.addCustomCluster('door', custom as never);
    expect(await endpoint.read('door', [0x10], { manufacturerCode: 0x1234 })).toEqual({
      lcu: 'x'.repeat(150),
    });
    await gateway.set(LOCK, { faults: { bogusEndpoints: [9], foreignClusters: [0x0500] } });
    const device = host.getDeviceByIeeeAddr(`0x${LOCK}`);
    await device?.interview(true).catch(() => undefined);
    expect(device?.endpoints.map(({ ID }) => ID)).toEqual([1, 9]);
    expect(endpoint.inputClusters).toContain(0x0500);
  },
  HOST_TIMEOUT_MS,
);

it(
  'keeps a frame for a lock that sleeps, and no longer than a parent does',
  async () => {
    const { gateway, host } = await opened(
      {
        locks: [{ ieee: LOCK, boltMs: 0, parent: ROUTER, sleepy: { pollMs: 200 }, checkInSeconds: 3_600 }],
        routers: [{ ieee: ROUTER }],
      },
      [ROUTER, LOCK],
    );
    const [target] = coordinatorOf(host).endpoints;
    if (!target) throw new Error('no endpoint');
    await endpointOf(host, LOCK).bind('genPollCtrl', target);
    expect(await unlock(host)).toEqual({ status: 0 });
    // Two hops away, the coordinator knows only that the router has it: nothing comes, but it is confirmed.
    const asleep = async (refusal: RegExp, timeout: number) => {
      let done = 0;
      const outcome = async () => {
        const answer = await unlock(host, { timeout }).catch((error: Error) => error.message);
        if (typeof answer === 'object') done += 1;
        return String(answer);
      };
      // A lock is awake for a while after it spoke.
      await expect.poll(outcome, { interval: 700, timeout: 20_000 }).toMatch(refusal);
      return done;
    };
    await gateway.set(LOCK, { sleepy: { pollMs: 600_000 }, clearLog: true });
    const first = await asleep(MAKE.says.unanswered, 1_000);
    await gateway.set(LOCK, { parent: null });
    const second = await asleep(MAKE.says.unfetched, 9_000);
    expect(await unlocks(gateway)).toBe(first + second);
    expect((await gateway.stats()).air.expired).toBeGreaterThanOrEqual(2);
  },
  HOST_TIMEOUT_MS,
);

it(
  'fails as sticks do: cut off, and unplugged',
  async () => {
    const { gateway, host } = await opened({ locks: [{ ieee: LOCK, boltMs: 0 }] });
    let lost = 0;
    host.on('adapterDisconnected', () => {
      lost += 1;
    });
    await gateway.drop();
    await expect.poll(() => lost).toBe(1);
    await host.stop();
    await gateway.hangUp();
    const folder = temporaryFolder();
    await expect(openHost({ port: gateway.port, folder }).start()).rejects.toThrow(MAKE.says.unplugged);
    await gateway.replug();
    expect((await gateway.stats()).stick).toMatchObject({ isSilent: false });
  },
  HOST_TIMEOUT_MS,
);

it('carries a hundred locks that all speak at once', async () => {
  const ieees = [...Array(100).keys()].map((index) => `00158d00020000${index.toString(16).padStart(2, '0')}`);
  // Half of them are more than a coordinator has room for, and 20 are what a router has.
  const routers = ['00158d00010000a1', '00158d00010000a2', '00158d00010000a3', '00158d00010000a4'];
  const { gateway, host } = await opened(
    { locks: ieees.map((ieee) => ({ ieee })), routers: routers.map((ieee) => ({ ieee })) },
    routers,
  );
  await host.permitJoin(254);
  await Promise.all(ieees.map((ieee) => gateway.join(ieee)));
  const isDone = (ieee: string) => host.getDeviceByIeeeAddr(`0x${ieee}`)?.interviewState === 'SUCCESSFUL';
  // All of them are asked at the same time, some dozen questions each, and none is done long before the last.
  await expect.poll(() => ieees.filter(isDone).length, { timeout: 90_000 }).toBe(100);
  const reads = await Promise.all(
    ieees.map((ieee) => endpointOf(host, ieee).read('closuresDoorLock', ['lockState'])),
  );
  expect(reads).toEqual(ieees.map(() => ({ lockState: 1 })));
  expect((await gateway.stats()).stick.frames).toMatchObject({ bad: 0, unknown: 0 });
}, 120_000);
