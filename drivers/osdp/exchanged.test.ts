/** Another device at the address of one: what was meant for the one does not reach the other. */
import { describe, expect, it } from 'vitest';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { type OsdpDevice, openOsdpDevice } from '../../test/simulators/osdp/device.ts';
import { PINS } from '../contract/settings.ts';

const ADDRESS = 0;
const NAME = (serial: number) => `0a4748-1-${serial}`;
const OUT = 0x68;
const SOM = 0x53;
const FILETRANSFER = 0x7c;
const MFG = 0x80;
/** drivers/osdp/README.md. */
const WRITE_SETTINGS = 3;
const SETTINGS = {
  ioPins: Object.fromEntries(PINS.map((pin) => [pin, true])),
  relayIndex: 2,
  unlockDurationMilliseconds: 7_000,
  useInputPinMemory: false,
};

/** Two devices in clear text, of which the first one is connected. */
async function openTwo(more: { isLenient?: boolean } = {}) {
  const random = testRandom();
  const [first, second] = [1, 2].map((serial) =>
    openOsdpDevice({ address: ADDRESS, serial, random, ...more }),
  ) as [OsdpDevice, OsdpDevice];
  let present: OsdpDevice | undefined = first;
  const link = await openWireLink({
    answer: (request, now) => present?.answer(request, now) ?? null,
    devices: [{ address: ADDRESS, secure: 'off' }],
  });
  await link.watch([]);
  await link.connected(NAME(1));
  const pulse = (milliseconds: number, more: { serial?: number; relay?: number } = {}) => {
    const { serial = 1, relay = 0 } = more;
    return link.execute('pulse', { hwId: NAME(serial), relay, milliseconds });
  };
  return {
    link,
    first,
    second,
    pulse,
    connect(device: OsdpDevice | undefined) {
      present = device;
    },
  };
}

const deeds = ({ peripheral }: OsdpDevice) => peripheral.deeds.filter(({ code }) => code === OUT);

it('gets no settings and no pulse that waited for the one before', async () => {
  const { link, second, pulse, connect } = await openTwo();
  connect(undefined);
  const waiting = [
    pulse(500),
    pulse(500, { relay: 1 }),
    link.execute('applySettings', { hwId: NAME(1), settings: SETTINGS, settingsVersion: 4 }),
  ];
  // Less than it takes to count as gone.
  await link.clock.advance(700);
  connect(second);
  const outcomes = await link.outcome(Promise.all(waiting));
  await link.connected(NAME(2));
  expect(deeds(second)).toEqual([]);
  expect(link.report(NAME(2))).toMatchObject({ reportedSettingsVersion: 0 });
  expect(outcomes).toEqual(['DEVICE_OFFLINE', 'DEVICE_OFFLINE', 'DEVICE_OFFLINE']);
});

it('gets no pulse where the two changed places without a missed reply', async () => {
  // It takes any number (SQN), as one may that counts as the first one does.
  const { link, first, second, pulse, connect } = await openTwo({ isLenient: true });
  connect(second);
  expect(await link.outcome(pulse(500))).toBe('DEVICE_OFFLINE');
  expect([...deeds(first), ...deeds(second)]).toEqual([]);
});

it('gets no settings where the two changed places without a missed reply', async () => {
  const { link, second, connect } = await openTwo({ isLenient: true });
  connect(second);
  const settings = link.execute('applySettings', { hwId: NAME(1), settings: SETTINGS, settingsVersion: 4 });
  expect(await link.outcome(settings)).toBe('DEVICE_OFFLINE');
  await link.connected(NAME(2));
  expect(link.report(NAME(2))).toMatchObject({ reportedSettingsVersion: 0 });
});

it('has refused settings as the two changed places: they are not refused for good', async () => {
  const { link, first, connect } = await openTwo({ isLenient: true });
  const second = openOsdpDevice({
    address: ADDRESS,
    serial: 2,
    vendorCode: 0x01_02_03,
    random: testRandom(),
    isLenient: true,
  });
  const isWrite = (request: Uint8Array) => {
    const code = request.indexOf(SOM) + 5;
    return request[code] === MFG && request[code + 4] === WRITE_SETTINGS;
  };
  connect({
    ...first,
    answer(request, now) {
      if (!isWrite(request)) return first.answer(request, now);
      connect(second);
      return second.answer(request, now);
    },
  });
  const settings = link.execute('applySettings', { hwId: NAME(1), settings: SETTINGS, settingsVersion: 4 });
  expect(await link.outcome(settings)).toBe('DEVICE_OFFLINE');
  expect(link.port.sent.filter(({ bytes }) => isWrite(bytes))).toHaveLength(1);
});

describe('where the two changed places without a missed reply', () => {
  const reader = { reader: 0, led: { led: 0, colour: 'amber', milliseconds: 1_500 } };
  const file = { type: 1, total: 20, offset: 0, data: new Uint8Array(20) };
  it.each([
    ['readdress', { address: ADDRESS, baudRate: 115_200 }, 'DEVICE_OFFLINE', 0x6e],
    ['showOnReader', reader, 'DEVICE_OFFLINE', 0x69],
    ['abortFile', {}, 'DEVICE_OFFLINE', 0xa2],
    ['sendFile', file, { stage: 'interrupted', offset: 0 }, FILETRANSFER],
  ] as const)('it gets no %s', async (kind, data, outcome, code) => {
    const { link, second, connect } = await openTwo({ isLenient: true });
    connect(second);
    const answer = await link.outcome(link.execute(kind, { hwId: NAME(1), ...data }));
    if (typeof outcome === 'string') expect(answer).toBe(outcome);
    else expect(answer).toMatchObject(outcome);
    await link.connected(NAME(2));
    expect(link.port.sent.filter(({ bytes }) => bytes[bytes.indexOf(SOM) + 5] === code)).toEqual([]);
  });
});

it('has pulses of its own', async () => {
  const { link, second, pulse, connect } = await openTwo();
  await link.outcome(pulse(60_000));
  connect(second);
  await link.connected(NAME(2));
  expect(link.report(NAME(2))?.pulse).toBeNull();
  expect(await link.outcome(pulse(3_000, { serial: 2 }))).toMatchObject({ milliseconds: 3_000 });
  expect(deeds(second).map(({ data }) => data)).toEqual(['00051e00']);
});

it('is connected though nothing but its name distinguishes it from the one before', async () => {
  const random = testRandom();
  const given = { address: ADDRESS, serial: 1, random, files: {} };
  const device = openOsdpDevice(given);
  const link = await openWireLink({
    answer(request, now) {
      // Asked who it is when it has the file: firmware may have another name.
      if (request[request.indexOf(SOM) + 5] === FILETRANSFER) given.serial = 2;
      return device.answer(request, now) ?? null;
    },
    devices: [{ address: ADDRESS, secure: 'off' }],
  });
  await link.watch([]);
  await link.connected(NAME(1));
  const file = { hwId: NAME(1), type: 1, total: 20, offset: 0, data: new Uint8Array(20) };
  expect(await link.outcome(link.execute('sendFile', file))).toMatchObject({ stage: 'done' });
  await link.connected(NAME(2));
});
