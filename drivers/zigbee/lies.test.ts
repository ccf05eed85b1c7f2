/** Locks and coordinators that say what is not so. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import {
  CONFIRMED,
  folder,
  joined,
  LOCK,
  opened,
  simulated,
  unlockOf,
} from '../../test/drivers/zigbee/gateway.ts';
import { foreign, incoming, openWire } from '../../test/drivers/zigbee/wire.ts';
import { encodeMt, type MtFrame } from '../../test/simulators/zigbee/mt/frame.ts';
import { shortenTimeouts } from '../../test/simulators/zigbee/short-pauses.ts';
import { lockReport } from '../contract/settings.ts';

const DOOR_LOCK = 0x0101;
const isIncoming = ({ subsystem, id }: MtFrame) => subsystem === 4 && id === 0x81;
/** The Door Lock cluster's Unlock with Timeout Response: cluster-specific, from the server (ZCL rev. 8, 7.3.2.16). */
const isResponse = (frame: MtFrame) =>
  isIncoming(frame) && (frame.data[17] ?? 0) % 0x10 === 0x09 && frame.data[19] === 0x03;
/** Read Attributes Response, of one attribute: id, status, type, value (ZCL rev. 8, 2.5.2). */
const isReading = (frame: MtFrame) =>
  isIncoming(frame) && (frame.data[17] ?? 0) % 0x10 === 0x08 && frame.data[19] === 0x01;
/** UNSUPPORTED_ATTRIBUTE has neither type nor value. */
function withoutValue(data: Uint8Array): Buffer {
  const length = data[16] ?? 0;
  const zcl = Buffer.from([...data.subarray(17, 22), 0x86]);
  return Buffer.concat([data.subarray(0, 16), Buffer.of(zcl.length), zcl, data.subarray(17 + length)]);
}

it('reports no door as unlocked because of a report that is not of its lock, or not of its state', async () => {
  const site = await simulated({ locks: [{ ieee: LOCK }] });
  const wire = await openWire(site.port);
  const gateway = await opened(wire);
  await joined(gateway, site);
  const { nwk } = await site.state(LOCK);
  const say = (hex: string, message: { cluster?: number; endpoint?: number; from?: number } = {}) => {
    const { cluster = DOOR_LOCK, endpoint = 1, from = nwk } = message;
    const zcl = Buffer.from(hex.replaceAll(' ', ''), 'hex');
    return wire.inject(encodeMt(incoming({ nwk: from, cluster, endpoint }, zcl)));
  };
  let responses = 0;
  let hidesBolt = true;
  // Of the lock, only that it understood arrives; asked for the state of its bolt, it says that it has no such attribute.
  wire.tamper = (frame) => {
    if (isResponse(frame)) responses += 1;
    if (isReading(frame)) return hidesBolt ? { ...frame, data: withoutValue(frame.data) } : frame;
    return isIncoming(frame) && !isResponse(frame) ? undefined : frame;
  };
  /** Once the driver has its answer: after a start, what a lock shows before that counts for nothing. */
  const unlocked = async () => {
    const before = responses;
    const answer = gateway.execute('unlock', unlockOf(LOCK));
    await expect.poll(() => responses).toBe(before + 1);
    return { answer };
  };
  const report = '18010a 0000 30 02';
  const event = '190120 01 02 ffff 00 00000000 00';
  const lying = await unlocked();
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
  // Another PAN, without security, as the lock.
  for (const from of [{ nwk }, { ieee: LOCK }])
    for (const hex of [report, event]) {
      const zcl = Buffer.from(hex.replaceAll(' ', ''), 'hex');
      await wire.inject(encodeMt(foreign(from, DOOR_LOCK, zcl)));
    }
  for (const value of ['ff', '03', '01', '']) await say(`18010a 0000 30 ${value}`);
  await say('180101 0000 86');
  await say('190120 01 02');
  await say('190120 02 02 ffff 00 00000000 00');
  // Oversized and endless.
  await say(`18010a 0000 42 fe${'41'.repeat(40)}`);
  await say('18010a 0000 48 42 ffff');
  expect(await lying.answer).toEqual({ ...CONFIRMED, outcome: 'accepted' });
  lockReport.parse(gateway.reports.get(`device:${LOCK}`));
  hidesBolt = false;
  const honest = await unlocked();
  await say(report);
  expect(await honest.answer).toEqual(CONFIRMED);
});

/** The start has a second. */
const hurried = {
  ...systemClock,
  sleep: (milliseconds: number, signal?: AbortSignal) =>
    systemClock.sleep(milliseconds === 60_000 ? 1_000 : milliseconds, signal),
};

it.each([5, 30])(
  'gives up on a coordinator that hangs after %i answers, and starts it again',
  async (answers) => {
    const site = await simulated({});
    const wire = await openWire(site.port);
    let left = answers;
    wire.tamper = (frame) => {
      left -= 1;
      return left >= 0 ? frame : undefined;
    };
    shortenTimeouts(0.5);
    await expect(opened(wire, {}, { clock: hurried })).rejects.toMatchObject({
      code: 'LINK_LOST',
      message: expect.stringContaining('did not start within'),
    });
    wire.tamper = (frame) => frame;
    shortenTimeouts(1);
    const again = await opened(wire);
    expect(again.reports.get('gateway')).toMatchObject({ connected: true });
  },
);

it('uses no coordinator on a channel that does not exist, and keeps none', async () => {
  const site = await simulated({});
  const wire = await openWire(site.port);
  const stateDirectory = folder();
  // ZDO_EXT_NWK_INFO: the channel is the last byte (Z-Stack Monitor and Test API, 3.12.1.33).
  wire.tamper = (frame) => {
    const isInfo = frame.type === 'SRSP' && frame.subsystem === 5 && frame.id === 0x50;
    return isInfo ? { ...frame, data: Buffer.from([...frame.data.subarray(0, -1), 27]) } : frame;
  };
  await expect(opened(wire, { stateDirectory })).rejects.toMatchObject({
    code: 'LINK_LOST',
    message: expect.stringContaining('channel 27'),
  });
  wire.tamper = (frame) => frame;
  const gateway = await opened(wire, { stateDirectory });
  expect(gateway.reports.get('gateway')).toMatchObject({ zigbeeChannel: 15 });
  for (const channel of [10, 27, Number.NaN])
    await expect(gateway.execute('moveChannel', { channel })).rejects.toMatchObject({
      code: 'INVALID_COMMAND',
    });
});

it.each([[[10]], [[27]], [[]]])('does not start on the channels %j', async (allowedChannels) => {
  await expect(opened({ port: 'tcp://127.0.0.1:1' }, { allowedChannels })).rejects.toMatchObject({
    code: 'INVALID_OPTIONS',
  });
});
