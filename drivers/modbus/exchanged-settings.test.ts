/** Boards of one kind that change places while settings are written: no input of the one is counted as that of the other. */
import { describe, expect, it } from 'vitest';
import {
  openTestLink,
  profileNamed,
  settingsWith,
  station,
  type TestDevice,
} from '../../test/drivers/modbus/link.ts';
import { framed } from '../../test/simulators/bus/modbus/frame.ts';
import { modbus } from '../../test/simulators/bus/modbus/protocol.ts';
import { settingsSchema } from '../../test/simulators/bus/plan.ts';
import { DriverError } from '../contract/driver.ts';

const WRITE = 16;
/**
 * Requests to either device, from when a write begins: the settings and the name that it looks at (2, 3), the write (4), and the name and the
 * settings that are read back (6 to 8), with polls of the inputs between them.
 */
const MOMENTS = 8;
const wanted = (settingsVersion: number) => ({
  settingsVersion,
  settings: settingsWith({
    pins: ['input1', 'output2'],
    unlockDurationMilliseconds: 1_000 * settingsVersion,
  }),
});

/**
 * GIO-0001 at 17 with settings of version 4 and GIO-0002 at 18 with version 5, both with a memory of inputs that has counted, and not the same. `exchangeAt`: they change
 * places before these requests are answered.
 */
async function openTwo(exchangeAt: readonly number[] = []) {
  const board = (hwId: string, settingsVersion: number, activations: number) => {
    const settings = settingsSchema.parse({
      ...wanted(settingsVersion).settings,
      settingsVersion,
      ioPins: 0x0402,
    });
    const one = station({ kind: 'gatehouse-io', hwId, settings });
    for (let change = 1; change <= 2 * activations; change += 1)
      one.device.pins.setInput(1, change % 2 === 1, 0);
    return one;
  };
  const boards = [board('GIO-0001', 4, 2), board('GIO-0002', 5, 5)] as const;
  const stations = new Map<number, TestDevice>();
  let [asked, at] = [Number.NEGATIVE_INFINITY, 17];
  function exchange(): void {
    at = 35 - at;
    stations.set(at, boards[0]).set(35 - at, boards[1]);
  }
  stations.set(17, boards[0]).set(18, boards[1]);
  const behave: TestDevice['behave'] = (request, answer) => {
    asked += 1;
    if (!exchangeAt.includes(asked)) return answer();
    exchange();
    const there = stations.get(request[0] ?? 0) ?? boards[0];
    return modbus.readdressed(there.device.answer(request, 0) ?? new Uint8Array(), request[0] ?? 0);
  };
  for (const one of boards) one.behave = behave;
  const link = await openTestLink({
    stations,
    profiles: { 'gatehouse-io': profileNamed('gatehouse-io') },
    options: { devices: [{ unitId: 17 }, { unitId: 18 }] },
  });
  await link.clock.advance(2_000);
  return {
    link,
    boards,
    exchange,
    begin: () => {
      asked = 0;
    },
    /** Requests since then. */
    asked: () => asked,
  };
}

describe('two devices that change places', () => {
  it('are reported with no settings but their own, and as connected in the end', async () => {
    const { link, exchange } = await openTwo();
    await using _ = link;
    const devices = [
      { address: 17, hwId: 'GIO-0001' },
      { address: 18, hwId: 'GIO-0002' },
    ];
    await link.execute('watch', { devices });
    exchange();
    await link.clock.advance(12_000);
    for (const [hwId, version, address] of [
      ['GIO-0001', 4, 18],
      ['GIO-0002', 5, 17],
    ] as const) {
      const shown = link.history(hwId).map(({ reportedSettingsVersion }) => reportedSettingsVersion);
      expect(new Set(shown)).toEqual(new Set([version]));
      expect(link.report(hwId)).toMatchObject({ connected: true, address });
    }
  });

  it.each([
    ['and stay there', () => []],
    ['and are back for the next request', (there: number) => [there + 1]],
  ])('at any moment after a restart, %s: are shown with their own settings alone', async (_, back) => {
    for (let there = 1; there <= MOMENTS; there += 1) {
      const two = await openTwo([there, ...back(there)]);
      const { link, boards } = two;
      await using _ = link;
      for (const { device } of boards) device.restart(link.clock.monotonic());
      two.begin();
      await link.clock.advance(12_000);
      for (const [hwId, version] of [
        ['GIO-0001', 4],
        ['GIO-0002', 5],
      ] as const) {
        const shown = link.history(hwId).map(({ settings }) => settings?.unlockDurationMilliseconds);
        expect([there, hwId, ...new Set(shown)]).toEqual([there, hwId, 1_000 * version]);
      }
    }
  });

  it('are not written what they have', async () => {
    const { link } = await openTwo();
    await using _ = link;
    await link.execute('applySettings', { hwId: 'GIO-0001', ...wanted(4) });
    expect(link.wire.sent.filter(({ bytes }) => bytes[1] === WRITE)).toEqual([]);
    expect(link.report('GIO-0001')).toMatchObject({
      reportedSettingsVersion: 4,
      settings: wanted(4).settings,
    });
  });

  it('at any moment of a write, and back at any other: no activation is counted that was not made', async () => {
    const counted: unknown[] = [];
    let applied = 0;
    for (let there = 1; there <= MOMENTS; there += 1)
      for (let back = there + 1; back <= there + MOMENTS; back += 1) {
        const two = await openTwo([there, back]);
        const { link } = two;
        await using _ = link;
        two.begin();
        // As the daemon does, once a device shows others than are wanted of it.
        for (const [hwId, version] of [
          ['GIO-0001', 6],
          ['GIO-0002', 5],
          ['GIO-0001', 6],
        ] as const) {
          await link
            .execute('applySettings', { hwId, ...wanted(version) })
            .then(() => {
              applied += 1;
            })
            .catch((error: unknown) => expect(error).toBeInstanceOf(DriverError));
          await link.clock.advance(300);
        }
        await link.clock.advance(3_000);
        expect(two.asked()).toBeGreaterThan(back);
        expect(link.wire.sent.some(({ bytes }) => bytes[1] === WRITE)).toBe(true);
        counted.push(...link.events.map(({ data }) => ({ there, back, ...(data as object) })));
      }
    expect(counted).toEqual([]);
    // More than one of the three in each run, on average.
    expect(applied).toBeGreaterThan(MOMENTS ** 2);
  });

  it('as settings are written, and the other one refuses them: they are not refused for good', async () => {
    const { link, boards, exchange } = await openTwo();
    await using _ = link;
    const [first, second] = boards;
    const refusal = (request: Uint8Array) => framed(request[0] ?? 0, [(request[1] ?? 0) | 0x80, 3]);
    first.behave = (request, answer) => {
      if (request[1] !== WRITE) return answer();
      exchange();
      return refusal(request);
    };
    const apply = { hwId: 'GIO-0001', ...wanted(6) };
    await expect(link.execute('applySettings', apply)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await link.clock.advance(12_000);
    first.behave = (request, answer) => (request[1] === WRITE ? refusal(request) : answer());
    await expect(link.execute('applySettings', apply)).rejects.toMatchObject({ code: 'REFUSED' });
    expect(second.device.describe(0)).toMatchObject({ settings: { settingsVersion: 5 } });
  });

  it('and took settings that cleared its counters, was written its own again there, and is back: none is counted', async () => {
    const { link, boards, exchange } = await openTwo();
    await using _ = link;
    const [first, second] = boards;
    let written = 0;
    first.behave = (request, answer) => {
      const reply = answer();
      if (request[1] === WRITE && ++written === 2) exchange();
      return reply;
    };
    second.behave = (request, answer) => {
      if (request[1] === WRITE && written === 0) {
        exchange();
        return first.behave?.(request, () =>
          modbus.readdressed(first.device.answer(request, 0) ?? new Uint8Array(), request[0] ?? 0),
        ) as Uint8Array;
      }
      // Its plug is loose at the place of the other one.
      return request[0] === 17 ? null : answer();
    };
    const others = { ...wanted(6), settings: { ...wanted(6).settings, useInputPinMemory: false } };
    await link.execute('applySettings', { hwId: 'GIO-0002', ...others }).catch(() => undefined);
    expect(first.device.describe(0)).toMatchObject({ inputEdges: [0, 0, 0, 0] });
    for (let tries = 0; tries < 50 && written < 2; tries += 1) {
      await link.clock.advance(100);
      await link.execute('applySettings', { hwId: 'GIO-0001', ...wanted(4) }).catch(() => undefined);
    }
    expect(written).toBe(2);
    await link.clock.advance(12_000);
    expect(link.report('GIO-0001')).toMatchObject({
      connected: true,
      address: 17,
      reportedSettingsVersion: 4,
    });
    expect(link.events).toEqual([]);
    first.device.pins.setInput(1, true, link.clock.monotonic());
    await link.clock.advance(1_000);
    expect(link.events).toMatchObject([{ data: { hwId: 'GIO-0001', activations: 1 } }]);
  });

  it('and back, the other one unheard meanwhile: each activation is counted once', async () => {
    const { link, boards, exchange } = await openTwo();
    await using _ = link;
    const [first, second] = boards;
    const press = async (times: number) => {
      for (let change = 1; change <= 2 * times; change += 1)
        first.device.pins.setInput(1, change % 2 === 1, link.clock.monotonic());
      await link.clock.advance(1_000);
    };
    second.behave = () => null;
    exchange();
    await link.clock.advance(12_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true, address: 18 });
    await press(2);
    exchange();
    await link.clock.advance(12_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true, address: 17 });
    await press(3);
    expect(link.events).toMatchObject([
      { data: { hwId: 'GIO-0001', activations: 2 } },
      { data: { hwId: 'GIO-0001', activations: 3 } },
    ]);
  });
});
