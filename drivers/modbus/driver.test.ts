/** The driver against simulated devices, on a manual clock: who is where, and what is refused. */

import { describe, expect, it } from 'vitest';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import {
  io,
  openOne,
  openTestLink,
  profileNamed,
  settingsWith,
  station,
  type TestDevice,
} from '../../test/drivers/modbus/link.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';
import type { Plain } from '../contract/driver.ts';
import { probed } from '../contract/rs485.ts';
import { PINS, rs485Report } from '../contract/settings.ts';
import { DRIVERS } from '../index.ts';
import { openModbus } from './driver.ts';
import { crc16 } from './frame.ts';

const IO = profileNamed('gatehouse-io');
const pulse = (more: object = {}) => ({ hwId: 'GIO-0001', relay: 2, milliseconds: 3_000, ...more });

describe('a Gatehouse I/O controller', () => {
  it('is in the table of drivers', async () => {
    expect(await DRIVERS.get('modbus')?.()).toBe(openModbus);
  });

  it('is read whole on first contact, and reported', async () => {
    const app = { name: 'io', version: '1.4.2' };
    const settings = {
      ioPins: 0x0403,
      relayIndex: 2,
      unlockDurationMilliseconds: 4_000,
      useInputPinMemory: true,
      settingsVersion: 70_000,
    };
    const { link } = await openOne(
      io('GIO-0001', { type: 'GIO-48', platformVersion: '2.1.0', app, settings }),
    );
    await using _ = link;
    expect(rs485Report.parse(link.report('GIO-0001'))).toEqual({
      connected: true,
      readAt: expect.any(Number),
      hwId: 'GIO-0001',
      type: 'GIO-48',
      platform: { version: '2.1.0' },
      apps: [app],
      reportedSettingsVersion: 70_000,
      address: 17,
      profile: 'gatehouse-io',
      settings: settingsWith({ unlockDurationMilliseconds: 4_000, pins: ['input0', 'input1', 'output2'] }),
      levels: Object.fromEntries(PINS.map((pin) => [pin, false])),
      edges: {},
      tamper: false,
      supplyFault: false,
      pulse: null,
      relayFault: null,
      unsupported: [],
      watchdog: null,
      carries: expect.objectContaining({ pinMemory: true }),
      effectiveUnlockMilliseconds: 4_000,
    });
  });

  it('is polled with one read of its state', async () => {
    const { link } = await openOne();
    await using _ = link;
    link.wire.sent.length = 0;
    await link.clock.advance(1_000);
    const asked = new Set(
      link.wire.sent.map(({ bytes }) => Buffer.from(bytes).subarray(0, 6).toString('hex')),
    );
    expect([...asked]).toEqual(['11030000000a']);
    expect(link.wire.sent.length).toBeGreaterThanOrEqual(4);
  });

  it('reports the bus every five seconds', async () => {
    const { link } = await openOne();
    await using _ = link;
    await link.clock.advance(5_000);
    expect(link.bus()).toMatchObject({ warnings: [], devices: [{ address: 17, alive: true }] });
  });
});

describe('who is where', () => {
  it('a device that stops answering is disconnected, and read whole when it is back', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.behave = () => null;
    await link.clock.advance(5_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: false });
    device.behave = undefined;
    link.wire.sent.length = 0;
    await link.clock.advance(60_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true });
    const starts = link.wire.sent.map(({ bytes }) => Buffer.from(bytes).readUInt16BE(2));
    expect(starts).toEqual(expect.arrayContaining([0x0100, 0x0300]));
  });

  it('another device in its place is a new one, and the old one is gone', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    await link.execute('watch', { devices: [{ address: 17, hwId: 'GIO-0001' }] });
    device.behave = () => null;
    await link.clock.advance(5_000);
    link.stations.set(17, io('GIO-0002'));
    await link.clock.advance(60_000);
    expect(link.report('GIO-0002')).toMatchObject({ connected: true, address: 17 });
    expect(link.report('GIO-0001')).toMatchObject({ connected: false });
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
  });

  it('two that have one name: the first is it, and the other is complained of', async () => {
    const stations = new Map<number, TestDevice>([
      [17, io()],
      [18, io()],
    ]);
    await using link = await openTestLink({
      stations,
      profiles: { 'gatehouse-io': IO },
      options: { devices: [{ unitId: 17 }, { unitId: 18 }] },
    });
    await link.clock.advance(6_000);
    expect(link.history('GIO-0001').every(({ address }) => address === 17)).toBe(true);
    expect(messagesOf(link.bus())).toEqual([
      'another device answers as GIO-0001 too, besides the one at address 18',
    ]);
    stations.delete(17);
    await link.clock.advance(20_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true, address: 18 });
  });

  it('what is watched is polled, and no longer when it is not', async () => {
    const { link } = await openOne();
    await using _ = link;
    link.stations.set(20, io('GIO-0020'));
    await link.execute('watch', {
      devices: [
        { address: 20, hwId: 'GIO-0020' },
        { address: 21, hwId: 'GIO-0021' },
      ],
    });
    await link.clock.advance(2_000);
    expect(link.report('GIO-0020')).toMatchObject({ connected: true, address: 20 });
    await link.execute('watch', { devices: [] });
    await link.clock.advance(10);
    expect(link.report('GIO-0020')).toMatchObject({ connected: false });
    link.wire.sent.length = 0;
    await link.clock.advance(2_000);
    expect(new Set(link.wire.sent.map(({ bytes }) => bytes[0]))).toEqual(new Set([17]));
  });

  it('a device of another product is warned of, and not reported', async () => {
    const { link } = await openOne(station({ kind: 'waveshare-relay-8' }) as ReturnType<typeof io>);
    await using _ = link;
    await link.clock.advance(6_000);
    expect(messagesOf(link.bus())).toEqual([
      expect.stringMatching(
        /address 17 does not answer what profile gatehouse-io asks: .* exception 0[123] /,
      ),
    ]);
    expect(link.report('bus-1-17')).toBeUndefined();
  });
});

describe('a device that answers its polls with exceptions', () => {
  it('is said to have failed, not to be another product, and is read again', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.behave = (request) => framed(17, [(request[1] ?? 0) | 0x80, 4]);
    await link.clock.advance(6_000);
    expect(messagesOf(link.bus())).toEqual([expect.stringMatching(/exception 04 .* failure of its own/)]);
    expect(messagesOf(link.bus()).join()).not.toMatch(/is no /);
    expect(link.report('GIO-0001')).toMatchObject({ connected: false });
    device.behave = undefined;
    await link.clock.advance(6_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true });
  });

  it('of a gateway that does not reach it is not there', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.behave = (request) => framed(17, [(request[1] ?? 0) | 0x80, 0x0b]);
    await link.clock.advance(6_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: false });
    expect(messagesOf(link.bus())).toEqual([expect.stringMatching(/exception 0B .* the Modbus gateway/)]);
    const { results } = probed.parse(await link.execute('probe', { addresses: [17], repeats: 2 }));
    expect(results[0]).toMatchObject({ identity: null, counters: { refusals: 0, replies: 0 } });
  });
});

it('a Modbus TCP server in the place of a serial device server is named', async () => {
  const { link, device } = await openOne();
  await using _ = link;
  device.behave = (request) => {
    const [unit = 0, functionCode = 0] = request;
    // Transaction 0x1103, protocol 0, four more bytes: a reply of one register's first byte, without CRC.
    return Uint8Array.of(0x11, 0x03, 0, 0, 0, 5, unit, functionCode, 2, 0, 0);
  };
  await link.clock.advance(6_000);
  expect(messagesOf(link.bus())).toEqual([
    expect.stringMatching(/Modbus TCP server answers \(MBAP headers\)/),
  ]);
  expect(link.report('GIO-0001')).toMatchObject({ connected: false });
});

describe('probing', () => {
  it('reports who is there and how well it is heard', async () => {
    const { link } = await openOne();
    await using _ = link;
    link.stations.set(3, io('GIO-0003', { platformVersion: '2.0' }));
    link.stations.set(4, station({ kind: 'waveshare-relay-8' }));
    const noisy = io('GIO-0005');
    let heard = 0;
    noisy.behave = (_, answer) => {
      heard += 1;
      return heard === 1 ? Uint8Array.of(5, 3, 0x50, 1) : answer();
    };
    link.stations.set(5, noisy);
    const result = probed.parse(await link.execute('probe', { addresses: [3, 4, 5, 6], repeats: 4 }, 20_000));
    expect(result.results).toMatchObject([
      { address: 3, identity: { hwId: 'GIO-0003', type: 'GIO-48', version: '2.0', profile: 'gatehouse-io' } },
      { address: 4, counters: { replies: 0 }, identity: null },
      { address: 5, counters: { framing: 1 }, identity: { hwId: 'GIO-0005' } },
      { address: 6, counters: { replies: 0, timeouts: 2 }, identity: null, turnaroundMs: null },
    ]);
    // Its name is read twice.
    expect(result.results[0]?.counters.replies).toBe(6);
    expect(result.results[0]?.turnaroundMs?.median).toBeCloseTo(1, 0);
    expect(result.results[1]?.counters.refusals).toBeGreaterThan(0);
  });
});

describe('a wire that damages replies', () => {
  /** One bit of the answers that `damages` picks is wrong, their CRC too. */
  function openDamaged(damages: () => boolean, hwIds: string[]) {
    const stations = new Map<number, TestDevice>();
    for (const [index, hwId] of hwIds.entries()) {
      const device = io(hwId);
      device.behave = (_, answer) => {
        const bytes = answer();
        return bytes && damages() ? bytes.with(3, (bytes[3] ?? 0) ^ 0x10) : bytes;
      };
      stations.set(index + 1, device);
    }
    const profiles = { 'gatehouse-io': profileNamed('gatehouse-io') };
    return openTestLink({ stations, profiles });
  }
  const HW_IDS = Array.from({ length: 12 }, (_, index) => `GIO-${index}`);

  it('makes no one of a device that a scan could not read, and never another one', async () => {
    const random = openRandom(485);
    await using link = await openDamaged(() => random() < 0.3, HW_IDS);
    const addresses = HW_IDS.map((_, index) => index + 1);
    const named: (string | undefined)[] = [];
    for (let time = 0; time < 20; time += 1) {
      const { results } = probed.parse(await link.execute('probe', { addresses, repeats: 2 }, 60_000));
      for (const { address, identity } of results)
        if (identity) named.push(identity.hwId === HW_IDS[address - 1] ? undefined : identity.hwId);
    }
    expect(named.length).toBeGreaterThan(150);
    expect(named.filter((wrong) => wrong !== undefined)).toEqual([]);
  });

  it('gives no one a name that was read once', async () => {
    // As a damage that the CRC does not show: one of 65536.
    const device = io('GIO-0001');
    let names = 0;
    device.behave = (request, answer) => {
      const bytes = answer();
      if (!bytes || request[1] !== 3 || request[2] !== 3) return bytes;
      names += 1;
      if (names !== 1) return bytes;
      const body = bytes.subarray(0, -2).with(3, 0x58);
      return Uint8Array.of(...body, crc16(body) & 0xff, crc16(body) >> 8);
    };
    const profiles = { 'gatehouse-io': profileNamed('gatehouse-io') };
    const options = { devices: [{ unitId: 1 }] };
    await using link = await openTestLink({ stations: new Map([[1, device]]), profiles, options });
    await link.clock.advance(3_000);
    expect(link.report('GIO-0001')?.connected).toBe(true);
    expect(link.history('XIO-0001')).toEqual([]);
  });
});

describe('options and commands', () => {
  it.each([
    [{ profile: 'none' }],
    [{ devices: [{ unitId: 0 }] }],
    [{ port: 'modbus-tcp://h:502', devices: [{ unitId: 0 }] }],
    [{ port: 'modbus-tcp://h:502', devices: [{ unitId: 248 }] }],
    [{ devices: [{ unitId: 1, profile: 'none' }] }],
    [{ devices: [{ unitId: 1 }, { unitId: 1 }] }],
    [{ port: 'COM1' }],
  ])('the options %j are refused', async (options) => {
    const stations = new Map<number, TestDevice>();
    await expect(
      openTestLink({
        stations,
        profiles: { 'gatehouse-io': IO },
        options: options as { [key: string]: Plain },
      }),
    ).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
  });

  it('a profile that cannot be is refused', async () => {
    const stations = new Map<number, TestDevice>();
    const profiles = { 'gatehouse-io': { ...(IO as object), pulse: null } };
    await expect(openTestLink({ stations, profiles })).rejects.toMatchObject({ code: 'INVALID_OPTIONS' });
  });

  it.each([
    ['unlock', null],
    ['pulse', { hwId: 'GIO-0001' }],
    ['applySettings', {}],
    ['probe', { addresses: [], repeats: 1 }],
    ['watch', { devices: [{ address: 300, hwId: 'x' }] }],
  ])('the command %s with %j is refused', async (kind, data) => {
    const { link } = await openOne();
    await using _ = link;
    await expect(link.execute(kind, data as Plain)).rejects.toMatchObject({ code: 'INVALID_COMMAND' });
  });

  it('breaks when the port is lost', async () => {
    const { link } = await openOne();
    await using _ = link;
    link.wire.lose();
    await link.clock.advance(10);
    expect(await link.ended).toMatchObject({ code: 'LINK_LOST' });
  });
});
