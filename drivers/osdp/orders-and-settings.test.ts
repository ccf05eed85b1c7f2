/** An order goes by the relay and time of settings: it is not sent once others may be in force. */
import { expect, it } from 'vitest';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { openWireLink, testRandom } from '../../test/drivers/osdp/wire.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';
import { PINS } from '../contract/settings.ts';

const hwId = '0a4748-1-1';
const OUT = 0x68;
const apply = (settingsVersion: number, relayIndex: number) => ({
  hwId,
  settingsVersion,
  settings: {
    ioPins: Object.fromEntries(PINS.map((pin) => [pin, false])),
    relayIndex,
    unlockDurationMilliseconds: 1_000,
    useInputPinMemory: false,
  },
});

it.each([
  ['in clear text', 'off', 3_000],
  ['under a key', 'required', 3_000],
  ['under a key, until its session was lost', 'required', 12_000],
])(
  'a device %s takes settings, and its answers are lost: no order goes by those of before',
  async (_, secure, lostMs) => {
    const key = secure === 'required' ? KEY : undefined;
    const device = openOsdpDevice({ address: 0, serial: 1, random: testRandom(), ...(key && { key }) });
    const version = () =>
      (device.peripheral.describe().settings as { settingsVersion: number }).settingsVersion;
    let isMute = false;
    const link = await openWireLink({
      answer(request, now) {
        const reply = device.answer(request, now) ?? null;
        return isMute && version() === 5 ? null : reply;
      },
      devices: [{ address: 0, secure }],
    });
    await link.watch(key ? [{ address: 0, key }] : []);
    await link.connected(hwId);
    const closings = () => device.peripheral.deeds.filter(({ code }) => code === OUT).length;
    const pulse = (more: object) =>
      link.outcome(link.execute('pulse', { hwId, relay: 2, milliseconds: 500, ...more }));
    await link.outcome(link.execute('applySettings', apply(4, 2)));
    expect(await pulse({})).toMatchObject({ relay: 2 });
    isMute = true;
    const applied = link.execute('applySettings', apply(5, 3));
    await link.until(() => version() === 5);
    const before = closings();
    const waiting = link.execute('pulse', { hwId, relay: 2, milliseconds: 500 }, undefined, 20_000);
    await link.clock.advance(lostMs);
    isMute = false;
    expect(['REFUSED', 'DEVICE_OFFLINE']).toContain(await link.outcome(waiting));
    await link.outcome(applied);
    await link.until(
      () => link.report(hwId)?.reportedSettingsVersion === 5 && link.report(hwId)?.connected === true,
    );
    expect(await pulse({ settingsVersion: 4 })).toBe('REFUSED');
    expect(closings()).toBe(before);
    expect(await pulse({ relay: 3 })).toMatchObject({ relay: 3 });
  },
);
