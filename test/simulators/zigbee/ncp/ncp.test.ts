/** An EmberZNet co-processor forms, resumes, is replaced, and lets locks in: with zigbee-herdsman, unmodified, as the host. */
import { expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../../../temporary.ts';
import { openSimulatedGateway, type SimulatedGateway } from '../gateway.ts';
import {
  coordinatorOf,
  EXTENDED_PAN_ID,
  endpointOf,
  HOST_TIMEOUT_MS,
  openHost,
  openHostWith,
  PAN_ID,
} from '../herdsman.ts';
import type { GatewayPlan } from '../plan.ts';
import { EZSP_VERSIONS } from './releases.ts';

const LOCK = '00158d0001000001';
const NO_PIN = Buffer.alloc(0);
const ROUTER = '00158d00010000aa';
const INSTALL_CODE = '83fed3407a939723a5c639b26916d505c3b5';

async function opened(plan: GatewayPlan = {}): Promise<SimulatedGateway> {
  const gateway = await openSimulatedGateway({ adapter: 'ember', ...plan });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

it.each(EZSP_VERSIONS.map((ezspVersion) => ({ ezspVersion })))(
  'forms a network for a host of EZSP $ezspVersion, and resumes it',
  async ({ ezspVersion }) => {
    const gateway = await opened({ ezspVersion });
    const folder = temporaryFolder();
    const host = openHost({ port: gateway.port, folder, adapter: 'ember' });
    expect(await host.start()).toBe('reset');
    expect((await gateway.stats()).stick).toMatchObject({
      isStarted: true,
      panId: PAN_ID,
      channel: 15,
      extendedPanId: Buffer.from(EXTENDED_PAN_ID).toString('hex'),
      frames: { bad: 0, unknown: 0 },
    });
    await host.stop();
    const again = openHost({ port: gateway.port, folder, adapter: 'ember' });
    expect(await again.start()).toBe('resumed');
    expect(await again.getNetworkParameters()).toMatchObject({ panID: PAN_ID, channel: 15 });
    await again.stop();
    await gateway.selfReset();
    expect((await gateway.stats()).stick.isStarted).toBe(false);
    expect(await openHost({ port: gateway.port, folder, adapter: 'ember' }).start()).toBe('resumed');
    expect((await gateway.stats()).stick).toMatchObject({ isStarted: true, panId: PAN_ID });
  },
  HOST_TIMEOUT_MS,
);

it.each(EZSP_VERSIONS.map((ezspVersion) => ({ ezspVersion })))(
  'lets a lock in and carries its frames, EZSP $ezspVersion, over a pty',
  async ({ ezspVersion }) => {
    const gateway = await opened({
      ezspVersion,
      transport: 'pty',
      locks: [{ ieee: LOCK, installCode: INSTALL_CODE, sleepy: {} }],
      routers: [{ ieee: ROUTER }],
    });
    const host = await openHostWith(gateway, [ROUTER], { adapter: 'ember' });
    expect(await gateway.join(LOCK)).toBe('keyMismatch');
    await host.addInstallCode(`${LOCK}|${INSTALL_CODE}`);
    expect(await gateway.join(LOCK)).toBe('joined');
    await expect.poll(() => host.getDeviceByIeeeAddr(`0x${LOCK}`)?.interviewState).toBe('SUCCESSFUL');
    expect(await endpointOf(host, LOCK).read('closuresDoorLock', ['lockState'])).toEqual({ lockState: 1 });
    await endpointOf(host, LOCK).command('closuresDoorLock', 'unlockDoor', { pincodevalue: NO_PIN });
    await expect.poll(async () => (await gateway.state(LOCK)).executed).toMatchObject([{ what: 'unlock' }]);
    const neighbours = await coordinatorOf(host).lqi();
    expect(neighbours.map(({ eui64 }) => eui64).toSorted()).toEqual([`0x${LOCK}`, `0x${ROUTER}`].toSorted());
    await host.permitJoin(0);
    expect((await gateway.stats()).stick).toMatchObject({
      permitJoinMs: 0,
      installCodes: [],
      children: [LOCK],
    });
    expect(await gateway.join(LOCK)).toBe('closed');
  },
  HOST_TIMEOUT_MS,
);

it(
  'takes the backup of another stick, with the frame counter beyond it, and changes its channel',
  async () => {
    const gateway = await opened({ locks: [{ ieee: LOCK }] });
    const folder = temporaryFolder();
    const host = openHost({ port: gateway.port, folder, adapter: 'ember' });
    await host.start();
    await host.permitJoin(60);
    expect(await gateway.join(LOCK)).toBe('joined');
    await expect.poll(() => host.getDeviceByIeeeAddr(`0x${LOCK}`)?.interviewState).toBe('SUCCESSFUL');
    const { frameCounter } = (await gateway.stats()).stick;
    await host.backup();
    await host.stop();
    await gateway.setGateway({ newStick: { ieee: '00124b0014d9ffff' } });
    const again = openHost({ port: gateway.port, folder, adapter: 'ember' });
    expect(await again.start()).toBe('restored');
    expect((await gateway.stats()).stick.frameCounter).toBeGreaterThanOrEqual(frameCounter);
    await again.stop();
    const moved = openHost({ port: gateway.port, folder, adapter: 'ember', channel: 20 });
    expect(await moved.start()).toBe('resumed');
    expect((await gateway.stats()).stick).toMatchObject({ channel: 20 });
    expect((await gateway.state(LOCK)).isReachable).toBe(true);
  },
  HOST_TIMEOUT_MS,
);

it(
  'goes on over a line that loses and damages frames, and says when it has no room',
  async () => {
    const gateway = await opened({ locks: [{ ieee: LOCK }] });
    const host = await openHostWith(gateway, [LOCK], { adapter: 'ember' });
    const read = () => endpointOf(host, LOCK).read('closuresDoorLock', ['lockState']);
    await gateway.setGateway({ ash: { damaged: 1 } });
    expect(await read()).toEqual({ lockState: 1 });
    await gateway.setGateway({ ash: { nak: 1 } });
    expect(await read()).toEqual({ lockState: 1 });
    await gateway.fill(1);
    await expect(
      endpointOf(host, LOCK).command(
        'closuresDoorLock',
        'unlockDoor',
        { pincodevalue: NO_PIN },
        { disableRecovery: true },
      ),
    ).rejects.toThrow('ZIGBEE_MAX_MESSAGE_LIMIT_REACHED');
    expect((await gateway.state(LOCK)).executed).toEqual([]);
    await gateway.selfReset();
    await expect.poll(() => host.isAdapterDisconnected()).toBe(true);
  },
  HOST_TIMEOUT_MS,
);
