/** What single products have that others do not, on a manual clock: commands with a time, outputs that are only shown, counters, a name in a register. */
import { describe, expect, it } from 'vitest';
import {
  openBoard,
  openTestLink,
  profileNamed,
  sent,
  settingsWith,
  station,
} from '../../test/drivers/modbus/link.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import type { Plain } from '../contract/driver.ts';
import { profileSchema } from './profile.ts';

const hwId = 'bus-1-1';
const WRITES = [5, 6, 15, 16];

describe('a relay by command word (eletechsup-r421a08)', () => {
  it('is closed by one write of the command with the time in it, in whole seconds rounded up', async () => {
    const { link, device } = await openBoard('eletechsup-r421a08');
    await using _ = link;
    expect(await link.execute('pulse', { hwId, relay: 0, milliseconds: 2_500 })).toEqual({
      relay: 0,
      milliseconds: 3_000,
      timedBy: 'device',
    });
    // README of the board: relay 1 with a delay of 3 s.
    const frames = link.wire.sent.map(({ bytes }) => Buffer.from(bytes).toString('hex'));
    expect(frames.filter((frame) => frame.startsWith('0106'))).toEqual(['0106000106039bab']);
    await link.clock.advance(500);
    expect(link.report(hwId)).toMatchObject({ levels: { output0: true, output1: false } });
    await link.clock.advance(10_000);
    const [on, off] = device.device.pins.history;
    expect((off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0)).toBe(3_000);
    expect(link.report(hwId)).toMatchObject({ levels: { output0: false }, relayFault: null });
  });

  it('that outlives the command to open is said to stay closed, and opens at its time', async () => {
    const { link, device } = await openBoard('eletechsup-r421a08');
    await using _ = link;
    await link.execute('pulse', { hwId, relay: 7, milliseconds: 20_000 });
    await expect(link.execute('endPulse', { hwId, relay: 7 })).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringContaining('keeps a relay closed to the end of its pulse'),
    });
    await link.clock.advance(500);
    expect(link.report(hwId)).toMatchObject({ pulse: { relay: 7 }, levels: { output7: true } });
    await link.clock.advance(30_000);
    expect(device.device.pins.outputs()).toBe(0);
    expect(link.report(hwId)).toMatchObject({ relayFault: null });
  });

  it('that takes any command as ON is opened after its time, and fires nothing more', async () => {
    const { link, device } = await openBoard('eletechsup-r421a08');
    await using _ = link;
    device.behave = (request, answer) => {
      const isTimed = request[1] === 6 && request[4] === 6;
      if (!isTimed) return answer();
      const relay = (request[3] ?? 1) - 1;
      device.device.pins.setOutput(relay, true, link.clock.monotonic());
      return Uint8Array.from(request);
    };
    await link.execute('pulse', { hwId, relay: 3, milliseconds: 2_000 });
    await link.clock.advance(10_000);
    expect(device.device.pins.outputs()).toBe(0);
    await expect(link.execute('pulse', { hwId, relay: 3, milliseconds: 2_000 })).rejects.toMatchObject({
      code: 'REFUSED',
    });
  });
});

describe.each(['moxa-iologik-e1214', 'advantech-adam-4150'] as const)(
  'outputs that are only shown (%s)',
  (kind) => {
    it('are never written, also where somebody else closes one', async () => {
      const { link, device } = await openBoard(kind);
      await using _ = link;
      device.device.pins.setOutput(2, true, link.clock.monotonic());
      device.device.pins.setInput(1, true, link.clock.monotonic());
      await link.clock.advance(60_000);
      expect(link.report(hwId)).toMatchObject({
        levels: { output2: true, output3: false, input1: true, input0: false },
        carries: { relays: 0 },
        watchdog: null,
      });
      await expect(link.execute('pulse', { hwId, relay: 2, milliseconds: 1_000 })).rejects.toMatchObject({
        code: 'REFUSED',
        message: expect.stringContaining('fires no relay'),
      });
      await expect(link.execute('endPulse', { hwId, relay: 2 })).rejects.toMatchObject({ code: 'REFUSED' });
      const settings = settingsWith({ relayIndex: 2 });
      await expect(
        link.execute('applySettings', { hwId, settingsVersion: 1, settings }),
      ).rejects.toMatchObject({
        code: 'REFUSED',
        message: expect.stringContaining('no outputs that may be fired'),
      });
      expect(WRITES.map((functionCode) => sent(link, functionCode))).toEqual([0, 0, 0, 0]);
      expect(device.device.pins.outputs()).toBe(0b100);
    });
  },
);

it('two outputs in one register are shown, and never written (novus-digirail-2r)', async () => {
  const { link, device } = await openBoard('novus-digirail-2r');
  await using _ = link;
  device.device.pins.setOutput(1, true, link.clock.monotonic());
  await link.clock.advance(60_000);
  expect(link.report(hwId)).toMatchObject({
    platform: { version: '2.04' },
    levels: { output0: false, output1: true },
    carries: { relays: 0 },
  });
  await expect(link.execute('pulse', { hwId, relay: 1, milliseconds: 1_000 })).rejects.toMatchObject({
    code: 'REFUSED',
  });
  expect(WRITES.map((functionCode) => sent(link, functionCode))).toEqual([0, 0, 0, 0]);
});

describe('inputs', () => {
  it('in one register with other bits are read as such (seneca-z-d-in)', async () => {
    const { link, device } = await openBoard('seneca-z-d-in');
    await using _ = link;
    device.device.pins.setInput(3, true, 0);
    await link.clock.advance(1_000);
    expect(link.report(hwId)).toMatchObject({
      levels: { input0: false, input3: true },
      carries: { relays: 0 },
    });
  });

  it('that are inverted are active while they are 0', async () => {
    const inverted = {
      ...(profileNamed('seneca-z-d-in') as { [key: string]: Plain }),
      inputs: { address: 1, bit: 0, count: 4, inverted: true },
    };
    const device = station({ kind: 'seneca-z-d-in' });
    await using link = await openTestLink({
      stations: new Map([[1, device]]),
      profiles: { inverted: profileSchema.parse(inverted) as unknown as Plain },
      options: { devices: [{ unitId: 1 }] },
    });
    device.device.pins.setInput(3, true, 0);
    await link.clock.advance(1_500);
    expect(link.report(hwId)).toMatchObject({ levels: { input0: true, input3: false } });
  });

  it('that the product counts are remembered between two polls, also after it has begun again (expertdaq-ex9060-m)', async () => {
    const { link, device } = await openBoard('expertdaq-ex9060-m');
    await using _ = link;
    const settings = settingsWith({ relayIndex: 1, pins: ['input2'] });
    await link.execute('applySettings', { hwId, settingsVersion: 1, settings });
    const press = (times: number) => {
      for (let time = 0; time < times; time += 1) {
        device.device.pins.setInput(2, true, link.clock.monotonic());
        device.device.pins.setInput(2, false, link.clock.monotonic());
      }
    };
    press(3);
    await link.clock.advance(1_000);
    device.device.restart(link.clock.monotonic());
    press(2);
    await link.clock.advance(2_000);
    expect(link.events.map(({ data }) => data)).toMatchObject([
      { input: 'input2', activations: 3, total: 3 },
      { input: 'input2', activations: 2, total: 5 },
    ]);
    expect(link.report(hwId)).toMatchObject({ carries: { pinMemory: true } });
  });
});

describe('a product that answers function 43', () => {
  const OWN = profileSchema.parse({
    name: 'own',
    product: 'Own board',
    source: 'test/simulators/bus/modbus/gatehouse-io.ts, without its relays',
    inputs: { address: 1, bit: 0, count: 4 },
    identity: { standard: true },
  }) as unknown as Plain;
  async function openOwn(
    kind: 'gatehouse-io' | 'seneca-z-d-in',
    onIdentify?: (unit: number, object: number) => Uint8Array,
  ) {
    const device = station({ kind, type: 'GIO-48', platformVersion: '2.4.1' });
    device.behave = (request, answer) =>
      request[1] === 43 && onIdentify ? onIdentify(request[0] ?? 1, request[4] ?? 0) : answer();
    const link = await openTestLink({
      stations: new Map([[1, device]]),
      profiles: { own: OWN },
      options: { devices: [{ unitId: 1 }] },
    });
    await link.clock.advance(2_000);
    return link;
  }

  it('has its product code and revision as type and version', async () => {
    await using link = await openOwn('gatehouse-io');
    expect(link.report(hwId)).toMatchObject({
      connected: true,
      type: 'GIO-48',
      platform: { version: '2.4.1' },
    });
  });

  it('in parts is asked for the rest, and not for ever by one that goes round', async () => {
    // 6.21: MEI type, code, conformity, more follows, next object, one object.
    const part = (unit: number, object: number) => {
      const text = ['Vendor', 'Code', '1.0'][object] ?? '';
      const next = (object + 1) % 3;
      return framed(unit, [43, 14, 1, 1, 0xff, next, 1, object, text.length, ...Buffer.from(text)]);
    };
    await using link = await openOwn('gatehouse-io', part);
    expect(link.report(hwId)).toMatchObject({ connected: true, type: 'Code', platform: { version: '1.0' } });
    expect(sent(link, 43)).toBe(3);
  });

  it('and refuses it is named by its profile', async () => {
    await using link = await openOwn('seneca-z-d-in');
    expect(link.report(hwId)).toMatchObject({ type: 'Own board', platform: null });
  });
});

describe('another product than that of the profile, as its register shows', () => {
  it('is sent no write, is not connected, and is named in a warning', async () => {
    const device = station({ kind: 'icp-das-tm-r5' });
    await using link = await openTestLink({
      stations: new Map([[1, device]]),
      profiles: { 'expertdaq-ex9060-m': profileNamed('expertdaq-ex9060-m') },
      options: { devices: [{ unitId: 1 }] },
    });
    device.behave = (request, answer) =>
      // The name of a tM-R5 in place of the refusal of its imitation.
      request[1] === 3 && request[3] === 0xe2 ? nameOfTmR5(request) : answer();
    await link.clock.advance(10_000);
    expect(WRITES.map((functionCode) => sent(link, functionCode))).toEqual([0, 0, 0, 0]);
    expect(link.report(hwId)?.connected ?? false).toBe(false);
    expect(link.bus()).toMatchObject({
      warnings: [
        { message: expect.stringContaining('is no expertDAQ EX9060-M: holding register 482 shows 21') },
      ],
    });
  });
});

function nameOfTmR5(request: Uint8Array): Uint8Array {
  return framed(1, [request[1] ?? 3, 4, 0, 0x15, 0, 0]);
}
