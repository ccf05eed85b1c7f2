/** Relays that do not open at the end of a pulse, on a manual clock. */
import { describe, expect, it } from 'vitest';
import {
  io,
  openOne,
  openTestLink,
  profileNamed,
  settingsWith,
  station,
  type TestDevice,
} from '../../test/drivers/modbus/link.ts';
import type { ManualClock } from '../../test/manual-clock.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import { profileSchema } from './profile.ts';

const hwId = 'bus-1-1';
const pulse = (more: object = {}) => ({ hwId, relay: 5, milliseconds: 2_000, ...more });
const profile = 'waveshare-relay-8';

async function openWith(device: TestDevice, more: { clock?: ManualClock } = {}) {
  const stations = new Map([[1, device]]);
  const profiles = { [profile]: profileNamed(profile) };
  const link = await openTestLink({ stations, profiles, options: { devices: [{ unitId: 1 }] }, ...more });
  await link.clock.advance(1_500);
  return link;
}

const alarms = ({ events }: Awaited<ReturnType<typeof openWith>>) =>
  events.flatMap(({ kind, data }) => (kind === 'alarm' ? [data] : []));

it('is read after its pulse behind the commands that wait meanwhile', async () => {
  const relays = () => station({ kind: 'waveshare-relay-8' });
  const stations = new Map<number, TestDevice>([1, 2, 3].map((unitId) => [unitId, relays()]));
  const profiles = { [profile]: profileNamed(profile) };
  const devices = [1, 2, 3].map((unitId) => ({ unitId }));
  await using link = await openTestLink({ stations, profiles, options: { devices, pollEveryMs: 60_000 } });
  await link.clock.advance(1_500);
  await link.execute('pulse', pulse());
  const checkedAt = link.clock.monotonic() + 2_000 * 1.05 + 1_000;
  await link.clock.advance(2_000 * 1.05 + 1_000 - 60);
  // Device 2 keeps the bus until its time is over: the check of device 1 falls due, then a command for device 3 comes.
  const silent = stations.get(2);
  if (silent) silent.behave = () => null;
  const fire = (unit: number) =>
    link.driver
      .execute(
        {
          kind: 'pulse',
          data: pulse({ hwId: `bus-1-${unit}`, settingsVersion: 0 }),
          deadline: link.clock.monotonic() + 3_000,
        },
        new AbortController().signal,
      )
      .catch(() => undefined);
  const lost = fire(2);
  await link.clock.advance(80);
  expect(link.clock.monotonic()).toBeGreaterThan(checkedAt);
  const before = link.wire.sent.length;
  const fired = fire(3);
  await link.clock.advance(4_000);
  await Promise.all([lost, fired]);
  const asked = link.wire.sent.slice(before).map(({ bytes }) => bytes[0]);
  expect(asked.indexOf(1)).toBeGreaterThan(asked.indexOf(3));
  expect(asked.indexOf(3)).toBeGreaterThanOrEqual(0);
});

describe('a board that takes any value of function 5 as ON', () => {
  it('has its relay opened after the time of the pulse, which is reported, and fires nothing more', async () => {
    const device = station({ kind: 'latching-relay-8' });
    await using link = await openWith(device);
    await link.execute('pulse', pulse());
    await link.clock.advance(10_000);
    const [on, off] = device.device.pins.history;
    expect(device.device.pins.outputs()).toBe(0);
    expect((off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0)).toBeLessThan(2_000 * 1.05 + 1_500);
    expect(alarms(link)).toMatchObject([
      { hwId, alarm: 'relay', raised: true },
      { hwId, alarm: 'relay', raised: false },
    ]);
    expect(link.report(hwId)).toMatchObject({ relayFault: { relay: 5, fault: 'openedByGateway' } });
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(/output5 was still closed after its pulse/),
    });
    expect(device.device.pins.history).toHaveLength(2);
  });

  it('is ordered to open until it shows that it has, and shown as closed until then', async () => {
    const device = station({ kind: 'latching-relay-8' });
    await using link = await openWith(device);
    await link.execute('pulse', pulse());
    // Acknowledged, and not done.
    device.behave = (request, answer) =>
      request[1] === 5 && request[4] === 0 ? framed(1, request.subarray(1, 6)) : answer();
    await link.clock.advance(20_000);
    expect(link.report(hwId)).toMatchObject({
      levels: { output5: true },
      relayFault: { fault: 'stillClosed' },
    });
    device.behave = undefined;
    await link.clock.advance(5_000);
    expect(device.device.pins.outputs()).toBe(0);
    expect(link.report(hwId)).toMatchObject({ relayFault: { fault: 'openedByGateway' } });
  });

  it('is opened after the time of its pulse also where its link was lost meanwhile, and opened again', async () => {
    const device = station({ kind: 'latching-relay-8' });
    const first = await openWith(device);
    await first.execute('pulse', pulse());
    await first[Symbol.asyncDispose]();
    await using link = await openWith(device, first);
    await link.clock.advance(4_000);
    const [on, off] = device.device.pins.history;
    expect((off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0)).toBeLessThan(2_000 * 1.05 + 1_500);
    expect(alarms(link)).toMatchObject([{ raised: true }, { raised: false }]);
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'REFUSED' });
  });

  it('that was closed by an earlier life of the gateway is opened once no pulse of that can be left', async () => {
    const device = station({ kind: 'latching-relay-8' });
    const first = await openWith(device);
    await first.execute('pulse', pulse());
    await first[Symbol.asyncDispose]();
    await using link = await openWith(device);
    const settings = settingsWith({
      relayIndex: 5,
      unlockDurationMilliseconds: 2_000,
      useInputPinMemory: false,
    });
    await link.execute('applySettings', { hwId, settingsVersion: 1, settings });
    await link.clock.advance(15_000);
    expect(device.device.pins.outputs()).toBe(0b10_0000);
    await link.clock.advance(15_000);
    expect(device.device.pins.outputs()).toBe(0);
    expect(link.report(hwId)).toMatchObject({ relayFault: null });
    expect(alarms(link)).toMatchObject([{ raised: true }, { raised: false }]);
  });
});

it('is not said to have opened while it cannot be read', async () => {
  const device = station({ kind: profile });
  await using link = await openWith(device);
  await link.execute('pulse', pulse());
  device.behave = () => null;
  await link.clock.advance(20_000);
  expect(link.report(hwId)).toMatchObject({ connected: false, relayFault: { relay: 5, fault: 'notRead' } });
  device.behave = undefined;
  await link.clock.advance(60_000);
  expect(link.report(hwId)).toMatchObject({ connected: true, relayFault: null });
  expect(alarms(link)).toEqual([]);
});

it('of a board that keeps its time is read after it, and nothing is reported', async () => {
  const device = station({ kind: profile });
  await using link = await openWith(device);
  for (const relay of [5, 6, 5]) await link.execute('pulse', pulse({ relay }));
  await link.clock.advance(30_000);
  expect(alarms(link)).toEqual([]);
  expect(link.history(hwId).every(({ relayFault }) => relayFault === null)).toBe(true);
  await link.execute('pulse', pulse());
  expect(device.device.pins.outputs()).toBe(0b10_0000);
});

it('of a board whose order an adapter delivered late is not cut, nor the board distrusted', async () => {
  const device = station({ kind: profile });
  await using link = await openWith(device);
  let held: Uint8Array | undefined;
  device.behave = (request, answer) => {
    if (request[1] !== 5) return answer();
    held = request;
    return null;
  };
  // It does close later, so that the open relay that was read proved nothing.
  await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  device.behave = undefined;
  await link.clock.advance(2_700);
  const at = link.clock.monotonic();
  device.device.advance(at);
  device.device.answer(held ?? Buffer.of(), at);
  await link.clock.advance(10_000);
  const [on, off] = device.device.pins.history;
  expect((off?.monotonicMs ?? 0) - (on?.monotonicMs ?? 0)).toBeGreaterThanOrEqual(2_000);
  expect(link.history(hwId).every(({ relayFault }) => relayFault === null)).toBe(true);
  await link.execute('pulse', pulse());
});

it('of a controller that times pulses by a block is reported, for nothing else can open it', async () => {
  const { link, device } = await openOne(io());
  await using _ = link;
  await link.execute('pulse', { hwId: 'GIO-0001', relay: 2, milliseconds: 1_000 });
  device.device.pins.setOutput(2, true, link.clock.monotonic());
  await link.clock.advance(5_000);
  expect(link.report('GIO-0001')).toMatchObject({ relayFault: { relay: 2, fault: 'stillClosed' } });
  await expect(
    link.execute('pulse', { hwId: 'GIO-0001', relay: 2, milliseconds: 1_000 }),
  ).rejects.toMatchObject({ code: 'REFUSED' });
});

it('must be a coil, so that it can be opened', () => {
  const board = profileNamed(profile) as { outputs: object };
  const withTable = (table: string) =>
    profileSchema.safeParse({ ...board, outputs: { ...board.outputs, table } }).success;
  expect(withTable('coil')).toBe(true);
  expect(withTable('discrete')).toBe(false);
});
