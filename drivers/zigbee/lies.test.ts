/** Locks and coordinators that say what is not so. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { CONFIRMED, joined, LOCK, opened, simulated, unlockOf } from '../../test/drivers/zigbee/gateway.ts';
import { openWire } from '../../test/drivers/zigbee/wire.ts';
import type { LockChange } from '../../test/simulators/zigbee/plan.ts';
import { shortenTimeouts } from '../../test/simulators/zigbee/short-pauses.ts';
import { lockReport } from '../contract/settings.ts';

const DOOR_LOCK = 0x0101;

it('reports no door as unlocked because of a report that is not of its lock, or not of its state', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const gateway = await opened(site);
  await joined(gateway, site);
  const { nwk } = await site.state(LOCK);
  const say = (hex: string, message: { cluster?: number; endpoint?: number; from?: number } = {}) => {
    const { cluster = DOOR_LOCK, endpoint: sourceEndpoint = 1, from: source = nwk } = message;
    return site.setGateway({ forged: { source, cluster, sourceEndpoint, data: hex.replaceAll(' ', '') } });
  };
  /** It only says that it understood, and of its bolt what the faults say. Once the driver has its answer. */
  const unlocked = async (faults: LockChange['faults']) => {
    await site.set(LOCK, { faults: { stuck: true, ...faults }, clearLog: true });
    const answer = gateway.execute('unlock', unlockOf(LOCK));
    await expect.poll(async () => (await site.state(LOCK)).received.length).toBeGreaterThan(0);
    return { answer };
  };
  const report = '18010a 0000 30 02';
  const event = '190120 01 02 ffff 00 00000000 00';
  const lying = await unlocked({ invalidValues: true });
  // Other makers' codes.
  await say('1c785601 0a 0000 30 02');
  await say('1c341201 0a 0000 30 02');
  await say('1d78560120 01 02 ffff 00 00000000 00');
  // Other types: uint8, text, single, enum16, boolean.
  for (const value of ['20 02', '42 0132', '39 00000040', '31 0200', '10 01'])
    await say(`18010a 0000 ${value}`);
  // Other sides, endpoints, clusters and devices; unknown, out of range, cut short, refused.
  await say('10010a 0000 30 02');
  await say('110120 01 02 ffff 00 00000000 00');
  await say(report, { endpoint: 9 });
  await say(event, { endpoint: 9 });
  await say(report, { cluster: 0xfc99 });
  await say(report, { cluster: 0x0006 });
  await say(report, { from: (nwk + 1) % 0xff_f0 });
  for (const value of ['ff', '03', '01', '']) await say(`18010a 0000 30 ${value}`);
  await say('180101 0000 86');
  await say('190120 01 02');
  await say('190120 02 02 ffff 00 00000000 00');
  // Oversized and endless.
  await say(`18010a 0000 42 fe${'41'.repeat(40)}`);
  await say('18010a 0000 48 42 ffff');
  expect(await lying.answer).toEqual({ ...CONFIRMED, outcome: 'accepted' });
  lockReport.parse(gateway.reports.get(`device:${LOCK}`));
  const honest = await unlocked({ invalidValues: null, misreports: 2 });
  await say(report);
  expect(await honest.answer).toEqual(CONFIRMED);
});

/** The start has a second. */
const hurried = {
  ...systemClock,
  sleep: (milliseconds: number, signal?: AbortSignal) =>
    systemClock.sleep(milliseconds === 60_000 ? 1_000 : milliseconds, signal),
};

it.each([60, 600])(
  'gives up on a coordinator that hangs after %i bytes, and starts it again',
  async (bytes) => {
    const site = await simulated({});
    const wire = await openWire(site.port);
    wire.bytesLeft = bytes;
    shortenTimeouts(0.5);
    await expect(opened(wire, {}, { clock: hurried })).rejects.toMatchObject({
      code: 'LINK_LOST',
      message: expect.stringContaining('did not start within'),
    });
    wire.bytesLeft = Number.POSITIVE_INFINITY;
    shortenTimeouts(1);
    const again = await opened(wire);
    expect(again.reports.get('gateway')).toMatchObject({ connected: true });
    for (const channel of [10, 27, Number.NaN])
      await expect(again.execute('moveChannel', { channel })).rejects.toMatchObject({
        code: 'INVALID_COMMAND',
      });
  },
);

it.each([[[10]], [[27]], [[]]])('does not start on the channels %j', async (allowedChannels) => {
  await expect(opened({ port: 'tcp://127.0.0.1:1' }, { allowedChannels })).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
  });
});
