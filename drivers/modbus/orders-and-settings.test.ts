/** An order goes by the relay and time of settings: it is not sent once others may be in force. On a manual clock. */
import { describe, expect, it } from 'vitest';
import {
  io,
  openBoard,
  openOne,
  openTestLink,
  profileNamed,
  sent,
  settingsWith,
} from '../../test/drivers/modbus/link.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import { DriverError } from '../contract/driver.ts';

const hwId = 'GIO-0001';
const pulse = { hwId, relay: 2, milliseconds: 500 };
const WRITE = 16;
const isWriteAt = (page: number) => (request: Uint8Array) => request[1] === WRITE && request[2] === page;
/** Holding registers from 0x0100 on are the settings, from 0x0200 on the pulse. */
const isSettings = isWriteAt(1);
const isPulse = isWriteAt(2);
const apply = (settingsVersion: number, relayIndex: number) => ({
  hwId,
  settingsVersion,
  settings: settingsWith({ relayIndex }),
});
const pulsesOf = (board: ReturnType<typeof io>) =>
  (board.device.describe(0).pulse as { takenMs: number[] }).takenMs.length;

/** A board with settings of version 4, met. */
async function openFour() {
  const { link, device } = await openOne();
  await link.execute('applySettings', apply(4, 2));
  return { link, board: device as ReturnType<typeof io> };
}

describe('while settings are written, an order by those of before', () => {
  it('is refused where the device has taken them, and its answers are lost for seconds', async () => {
    const { link, board } = await openFour();
    await using _ = link;
    let isWritten = false;
    board.behave = (request, answer) => {
      const reply = answer();
      isWritten ||= isSettings(request);
      // It answers its polls, and neither for its settings nor for its name.
      return isWritten && request[1] === 3 && (request[2] ?? 0) > 0 ? null : reply;
    };
    await link.execute('applySettings', apply(5, 3)).catch((error: unknown) => error);
    for (let tries = 0; tries < 10; tries += 1)
      await link.execute('pulse', { ...pulse, settingsVersion: 4 }, 5_000).catch((error: unknown) => error);
    expect(pulsesOf(board)).toBe(0);
    board.behave = undefined;
    await link.clock.advance(5_000);
    expect(link.report(hwId)).toMatchObject({ connected: true, reportedSettingsVersion: 5 });
    await expect(link.execute('pulse', { ...pulse, settingsVersion: 4 })).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(/other settings/),
    });
    expect(await link.execute('pulse', { ...pulse, relay: 3 })).toMatchObject({ relay: 3 });
  });

  it('is sent as soon as the device shows that it has not taken them', async () => {
    const { link, board } = await openFour();
    await using _ = link;
    board.behave = (request, answer) => (isSettings(request) ? null : answer());
    const applied = link.execute('applySettings', apply(5, 3));
    await expect(applied).rejects.toMatchObject({ code: 'NO_REPLY' });
    expect(await link.execute('pulse', pulse)).toMatchObject({ relay: 2 });
    expect(pulsesOf(board)).toBe(1);
  });

  it.each([
    ['takes them', true, 0],
    ['does not', false, 1],
  ])(
    'that waits in the queue behind the write goes by what is read then: one that %s',
    async (_, isTaken, fired) => {
      const { link, board } = await openFour();
      await using _link = link;
      const { signal } = new AbortController();
      const deadline = link.clock.monotonic() + 5_000;
      let fires: Promise<unknown> | undefined;
      board.behave = (request, answer) => {
        if (!isSettings(request)) return answer();
        fires = link.driver
          .execute({ kind: 'pulse', data: { ...pulse, settingsVersion: 4 }, deadline }, signal)
          .catch((error: unknown) => error);
        return isTaken ? answer() : null;
      };
      await link.execute('applySettings', apply(5, 3)).catch((error: unknown) => error);
      await link.clock.advance(2_000);
      const outcome = await fires;
      if (isTaken) expect(outcome).toMatchObject({ code: 'REFUSED' });
      else expect(outcome).toMatchObject({ relay: 2 });
      expect(pulsesOf(board)).toBe(fired);
    },
  );

  it('is not sent again where its reply was lost, and the device has others then', async () => {
    const { link, board } = await openFour();
    await using _ = link;
    board.behave = (request, answer) => {
      if (!isPulse(request)) return answer();
      // Something else than this gateway has written to it.
      board.device.answer(framed(1, Buffer.from('10010000070e0000000500000064000000000009', 'hex')), 0);
      return null;
    };
    const failure = await link.execute('pulse', pulse).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DriverError);
    expect(link.wire.sent.filter(({ bytes }) => isPulse(bytes))).toHaveLength(1);
    expect(pulsesOf(board)).toBe(0);
  });

  it('of another device of the link is sent', async () => {
    const [first, second] = [io('GIO-0001'), io('GIO-0002')];
    const link = await openTestLink({
      stations: new Map([
        [17, first],
        [18, second],
      ]),
      profiles: { 'gatehouse-io': profileNamed('gatehouse-io') },
      options: { devices: [{ unitId: 17 }, { unitId: 18 }], pollEveryMs: 5_000 },
    });
    await using _ = link;
    await link.clock.advance(2_000);
    first.behave = (request, answer) => (isSettings(request) ? null : answer());
    await link.execute('applySettings', apply(5, 3)).catch((error: unknown) => error);
    expect(await link.execute('pulse', { ...pulse, hwId: 'GIO-0002' })).toMatchObject({ relay: 2 });
    expect(pulsesOf(second)).toBe(1);
  });
});

it('an order by settings of before is refused where the driver keeps them', async () => {
  const { link } = await openBoard('waveshare-relay-8');
  await using _ = link;
  const board = { hwId: 'bus-1-1', relay: 1, milliseconds: 500 };
  const settings = settingsWith({ relayIndex: 3 });
  await link.execute('applySettings', { hwId: board.hwId, settingsVersion: 5, settings });
  await expect(link.execute('pulse', { ...board, settingsVersion: 4 })).rejects.toMatchObject({
    code: 'REFUSED',
  });
  expect(sent(link, 5)).toBe(0);
  expect(await link.execute('pulse', { ...board, relay: 3 })).toMatchObject({ relay: 3 });
});
