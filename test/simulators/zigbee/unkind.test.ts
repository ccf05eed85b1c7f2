/** What locks and radios do to a host that trusts them, with zigbee-herdsman as the host. */
import { expect, it } from 'vitest';
import type { SimulatedGateway } from './gateway.ts';
import {
  coordinatorOf,
  endpointOf,
  HOST_TIMEOUT_MS,
  type Host,
  listen,
  openHostWith,
  openStick,
} from './herdsman.ts';
import { MAKE } from './make.ts';
import type { GatewayPlan } from './plan.ts';

const LOCK = '00158d0001000001';
const OTHER = '00158d0001000002';
const ROUTER = '00158d00010000aa';

async function opened(plan: GatewayPlan, nodes = [LOCK]): Promise<{ gateway: SimulatedGateway; host: Host }> {
  const gateway = await openStick(plan);
  return { gateway, host: await openHostWith(gateway, nodes) };
}

async function bind(host: Host, cluster: string): Promise<void> {
  const [target] = coordinatorOf(host).endpoints;
  if (!target) throw new Error('no endpoint');
  await endpointOf(host, LOCK).bind(cluster, target);
}

it(
  'sends a frame twice with the same transaction',
  async () => {
    const { gateway, host } = await opened({ locks: [{ ieee: LOCK, eventMasks: 0xffff }] });
    await bind(host, 'closuresDoorLock');
    const transactions: number[] = [];
    host.on('message', ({ type, meta }) => {
      if (type === 'commandOperationEventNotification')
        transactions.push(meta.zclTransactionSequenceNumber ?? -1);
    });
    await gateway.set(LOCK, { faults: { duplicates: 1 }, manual: 'unlock' });
    await expect.poll(() => transactions.length).toBe(2);
    expect(transactions[0]).toBe(transactions[1]);
    await gateway.set(LOCK, { manual: 'lock' });
    await expect.poll(() => transactions.length).toBe(3);
  },
  HOST_TIMEOUT_MS,
);

it(
  'reports no event that its masks do not let through',
  async () => {
    const { gateway, host } = await opened({ locks: [{ ieee: LOCK, eventMasks: 0, boltMs: 0 }] });
    await bind(host, 'closuresDoorLock');
    await bind(host, 'genAlarms');
    const heard = listen(host);
    const names = () => heard.map(({ name }) => name);
    await gateway.set(LOCK, { manual: 'unlock', door: 'forcedOpen' });
    await endpointOf(host, LOCK).write('closuresDoorLock', { manualOperationEventMask: 0xffff });
    await gateway.set(LOCK, { manual: 'lock', door: 'closed' });
    await expect.poll(names).toContain('commandOperationEventNotification');
    expect(names().filter((name) => name.startsWith('command'))).toEqual([
      'commandOperationEventNotification',
    ]);
    await endpointOf(host, LOCK).write('closuresDoorLock', { alarmMask: 1 << 6 });
    await gateway.set(LOCK, { door: 'forcedOpen' });
    await expect.poll(names).toContain('commandAlarm');
  },
  HOST_TIMEOUT_MS,
);

it(
  'has room for so many children, and sends the next one to a router',
  async () => {
    const plan = { children: 1, locks: [{ ieee: LOCK }, { ieee: OTHER }], routers: [{ ieee: ROUTER }] };
    const { gateway, host } = await opened(plan);
    await host.permitJoin(254);
    expect(await gateway.join(OTHER)).toBe('full');
    expect(await gateway.join(ROUTER)).toBe('joined');
    expect(await gateway.join(OTHER)).toBe('full');
    await host.permitJoin(254);
    expect(await gateway.join(OTHER)).toBe('joined');
    expect(await gateway.state(OTHER)).toMatchObject({ parent: ROUTER });
    expect((await gateway.stats()).stick.children).toEqual([LOCK]);
    await expect.poll(() => host.getDeviceByIeeeAddr(`0x${OTHER}`)?.interviewState).toBe('SUCCESSFUL');
  },
  HOST_TIMEOUT_MS,
);

it(
  'hears some frames better than others of the same link',
  async () => {
    const { gateway, host } = await opened({ lqiSpread: 20, locks: [{ ieee: LOCK, lqi: 180 }] });
    const heard = new Set<number>();
    host.on('message', ({ linkquality }) => void heard.add(linkquality ?? -1));
    const endpoint = endpointOf(host, LOCK);
    for (let reading = 0; reading < 20; reading += 1) await endpoint.read('genBasic', ['modelId']);
    expect(heard.size).toBeGreaterThan(5);
    expect(Math.min(...heard)).toBeGreaterThanOrEqual(160);
    expect(Math.max(...heard)).toBeLessThanOrEqual(200);
    expect((await gateway.stats()).stick.frames.bad).toBe(0);
  },
  HOST_TIMEOUT_MS,
);

it(
  'sends an event once more that it asked a default response for, and got none',
  async () => {
    const lock = { ieee: LOCK, eventMasks: 0xffff, boltMs: 0, asksDefaultResponse: true };
    const { gateway, host } = await opened({ locks: [lock] });
    await bind(host, 'closuresDoorLock');
    const transactions: (number | undefined)[] = [];
    host.on('message', ({ type, meta }) => {
      if (type === 'commandOperationEventNotification') transactions.push(meta.zclTransactionSequenceNumber);
    });
    const confirmations = async () =>
      (await gateway.state(LOCK)).received
        .filter(({ isFoundation, command }) => isFoundation && command === 0x0b)
        .map(({ tsn, payload }) => [tsn, payload]);
    await gateway.set(LOCK, { manual: 'unlock' });
    // Command 0x20, SUCCESS.
    await expect.poll(async () => (await confirmations()).length).toBe(1);
    expect(await confirmations()).toEqual([[transactions[0], '2000']]);
    await gateway.set(LOCK, { faults: { lostRequests: 1 }, manual: 'lock' });
    await expect.poll(() => transactions.length).toBe(3);
    expect(transactions[2]).toBe(transactions[1]);
    // The host answers a transaction only once.
    expect(await confirmations()).toHaveLength(1);
  },
  HOST_TIMEOUT_MS,
);

it(
  'answers that it did what it did not do, and locks by itself before its time',
  async () => {
    const { gateway, host } = await opened({ locks: [{ ieee: LOCK, boltMs: 0 }] });
    const unlock = () =>
      endpointOf(host, LOCK).command('closuresDoorLock', 'unlockDoor', { pincodevalue: Buffer.alloc(0) });
    await gateway.set(LOCK, { faults: { stuck: true } });
    expect(await unlock()).toMatchObject({ status: 0 });
    expect((await gateway.state(LOCK)).executed).toEqual([]);
    await gateway.set(LOCK, { faults: { stuck: null, relocksMs: 1, misreports: 0 } });
    await unlock();
    await expect
      .poll(async () => (await gateway.state(LOCK)).executed)
      .toMatchObject([{ what: 'unlock' }, { what: 'autoRelock' }]);
    expect(await endpointOf(host, LOCK).read('closuresDoorLock', ['lockState'])).toEqual({ lockState: 0 });
  },
  HOST_TIMEOUT_MS,
);

it(
  'is heard late, once more, and in the name of another',
  async () => {
    const { gateway, host } = await opened({ locks: [{ ieee: LOCK, eventMasks: 0xffff }, { ieee: OTHER }] });
    await bind(host, 'closuresDoorLock');
    const heard: { ieee: string; tsn: number | undefined }[] = [];
    host.on('message', ({ type, device, meta }) => {
      const tsn = meta.zclTransactionSequenceNumber;
      if (type === 'commandOperationEventNotification') heard.push({ ieee: device.ieeeAddr.slice(2), tsn });
    });
    await gateway.set(LOCK, {
      faults: { lagMs: 30, replays: { frames: 20, afterMs: 60 } },
      manual: 'unlock',
    });
    await expect.poll(() => heard).toHaveLength(2);
    expect(heard[0]).toEqual(heard[1]);
    const { nwk } = await gateway.state(LOCK);
    const data = '0963200102ffff000000000000';
    await gateway.setGateway({ forged: { source: nwk, cluster: 0x0101, data } });
    await expect.poll(() => heard.at(-1)).toEqual({ ieee: LOCK, tsn: 0x63 });
    const joined: string[] = [];
    host.on('deviceJoined', ({ device }) => joined.push(device.ieeeAddr.slice(2)));
    await gateway.setGateway({ forgedJoin: { ieee: OTHER, nwk: 0x4242 } });
    await expect.poll(() => joined).toEqual([OTHER]);
  },
  HOST_TIMEOUT_MS,
);

it(
  'is handed no frame that its router has kept for as long as it keeps one',
  async () => {
    const plan = { routers: [{ ieee: ROUTER, holdMs: 1 }], locks: [{ ieee: LOCK }] };
    const { gateway, host } = await opened(plan, [ROUTER, LOCK]);
    await gateway.set(LOCK, { parent: ROUTER });
    await gateway.set(LOCK, { sleepy: { pollMs: 5_000, awakeMs: 0 } });
    const read = () => endpointOf(host, LOCK).read('genBasic', ['zclVersion'], { timeout: 6_000 });
    await expect(read()).rejects.toThrow(MAKE.says.unanswered);
    expect((await gateway.stats()).air.expired).toBeGreaterThan(0);
  },
  HOST_TIMEOUT_MS,
);
