/** A stick forms, resumes and is replaced: with zigbee-herdsman as the host. */
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../temporary.ts';
import { EXTENDED_PAN_ID, HOST_TIMEOUT_MS, openHost, openStick, PAN_ID } from './herdsman.ts';
import { MAKE } from './make.ts';

const LOCK = '00158d0001000001';

it(
  'forms a network for a host, and resumes it',
  async () => {
    const gateway = await openStick();
    const folder = temporaryFolder();
    const host = openHost({ port: gateway.port, folder });
    expect(await host.start()).toBe('reset');
    const id = Buffer.from(EXTENDED_PAN_ID);
    const extended = (MAKE.turnsExtendedPanId ? id.reverse() : id).toString('hex');
    expect((await gateway.stats()).stick).toMatchObject({
      isStarted: true,
      panId: PAN_ID,
      channel: 15,
      extendedPanId: extended,
      frames: { bad: 0, unknown: 0 },
    });
    await host.stop();
    const again = openHost({ port: gateway.port, folder });
    expect(await again.start()).toBe('resumed');
    expect(await again.getNetworkParameters()).toMatchObject({ panID: PAN_ID, channel: 15 });
    await again.stop();
    // A stick that has been without power starts the network that is in its memory.
    await gateway.selfReset();
    expect((await gateway.stats()).stick.isStarted).toBe(false);
    expect(await openHost({ port: gateway.port, folder }).start()).toBe('resumed');
    expect((await gateway.stats()).stick).toMatchObject({ isStarted: true, panId: PAN_ID });
  },
  HOST_TIMEOUT_MS,
);

it(
  'takes the backup of another stick, its locks too',
  async () => {
    const gateway = await openStick({ transport: 'pty', locks: [{ ieee: LOCK }] });
    const folder = temporaryFolder();
    const host = openHost({ port: gateway.port, folder });
    await host.start();
    await host.permitJoin(60);
    expect(await gateway.join(LOCK)).toBe('joined');
    await expect.poll(() => host.getDeviceByIeeeAddr(`0x${LOCK}`)?.interviewState).toBe('SUCCESSFUL');
    await host.stop();
    await gateway.setGateway({ newStick: { ieee: '00124b0014d9ffff' } });
    expect((await gateway.state(LOCK)).isReachable).toBe(false);
    const again = openHost({ port: gateway.port, folder });
    expect(await again.start()).toBe('restored');
    const ieee = MAKE.libraryRestoresIeee ? '00124b0014d9a001' : '00124b0014d9ffff';
    expect((await gateway.stats()).stick).toMatchObject({ ieee, panId: PAN_ID });
    expect((await gateway.state(LOCK)).isReachable).toBe(true);
    // EmberZNet does not know its child.
    await gateway.set(LOCK, { rejoin: true });
    await again.getDeviceByIeeeAddr(`0x${LOCK}`)?.getEndpoint(1)?.read('genBasic', ['modelId']);
  },
  HOST_TIMEOUT_MS,
);

it(
  'is ignored by its network when its frame counter is behind, although every frame is acknowledged',
  async () => {
    const gateway = await openStick({ transport: 'pty', locks: [{ ieee: LOCK }] });
    const folder = temporaryFolder();
    const host = openHost({ port: gateway.port, folder });
    await host.start();
    await host.permitJoin(60);
    expect(await gateway.join(LOCK)).toBe('joined');
    await expect.poll(() => host.getDeviceByIeeeAddr(`0x${LOCK}`)?.interviewState).toBe('SUCCESSFUL');
    await host.stop();
    // More than a host and a stick skip when they restore.
    await gateway.setGateway({ frames: 5_000 });
    await gateway.setGateway({ newStick: { ieee: '00124b0014d9ffff' } });
    const again = openHost({ port: gateway.port, folder });
    expect(await again.start()).toBe('restored');
    await gateway.set(LOCK, { rejoin: true });
    const read = (timeout: number) =>
      again
        .getDeviceByIeeeAddr(`0x${LOCK}`)
        ?.getEndpoint(1)
        ?.read('genBasic', ['modelId'], { disableRecovery: true, sendPolicy: 'immediate', timeout });
    await expect(read(300)).rejects.toThrow(MAKE.says.unanswered);
    expect((await gateway.state(LOCK)).isReachable).toBe(true);
    await gateway.setGateway({ frames: 5_000 });
    expect(await read(5_000)).toEqual({ modelId: 'GH-Lock' });
  },
  HOST_TIMEOUT_MS,
);
