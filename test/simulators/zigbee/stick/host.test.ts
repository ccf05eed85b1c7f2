/** What only a stick with Z-Stack 3.x.0 does, with zigbee-herdsman as the host: EmberZNet sends away none that exchanges no key, and its host gives it up. */
import { expect, it } from 'vitest';
import { coordinatorOf, endpointOf, HOST_TIMEOUT_MS, listen, openHostWith, openStick } from '../herdsman.ts';

const LOCK = '00158d0001000001';
const OTHER = '00158d0001000002';

it(
  'sends a joiner away that does not exchange its link key in time',
  async () => {
    const plan = { requireKeyExchange: true, joinTimeoutMs: 1_500 };
    const locks = [{ ieee: LOCK }, { ieee: OTHER, keyExchange: false }];
    const gateway = await openStick({ ...plan, locks });
    const host = await openHostWith(gateway, [LOCK]);
    const heard = listen(host);
    await host.permitJoin(254);
    expect(await gateway.join(OTHER)).toBe('joined');
    await expect
      .poll(() => heard.filter(({ name }) => name === 'deviceLeave').map(({ ieee }) => ieee))
      .toEqual([OTHER]);
    expect((await gateway.stats()).locks.map(({ isJoined }) => isJoined)).toEqual([true, false]);
    expect(await endpointOf(host, LOCK).read('genBasic', ['modelId'])).toEqual({ modelId: 'GH-Lock' });
  },
  HOST_TIMEOUT_MS,
);

it(
  'goes on when it has been silent, and is on no network when it has reset itself',
  async () => {
    const gateway = await openStick({ locks: [{ ieee: LOCK }] });
    const host = await openHostWith(gateway, [LOCK]);
    await gateway.hang(true);
    await expect(coordinatorOf(host).lqi()).rejects.toThrow('6000ms');
    await gateway.hang(false);
    expect(await coordinatorOf(host).lqi()).toHaveLength(1);
    await gateway.selfReset();
    await expect(endpointOf(host, LOCK).read('genBasic', ['modelId'])).rejects.toThrow(/INVALID_PARAM/);
  },
  HOST_TIMEOUT_MS,
);
