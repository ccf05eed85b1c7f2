/** Replies that come late are no evidence of anybody else: devices slower than the limit, and a link that holds back. */
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../test/drivers/bus/port.ts';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { type OsdpDevice, openOsdpDevice } from '../../test/simulators/osdp/device.ts';

const NAME = (serial: number) => `0a4748-1-${serial}`;
/** SIA OSDP 2.2, 5.7: the longest that a device takes to begin its reply. */
const LIMIT_MS = 200;

type Delay = (address: number, now: number) => number;

/** Two devices with a key, each as late as `delay` says; as on a wire, each reply comes once, in order. */
async function openTwo(delay: Delay, more: { isKeyed?: boolean } = {}) {
  const { isKeyed = true } = more;
  const devices = [0, 1].map((address) =>
    openOsdpDevice({ address, serial: address + 1, random: testRandom(), ...(isKeyed && { key: KEY }) }),
  );
  const freeAt = [0, 0];
  const answer = (request: Uint8Array, now: number): Answer => {
    for (const [address, device] of devices.entries()) {
      const bytes = device.answer(request, now);
      if (!bytes) continue;
      // A device answers one request after the other.
      const repliesAt = Math.max(now, freeAt[address] ?? 0) + delay(address, now);
      freeAt[address] = repliesAt;
      return { bytes, turnaroundMs: repliesAt - now };
    }
    return null;
  };
  const link = await openWireLink({ answer });
  const keys = devices.map((_, address) => ({ address, key: KEY }));
  const named = devices.map((_, address) => ({ address, hwId: NAME(address + 1) }));
  await link.watch(isKeyed ? keys : [], named);
  return { link, devices: devices as [OsdpDevice, OsdpDevice] };
}

const alarms = ({ events }: Awaited<ReturnType<typeof openWireLink>>) =>
  events.filter(({ kind }) => kind === 'alarm').map(({ data }) => data);

describe('no alarm is raised', () => {
  it.each([220, 260, 300, 420, 500])(
    'about a device that takes %i ms, nor about its neighbour',
    async (ms) => {
      const { link } = await openTwo((address) => (address === 1 ? ms : 2));
      await link.connected(NAME(1));
      await link.clock.advance(120_000);
      expect(alarms(link)).toEqual([]);
      expect(link.report(NAME(1))).toMatchObject({ connected: true, sessionFault: null });
    },
  );

  it.each([220, 300, 500])('when each fifth reply of a device takes %i ms', async (ms) => {
    let replies = 0;
    const { link } = await openTwo((address) => {
      if (address === 0) return 2;
      replies += 1;
      return replies % 5 === 0 ? ms : 2;
    });
    await link.clock.advance(120_000);
    expect(alarms(link)).toEqual([]);
    expect(link.report(NAME(2))).toMatchObject({ connected: true, sessionFault: null });
  });

  it.each([400, 900, 1_400])(
    'when a device server holds all back for %i ms, again and again',
    async (held) => {
      const { link } = await openTwo((_, now) => {
        const since = now % 5_000;
        return since < held ? held - since : 2;
      });
      await link.clock.advance(120_000);
      expect(alarms(link)).toEqual([]);
      for (const serial of [1, 2]) expect(link.report(NAME(serial))).toMatchObject({ sessionFault: null });
    },
  );

  it('about devices without a key that take longer than they may', async () => {
    const { link } = await openTwo(() => LIMIT_MS + 60, { isKeyed: false });
    await link.clock.advance(120_000);
    expect(alarms(link)).toEqual([]);
  });
});

it('is raised about a reply in another name that no request explains', async () => {
  const { link, devices } = await openTwo(() => 2);
  await link.connected(NAME(1));
  await link.connected(NAME(2));
  devices[0].break('foreignAddress', 30);
  await link.until(() => alarms(link).length > 0);
  expect(alarms(link)).toMatchObject([{ alarm: 'duplicateAddress', hwId: NAME(1) }]);
});
