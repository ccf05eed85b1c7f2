/** A list of the daemon comes at any moment: in the midst of a first reading, of a pairing, of another address. */
import { describe, expect, it } from 'vitest';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';

const ADDRESS = 3;
const HW_ID = '0a4748-1-1';
/** From the first ID to the first POLL. */
const EXCHANGES = 14;
const moments = Array.from({ length: EXCHANGES }, (_, index) => index + 1);
const keys = [{ address: ADDRESS, key: KEY }];

/** `at`: called with the reply to that request, when the driver has it and has not looked at it. */
async function openKeyed(at: number, call: () => void) {
  const device = openOsdpDevice({ address: ADDRESS, serial: 1, key: KEY, random: testRandom() });
  let requests = 0;
  const link = await openWireLink({
    answer(request, now) {
      requests += 1;
      const reply = device.answer(request, now) ?? null;
      if (requests !== at || !reply) return reply;
      void link.clock.sleep(10).then(() => {
        link.port.deliver(reply);
        call();
      });
      return null;
    },
  });
  await link.watch(keys, [{ address: ADDRESS, hwId: HW_ID }]);
  return { link, device, requests: () => requests };
}

describe('a list without a device', () => {
  it.each(moments)('leaves it alone, whatever is read of it: at exchange %i', async (at) => {
    let reported = 0;
    const { link, requests } = await openKeyed(at, () => {
      void link.watch([]);
      reported = link.history.length;
    });
    await link.until(() => requests() >= at);
    await link.clock.advance(2_000);
    expect(link.history.slice(reported).filter(({ connected }) => connected)).toEqual([]);
    expect(requests()).toBe(at);
  });
});

describe('a list without the key of a device', () => {
  it.each(moments)('ends what was read under it: at exchange %i', async (at) => {
    let reported = 0;
    const { link, requests } = await openKeyed(at, () => {
      void link.watch([], [{ address: ADDRESS, hwId: HW_ID }]);
      reported = link.history.length;
    });
    await link.until(() => requests() >= at);
    await link.clock.advance(2_000);
    expect(link.history.slice(reported).filter(({ connected }) => connected)).toEqual([]);
  });
});
