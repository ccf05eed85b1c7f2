/** Joining, moving and leaving, with zigbee-herdsman as the host. */
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../temporary.ts';
import {
  coordinatorOf,
  deviceOf,
  endpointOf,
  HOST_TIMEOUT_MS,
  listen,
  openHost,
  openHostWith,
  openStick,
} from './herdsman.ts';
import { MAKE } from './make.ts';

const LOCK = '00158d0001000001';
const OTHER = '00158d0001000002';
const ROUTER = '00158d00010000aa';

it(
  'lets nodes in while the network is open, with the key they expect, and unless the host minds',
  async () => {
    // The example of Base Device Behavior 3.0, 10.1.
    const installCode = '83fed3407a939723a5c639b26916d505c3b5';
    const unwanted = '00158d0001000003';
    const gateway = await openStick({
      locks: [{ ieee: LOCK }, { ieee: OTHER, installCode }, { ieee: unwanted }],
    });
    const folder = temporaryFolder();
    const host = openHost({ port: gateway.port, folder, accept: (ieee) => ieee !== unwanted });
    expect(await gateway.join(LOCK)).toBe('noNetwork');
    await host.start();
    const heard = listen(host);
    expect(await gateway.join(LOCK)).toBe('closed');
    await host.permitJoin(60);
    expect(await gateway.join(LOCK)).toBe('joined');
    await expect.poll(() => heard.map(({ name }) => name)).toContain('deviceInterview:successful');
    await gateway.set(LOCK, { announce: true });
    await expect.poll(() => heard.map(({ name }) => name)).toContain('deviceAnnounce');
    expect(await gateway.join(OTHER)).toBe('keyMismatch');
    await host.addInstallCode(`${OTHER}|${installCode}`);
    expect(await gateway.join(OTHER)).toBe('joined');
    await expect.poll(() => host.getDeviceByIeeeAddr(`0x${OTHER}`)?.modelID).toBe('GH-Lock');
    expect(await gateway.join(unwanted)).toBe('joined');
    await expect.poll(async () => (await gateway.state(unwanted)).isJoined).toBe(false);
    expect(host.getDeviceByIeeeAddr(`0x${unwanted}`)).toBe(undefined);
    await host.permitJoin(0);
    expect(await gateway.join(unwanted)).toBe('closed');
  },
  HOST_TIMEOUT_MS,
);

it(
  'describes nodes, lists the neighbours of each, and binds',
  async () => {
    const gateway = await openStick({
      lqiSpread: 0,
      locks: [
        { ieee: LOCK, lqi: 90, parent: ROUTER },
        { ieee: OTHER, lqi: 120 },
      ],
      routers: [{ ieee: ROUTER, lqi: 210 }],
    });
    const host = await openHostWith(gateway, [ROUTER, OTHER, LOCK]);
    expect(deviceOf(host, ROUTER)).toMatchObject({ type: 'Router', modelID: 'GH-Router' });
    expect(deviceOf(host, LOCK)).toMatchObject({
      type: 'EndDevice',
      manufacturerID: 0x1234,
      powerSource: 'Battery',
      softwareBuildID: '1.2.3',
      // Of the last hop, which is the router's.
      linkquality: 210,
    });
    expect(endpointOf(host, LOCK)).toMatchObject({
      profileID: 0x0104,
      deviceID: 0x000a,
      outputClusters: [0x19],
    });
    const table = await coordinatorOf(host).lqi();
    expect(table.map(({ eui64, relationship, lqi }) => [eui64.slice(2), relationship, lqi])).toEqual([
      [ROUTER, 2, 210],
      [OTHER, 1, 120],
    ]);
    const routers = await deviceOf(host, ROUTER).lqi();
    expect(routers.map(({ eui64, lqi }) => [eui64.slice(2), lqi])).toContainEqual([LOCK, 90]);
    expect(await coordinatorOf(host).routingTable()).toMatchObject([
      {
        destinationAddress: deviceOf(host, LOCK).networkAddress,
        nextHopAddress: deviceOf(host, ROUTER).networkAddress,
      },
    ]);
    const [target] = coordinatorOf(host).endpoints;
    if (!target) throw new Error('no endpoint');
    await endpointOf(host, LOCK).bind('closuresDoorLock', target);
    expect((await gateway.state(LOCK)).bindings).toMatchObject([{ cluster: 0x0101 }]);
    expect(await deviceOf(host, LOCK).bindingTable()).toHaveLength(1);
    await endpointOf(host, LOCK).unbind('closuresDoorLock', target);
    expect((await gateway.state(LOCK)).bindings).toEqual([]);
  },
  HOST_TIMEOUT_MS,
);

it(
  'moves to another address, and out',
  async () => {
    const gateway = await openStick({ locks: [{ ieee: LOCK }, { ieee: OTHER }] });
    const host = await openHostWith(gateway, [LOCK, OTHER]);
    const heard = listen(host);
    const before = deviceOf(host, LOCK).networkAddress;
    const { nwk } = await gateway.set(LOCK, { readdress: 'announced' });
    expect(nwk).not.toBe(before);
    await expect.poll(() => deviceOf(host, LOCK).networkAddress).toBe(nwk);
    await gateway.set(LOCK, { readdress: 'silently' });
    const read = endpointOf(host, LOCK).read('genBasic', ['modelId'], { disableRecovery: true });
    await expect(read).rejects.toThrow(MAKE.says.noRoute);
    await deviceOf(host, OTHER).removeFromNetwork();
    await expect.poll(async () => (await gateway.state(OTHER)).isJoined).toBe(false);
    await gateway.set(LOCK, { leave: true });
    await expect
      .poll(() => heard.filter(({ name }) => name === 'deviceLeave').map(({ ieee }) => ieee))
      .toContain(LOCK);
  },
  HOST_TIMEOUT_MS,
);

it(
  'follows to another channel, but for one that does not hear of it',
  async () => {
    const sleeper = '00158d0001000003';
    const gateway = await openStick({
      locks: [
        { ieee: LOCK },
        { ieee: OTHER, followsChannel: false },
        { ieee: sleeper, followsChannel: false, sleepy: {}, rejoinMs: 1_000 },
      ],
    });
    const folder = temporaryFolder();
    const host = await openHostWith(gateway, [LOCK, OTHER, sleeper], { folder });
    await host.stop();
    const again = openHost({ port: gateway.port, folder, channel: 20 });
    expect(await again.start()).toBe('resumed');
    expect((await gateway.stats()).stick).toMatchObject({ channel: 20, updateId: 1 });
    const reachable = async () => (await gateway.stats()).locks.map(({ isReachable }) => isReachable);
    expect((await reachable()).slice(0, 2)).toEqual([true, false]);
    // One that sleeps misses its parent after a while, and finds it by itself.
    await expect.poll(reachable).toEqual([true, false, true]);
    expect(await gateway.set(OTHER, { rejoin: true })).toMatchObject({ isReachable: true, channel: 20 });
  },
  HOST_TIMEOUT_MS,
);
