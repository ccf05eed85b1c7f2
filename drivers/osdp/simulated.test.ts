/** The driver on a real pty, against devices that another hand wrote from the standard (test/simulators/osdp). */

import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { keyAt, openTestLink, patience } from '../../test/drivers/osdp/link.ts';
import { openSimulatedBus } from '../../test/simulators/bus/bus.ts';
import type { BusPlan } from '../../test/simulators/bus/plan.ts';
import type { Plain } from '../contract/driver.ts';
import { probed } from '../contract/rs485.ts';
import { PINS } from '../contract/settings.ts';

type DevicePlan = BusPlan['devices'][number];
const NAME = (address: number) => `0a4748-1-${4_700 + address}`;
const hex = (key: Uint8Array) => Buffer.from(key).toString('hex');

function io(address: number, osdp: DevicePlan['osdp'] = { key: hex(keyAt(address)) }): DevicePlan {
  return { address, kind: 'osdp-io', hwId: String(4_700 + address), osdp };
}

async function openPair(devices: DevicePlan[], secure: Record<number, 'required' | 'off'> = {}) {
  const bus = await openSimulatedBus({
    protocol: 'osdp',
    baudRate: 115_200,
    parity: 'none',
    stopBits: 1,
    pacing: 'cheap',
    devices,
  });
  onTestFinished(() => bus[Symbol.asyncDispose]());
  const link = await openTestLink({
    port: bus.port,
    keyed: devices.filter(({ osdp }) => osdp?.key).map(({ address }) => address),
    more: {
      devices: devices.map(({ address }): { [key: string]: Plain } => ({
        address,
        secure: secure[address] ?? 'required',
      })),
    },
  });
  return { bus, link };
}

const settings = {
  ioPins: Object.fromEntries(PINS.map((pin) => [pin, pin === 'input1' || pin === 'output2'])),
  relayIndex: 2,
  unlockDurationMilliseconds: 1_250,
  useInputPinMemory: false,
};

describe('devices in their secure channels', () => {
  it('are met, carry settings, fire relays, and report inputs, tamper and cards', async () => {
    const { bus, link } = await openPair([io(0), io(1), io(5)]);
    for (const address of [0, 1, 5]) await link.connected(NAME(address));
    expect(link.report(NAME(1))).toMatchObject({
      security: 'secure',
      type: 'GIO-48-OSDP',
      platform: { version: '1.0.0' },
      address: 1,
      apps: [{ name: 'io', version: '1.0.0' }],
      tamper: false,
      supplyFault: false,
      unsupported: [],
    });
    await link.execute('applySettings', { hwId: NAME(1), settingsVersion: 7, settings });
    expect(await bus.state(1)).toMatchObject({ settings: { relayIndex: 2, settingsVersion: 7 } });
    expect(link.report(NAME(1))).toMatchObject({
      reportedSettingsVersion: 7,
      settings,
      effectiveUnlockMilliseconds: 1_300,
    });
    expect(await link.pulse(NAME(1), 2, 1_250)).toEqual({ relay: 2, milliseconds: 1_300, timedBy: 'device' });
    const { history } = await bus.state(1);
    expect(history).toMatchObject([{ output: 2, on: true }]);
    expect(link.report(NAME(1))).toMatchObject({ levels: { output2: true }, pulse: { relay: 2 } });
    await bus.set(1, { inputs: { input0: true, input1: true }, tamper: true, supplyFault: true });
    await bus.set(5, { osdp: { card: { bits: 26, data: 'ffc00080' } } });
    await bus.set(5, { osdp: { keys: '1234#' } });
    await vi.waitFor(() => {
      expect(link.eventsOf('input')).toMatchObject([{ hwId: NAME(1), input: 'input1', activations: 1 }]);
      expect(link.eventsOf('alarm')).toMatchObject([
        { hwId: NAME(1), alarm: 'tamper', raised: true },
        { hwId: NAME(1), alarm: 'supply', raised: true },
      ]);
      expect(link.eventsOf('credential')).toMatchObject([
        { hwId: NAME(5), reader: 0, format: 'wiegand', bits: 'ffc00080', count: 26 },
        { hwId: NAME(5), reader: 0, format: 'keypad', bits: null, count: 5 },
      ]);
    }, patience);
    // The reader shows that it was granted.
    await vi.waitFor(async () => expect((await bus.state(1)).deeds).toMatchObject({ '69': 1, '6a': 1 }));
    expect(JSON.stringify(link.events)).not.toMatch(/\b1234\b/);
    expect(link.lines.join('\n')).not.toMatch(/ffc00080|1234#/);
    await vi.waitFor(async () => expect((await bus.state(1)).history).toHaveLength(2), patience);
  });

  it('are found by a scan that leaves their sessions alone', async () => {
    const { bus, link } = await openPair([io(0), { ...io(3, {}), address: 3 }]);
    await link.connected(NAME(0));
    const { results } = probed.parse(await link.execute('probe', { addresses: [0, 3, 9], repeats: 3 }));
    expect(results).toMatchObject([
      { identity: { hwId: NAME(0), type: 'GIO-48-OSDP' }, counters: { replies: 3 } },
      { identity: { hwId: NAME(3) }, counters: { replies: 3 } },
      { identity: null, counters: { replies: 0, timeouts: 2 } },
    ]);
    expect(await bus.state(0)).toMatchObject({ sessions: 1, isSecure: true });
  });

  it('count activations by their own counters while the pin memory is on', async () => {
    const { bus, link } = await openPair([io(0)]);
    await link.connected(NAME(0));
    const remembering = { ...settings, useInputPinMemory: true };
    await link.execute('applySettings', { hwId: NAME(0), settingsVersion: 2, settings: remembering });
    await vi.waitFor(async () => expect(link.report(NAME(0)).settings).toEqual(remembering), patience);
    for (let times = 0; times < 3; times += 1)
      await bus.set(0, { pulseInput: { input: 'input1', milliseconds: 0 } });
    await vi.waitFor(() => expect(link.report(NAME(0)).edges?.input1?.total).toBe(3), patience);
  });
});

describe('without security', () => {
  it('is spoken to a device where that is configured, and settings it cannot carry are refused', async () => {
    const plain = { isPlain: true, vendorCode: 0x00_06_8e };
    const { bus, link } = await openPair([io(0, plain)], { 0: 'off' });
    const name = '00068e-1-4700';
    await link.connected(name);
    expect(link.report(name)).toMatchObject({
      security: 'clear',
      type: 'OSDP 00068e model 1.1',
      settings: null,
      reportedSettingsVersion: 0,
      unsupported: ['useInputPinMemory'],
      carries: { pins: [...PINS], relays: 8, pinMemory: false, unlockMaxMilliseconds: 600_000 },
    });
    const apply = (more: object) =>
      link.execute('applySettings', { hwId: name, settingsVersion: 1, settings: { ...settings, ...more } });
    await expect(apply({ useInputPinMemory: true })).rejects.toMatchObject({ code: 'REFUSED' });
    expect(await apply({})).toEqual({ reportedSettingsVersion: 1 });
    expect(link.report(name)).toMatchObject({ settings, reportedSettingsVersion: 1 });
    await link.pulse(name, 3);
    expect((await bus.state(0)).history).toMatchObject([{ output: 3, on: true }]);
    await expect(link.pulse(name, 7)).resolves.toMatchObject({ relay: 7 });
  });
});

describe('a session', () => {
  it('survives lost, damaged, busy and misnumbered replies, and fires each pulse once', async () => {
    const { bus, link } = await openPair([io(0)]);
    await link.connected(NAME(0));
    let fired = 0;
    for (const fault of ['lost', 'damaged', 'busy', 'sequence', 'replayed', 'foreignAddress'] as const) {
      await bus.set(0, { osdp: { break: { fault } } });
      await link.pulse(NAME(0), 1, 100);
      fired += 1;
      expect((await bus.state(0)).deeds).toMatchObject({ '68': fired });
    }
    expect(link.report(NAME(0))).toMatchObject({ connected: true, security: 'secure' });
  });

  it('gets a pulse to a device that is busy for longer than one reply', async () => {
    const { bus, link } = await openPair([io(0)]);
    await link.connected(NAME(0));
    // More than polls take up until the pulse is asked for.
    await bus.set(0, { osdp: { break: { fault: 'busy', times: 8 } } });
    await link.pulse(NAME(0), 1, 100);
    expect((await bus.state(0)).deeds).toMatchObject({ '68': 1 });
  });

  it('is there again after a restart of the device, which no one takes for another one', async () => {
    const { bus, link } = await openPair([io(0)]);
    await link.connected(NAME(0));
    await bus.set(0, { restart: true });
    await vi.waitFor(async () => expect(await bus.state(0)).toMatchObject({ sessions: 2 }), patience);
    await link.pulse(NAME(0));
    expect(link.history.every(({ hwId }) => hwId === NAME(0))).toBe(true);
    expect(link.eventsOf('alarm')).toEqual([]);
  });

  it('bears 5 % lost requests for hundreds of commands', async () => {
    const { bus, link } = await openPair([io(0)]);
    await link.connected(NAME(0));
    await bus.set(0, { faults: { loss: { share: 0.05, seed: 11 } } });
    for (let count = 0; count < 200; count += 1) await link.pulse(NAME(0), count % 8, 100);
    expect((await bus.state(0)).deeds).toMatchObject({ '68': 200 });
    expect(link.eventsOf('alarm')).toEqual([]);
  }, 60_000);

  it('is not had with a device that has another key, nor in clear text: an alarm says so', async () => {
    const { bus, link } = await openPair([io(0), io(1), io(2, { isPlain: true })]);
    await link.watch([0, 1, 2]);
    for (const address of [0, 1]) await link.connected(NAME(address));
    await bus.set(0, { osdp: { key: '00112233445566778899aabbccddeeff' } });
    await bus.set(1, { osdp: { break: { fault: 'clearText', times: 3 } } });
    await bus.set(0, { restart: true });
    await vi.waitFor(() => {
      expect(link.eventsOf('alarm')).toEqual(
        expect.arrayContaining([
          expect.objectContaining({ hwId: NAME(0), alarm: 'wrongKey', raised: true }),
          expect.objectContaining({ hwId: NAME(1), alarm: 'clearText', raised: true }),
          expect.objectContaining({ hwId: NAME(2), alarm: 'downgrade', raised: true }),
        ]),
      );
    }, patience);
    await link.connected(NAME(0), false);
    await vi.waitFor(
      () => expect(link.report(NAME(0))).toMatchObject({ security: 'none', sessionFault: 'wrongKey' }),
      patience,
    );
    await expect(link.pulse(NAME(0))).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    await expect(link.pulse(NAME(2))).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    await vi.waitFor(() => expect(messagesOf(link.bus()).join()).toContain('wrongKey'), patience);
    await bus.set(0, { osdp: { key: hex(keyAt(0)) } });
    await link.connected(NAME(0));
    expect(link.report(NAME(0)).sessionFault).toBeNull();
    expect(link.eventsOf('alarm')).toContainEqual(
      expect.objectContaining({ hwId: NAME(0), alarm: 'wrongKey', raised: false }),
    );
  }, 60_000);

  it('ends with the device, and with the adapter', async () => {
    const { bus, link } = await openPair([io(0)]);
    await link.connected(NAME(0));
    await bus.set(0, { faults: { dead: true } });
    await link.connected(NAME(0), false);
    await expect(link.pulse(NAME(0))).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    await bus.set(0, { faults: null });
    await link.connected(NAME(0));
    await bus.hangUp();
    expect(await link.run).toMatchObject({ code: 'LINK_LOST' });
  });
});

describe('a device without a key', () => {
  it('is only looked for, until it is given one in a pairing window', async () => {
    const { bus, link } = await openPair([io(0, {})]);
    await vi.waitFor(
      () => expect(link.report(NAME(0))).toMatchObject({ connected: false, security: 'unpaired' }),
      patience,
    );
    await expect(link.pulse(NAME(0))).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    const key = keyAt(9);
    expect(await link.execute('pair', { address: 0, key, milliseconds: 5_000 }, 10_000)).toEqual({
      hwId: NAME(0),
    });
    await link.connected(NAME(0));
    expect(await bus.state(0)).toMatchObject({ isPaired: true, isSecure: true });
    await link.pulse(NAME(0));
    expect(link.lines.join('\n')).not.toContain(hex(key));
  });

  it('stays as it was when the window closes', async () => {
    const { bus, link } = await openPair([io(0)]);
    await link.connected(NAME(0));
    const other = link.execute('pair', { address: 0, key: keyAt(9), milliseconds: 1_000 }, 10_000);
    await expect(other).rejects.toMatchObject({ code: 'REFUSED' });
    const unanswered = link.execute('pair', { address: 7, key: keyAt(9), milliseconds: 1_000 }, 10_000);
    await expect(unanswered).rejects.toMatchObject({ code: 'NO_REPLY' });
    await link.connected(NAME(0));
    expect(await bus.state(0)).toMatchObject({ isSecure: true });
  });
});
