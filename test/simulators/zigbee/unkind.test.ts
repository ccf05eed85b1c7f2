/** What locks and radios do to a host that trusts them, with zigbee-herdsman as the host. */
import { expect, it, onTestFinished } from 'vitest';
import { openSimulatedGateway, type SimulatedGateway } from './gateway.ts';
import {
  coordinatorOf,
  endpointOf,
  HOST_TIMEOUT_MS,
  type Host,
  listen,
  openHostWith,
  within,
} from './herdsman.ts';
import type { GatewayPlan } from './plan.ts';

const LOCK = '00158d0001000001';

async function opened(plan: GatewayPlan, nodes = [LOCK]): Promise<{ gateway: SimulatedGateway; host: Host }> {
  const gateway = await openSimulatedGateway(plan);
  onTestFinished(() => gateway[Symbol.asyncDispose]());
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
    await within(() => transactions.length).toBe(2);
    expect(transactions[0]).toBe(transactions[1]);
    await gateway.set(LOCK, { manual: 'lock' });
    await within(() => transactions.length).toBe(3);
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
    await within(names).toContain('commandOperationEventNotification');
    expect(names().filter((name) => name.startsWith('command'))).toEqual([
      'commandOperationEventNotification',
    ]);
    await endpointOf(host, LOCK).write('closuresDoorLock', { alarmMask: 1 << 6 });
    await gateway.set(LOCK, { door: 'forcedOpen' });
    await within(names).toContain('commandAlarm');
  },
  HOST_TIMEOUT_MS,
);
