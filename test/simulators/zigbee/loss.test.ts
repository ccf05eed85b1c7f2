/** The knobs of the air: what a frame takes, and how many arrive. */
import { expect, it } from 'vitest';
import { coordinatorOf, endpointOf, HOST_TIMEOUT_MS, listen, openHostWith, openStick } from './herdsman.ts';

const LOCK = '00158d0001000001';

it(
  'has air that takes its time and loses frames, and locks that check in',
  async () => {
    const gateway = await openStick({ locks: [{ ieee: LOCK, checkInSeconds: 3_600 }] });
    const host = await openHostWith(gateway, [LOCK]);
    const heard = listen(host);
    const endpoint = endpointOf(host, LOCK);
    const read = (timeout: number) =>
      endpoint.read('closuresDoorLock', ['lockState'], {
        disableRecovery: true,
        sendPolicy: 'immediate',
        timeout,
      });
    const took = async () => {
      const began = performance.now();
      await read(5_000);
      return performance.now() - began;
    };
    await gateway.setGateway({ airMs: 100 });
    // There and back; a timer may fire a millisecond early.
    expect(await took()).toBeGreaterThanOrEqual(198);
    await gateway.setGateway({ airMs: 0, lossRate: 1 });
    await expect(read(300)).rejects.toThrow(/NO_ACK|timed out|Timeout/i);
    await gateway.setGateway({ lossRate: 0 });
    expect(await read(5_000)).toEqual({ lockState: 1 });
    const [target] = coordinatorOf(host).endpoints;
    if (!target) throw new Error('no endpoint');
    await endpoint.bind('genPollCtrl', target);
    await gateway.set(LOCK, { checkIn: true });
    await expect.poll(() => heard.map(({ name }) => name)).toContain('commandCheckin');
  },
  HOST_TIMEOUT_MS,
);
