/** Settings on their way to simulated devices, on a manual clock. */
import { describe, expect, it } from 'vitest';
import { openBoard, openOne, sent, settingsWith } from '../../test/drivers/modbus/link.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import { OUTPUT_PINS } from '../contract/settings.ts';

/** Of the block that a write of settings has. */
const SETTINGS_BYTES = 14;
const apply = (settingsVersion: number, changes = {}) => ({
  hwId: 'GIO-0001',
  settingsVersion,
  settings: settingsWith(changes),
});

describe('settings', () => {
  it('go to the device whole, in one write, and are read back', async () => {
    const { link } = await openOne();
    await using _ = link;
    expect(await link.execute('applySettings', apply(9, { pins: ['input3', 'output7'] }))).toEqual({
      reportedSettingsVersion: 9,
    });
    const write = link.wire.sent.find(({ bytes }) => bytes[1] === 16);
    expect(Buffer.from(write?.bytes ?? []).toString('hex')).toMatch(
      /^1110010000070e8008000200000bb8000100000009/,
    );
    expect(link.report('GIO-0001')).toMatchObject({
      reportedSettingsVersion: 9,
      settings: settingsWith({ pins: ['input3', 'output7'] }),
    });
    await link.clock.advance(1_000);
    expect(link.report('GIO-0001')).toMatchObject({ reportedSettingsVersion: 9 });
  });

  it('that the device refuses are refused once, with its reason', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.behave = (request, answer) => (request[1] === 16 ? framed(17, [0x90, 3]) : answer());
    await expect(link.execute('applySettings', apply(9))).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(/illegal data value/),
    });
    expect(sent(link, 16)).toBe(1);
    expect(link.report('GIO-0001')).toMatchObject({ reportedSettingsVersion: 0 });
  });

  it.each([
    [6, 'device 17 is busy: try again in a moment'],
    [0x0a, expect.stringMatching(/gateway path unavailable/)],
  ])(
    'that are answered with exception %i, and not shown, may have gone to another device, and not for good',
    async (exception, message) => {
      const { link, device } = await openOne();
      await using _ = link;
      device.behave = (request, answer) => (request[1] === 16 ? framed(17, [0x90, exception]) : answer());
      await expect(link.execute('applySettings', apply(9))).rejects.toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        message,
      });
      device.behave = undefined;
      expect(await link.execute('applySettings', apply(9))).toEqual({ reportedSettingsVersion: 9 });
    },
  );

  it('that are acknowledged and not in force are not believed', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    // As an adapter with local echo does for a device that ignores what it hears: the head of a write is its answer.
    device.behave = (request, answer) => {
      if (request[1] !== 16) return answer();
      return framed(17, request.subarray(1, 6));
    };
    await expect(link.execute('applySettings', apply(9))).rejects.toMatchObject({ code: 'BAD_REPLY' });
    expect(link.report('GIO-0001')).toMatchObject({ reportedSettingsVersion: 0 });
  });

  it('that are null leave what the device has, and are reported as null', async () => {
    const { link } = await openOne();
    await using _ = link;
    const wanted = { relayIndex: null, unlockDurationMilliseconds: null };
    await link.execute('applySettings', apply(9, wanted));
    const write = link.wire.sent.find(({ bytes }) => bytes[1] === 16);
    expect(Buffer.from(write?.bytes ?? []).toString('hex')).toMatch(/^1110010000070e0000000000001388/);
    await link.clock.advance(1_000);
    expect(link.report('GIO-0001')?.settings).toEqual(settingsWith(wanted));
  });

  it('of a device that has restarted or was changed by others are read again', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    await link.execute('applySettings', apply(9));
    device.device.answer(framed(1, Buffer.from('10010000070e00000005000000640000' + '00000009', 'hex')), 0);
    device.device.restart(link.clock.monotonic());
    await link.clock.advance(2_000);
    // The version is the same, and the content is not.
    expect(link.report('GIO-0001')).toMatchObject({
      reportedSettingsVersion: 9,
      settings: { relayIndex: 5, unlockDurationMilliseconds: 100, useInputPinMemory: false },
    });
  });

  it('whose answer is lost are in force where the device shows them, and keep no order back', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.behave = (request, answer) => {
      const reply = answer();
      return request[1] === 16 && request[6] === SETTINGS_BYTES ? null : reply;
    };
    expect(await link.execute('applySettings', apply(9))).toEqual({ reportedSettingsVersion: 9 });
    expect(sent(link, 16)).toBe(1);
    const pulse = { hwId: 'GIO-0001', relay: 3, milliseconds: 500 };
    expect(await link.execute('pulse', pulse)).toMatchObject({ relay: 3 });
  });

  it('are written once, and are not known to be in force where another device gives its name afterwards', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    let isWritten = false;
    device.behave = (request, answer) => {
      const reply = answer();
      isWritten ||= request[1] === 16;
      const isName = request[1] === 3 && request[2] === 3;
      return isWritten && isName && reply
        ? framed(17, [3, 16, ...Buffer.from('GIO-0002'.padEnd(16, '\0'))])
        : reply;
    };
    await expect(link.execute('applySettings', apply(9))).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect(sent(link, 16)).toBe(1);
  });

  it('of a device that is read again after a restart: an order says so', async () => {
    const { link, device } = await openOne();
    await using _ = link;
    device.device.restart(link.clock.monotonic());
    const pulse = { hwId: 'GIO-0001', relay: 3, milliseconds: 500 };
    let said = '';
    for (let tries = 0; tries < 100 && said === ''; tries += 1) {
      await link.clock.advance(5);
      await link.execute('pulse', pulse).catch(({ message }: Error) => (said = message));
    }
    expect(said).toMatch(/^device 17 was restarted, and is read again/);
  });

  it('for a device that does not answer are not sent', async () => {
    const { link } = await openOne();
    await using _ = link;
    await expect(link.execute('applySettings', { ...apply(9), hwId: 'GIO-9999' })).rejects.toMatchObject({
      code: 'DEVICE_OFFLINE',
    });
    expect(sent(link, 16)).toBe(0);
  });
});

describe('a bought relay board', () => {
  const hwId = 'bus-1-1';

  it('is named by its place, and its settings are kept by the driver', async () => {
    const { link } = await openBoard('waveshare-relay-8');
    await using _ = link;
    expect(link.report(hwId)).toMatchObject({
      connected: true,
      type: 'Waveshare Modbus RTU Relay',
      platform: { version: '2.00' },
      settings: null,
      reportedSettingsVersion: 0,
      unsupported: ['input0', 'input1', 'input2', 'input3', 'useInputPinMemory'],
      carries: { pins: [...OUTPUT_PINS], relays: 8, pinMemory: false, unlockMaxMilliseconds: 600_000 },
    });
    const settings = settingsWith({ unlockDurationMilliseconds: 1_250 });
    await link.execute('applySettings', { hwId, settingsVersion: 4, settings });
    expect(link.report(hwId)).toMatchObject({
      settings,
      reportedSettingsVersion: 4,
      effectiveUnlockMilliseconds: 1_300,
    });
    await expect(
      link.execute('applySettings', {
        hwId,
        settingsVersion: 5,
        settings: settingsWith({ relayIndex: 7, unlockDurationMilliseconds: 600_000 }),
      }),
    ).resolves.toEqual({ reportedSettingsVersion: 5 });
  });
});
