/** One device whose replies come after their time is not taken for two. */

import { expect, it } from 'vitest';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';
import { busReport } from '../contract/rs485.ts';

const ADDRESSES = [0, 1, 2];
const LATE = 1;
const [LEAST_MS, MOST_MS] = [225, 450];
const TWO_DEVICES = /two devices/;

/** `keys`: the devices have one, and sessions. Resolves with the warnings of two minutes in which one device is late. */
async function warningsWhileLate(share: number, keys: boolean): Promise<string[]> {
  const random = testRandom();
  const secured = keys ? { key: KEY, requiresSecurity: true } : {};
  const devices = ADDRESSES.map((address) =>
    openOsdpDevice({ address, serial: 1 + address, random, ...secured }),
  );
  let isLate = false;
  const link = await openWireLink({
    answer(request, now) {
      const replies = devices.map((device) => device.answer(request, now));
      const at = replies.findIndex((reply) => reply !== undefined);
      const bytes = replies[at];
      if (!bytes) return null;
      const isSlow = at === LATE && isLate && random() < share;
      return { bytes, turnaroundMs: isSlow ? LEAST_MS + random() * (MOST_MS - LEAST_MS) : 1 };
    },
    devices: ADDRESSES.map((address) => ({ address })),
  });
  await link.watch(keys ? ADDRESSES.map((address) => ({ address, key: KEY })) : []);
  await link.clock.advance(5_000);
  isLate = true;
  const seen = new Set<string>();
  for (let second = 0; second < 120; second += 1) {
    await link.clock.advance(1_000);
    for (const warning of messagesOf(busReport.parse(link.bus()))) seen.add(warning);
  }
  const [, late] = busReport.parse(link.bus()).devices;
  expect(late?.counters.timeouts).toBeGreaterThan(0);
  return [...seen];
}

it.each([0.8, 1])('with a session, when %d of its replies are late', async (share) => {
  expect((await warningsWhileLate(share, true)).filter((warning) => TWO_DEVICES.test(warning))).toEqual([]);
});

it('without a key', async () => {
  expect((await warningsWhileLate(1, false)).filter((warning) => TWO_DEVICES.test(warning))).toEqual([]);
});
