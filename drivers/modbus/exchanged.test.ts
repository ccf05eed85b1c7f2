/** Boards of one kind whose plugs are exchanged: an order for one door never reaches the other. */
import { describe, expect, it } from 'vitest';
import {
  io,
  openTestLink,
  profileNamed,
  settingsWith,
  station,
  type TestDevice,
} from '../../test/drivers/modbus/link.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { settingsSchema } from '../../test/simulators/bus/plan.ts';
import type { Exchange } from '../bus/exchange.ts';
import type { Device } from './device.ts';
import { write } from './messages.ts';
import { sentByName } from './orders.ts';

const IO = profileNamed('gatehouse-io');
const pulse = (more: object = {}) => ({ hwId: 'GIO-0001', relay: 2, milliseconds: 3_000, ...more });

type Board = ReturnType<typeof station>;
const pulsesOf = ({ device }: Board) => (device.describe(0).pulse as { takenMs: number[] }).takenMs.length;

/** One at 17 and one at 18, on a link that has just begun. */
async function openBoards(first: Board, second: Board) {
  const stations = new Map<number, TestDevice>([
    [17, first],
    [18, second],
  ]);
  const link = await openTestLink({
    stations,
    profiles: { 'gatehouse-io': IO },
    options: { devices: [{ unitId: 17 }, { unitId: 18 }] },
  });
  return { link, stations, first, second };
}

describe('two devices that change places between two polls, or at the moment of an order', () => {
  /** GIO-0001 at 17 and GIO-0002 at 18, met. */
  async function openTwo() {
    const two = await openBoards(io('GIO-0001'), io('GIO-0002'));
    await two.link.clock.advance(2_000);
    const devices = [
      { address: 17, hwId: 'GIO-0001' },
      { address: 18, hwId: 'GIO-0002' },
    ];
    await two.link.execute('watch', { devices });
    return two;
  }

  it.each([
    ['and restart', true],
    ['with equal boot counts, when one reply was missed', false],
  ])('%s: each is known by its name again, and no order reaches the other door', async (_, restarts) => {
    const { link, stations, first, second } = await openTwo();
    await using _link = link;
    if (restarts) for (const { device } of [first, second]) device.restart(link.clock.monotonic());
    else {
      stations.clear();
      await link.clock.advance(250);
    }
    stations.set(17, second).set(18, first);
    await link.clock.advance(1_000);
    for (const hwId of ['GIO-0001', 'GIO-0001'])
      await link.execute('pulse', pulse({ hwId })).catch((error: unknown) => error);
    expect(pulsesOf(second)).toBe(0);
    await link.clock.advance(60_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true, address: 18 });
    expect(link.report('GIO-0002')).toMatchObject({ connected: true, address: 17 });
    expect(await link.execute('pulse', pulse())).toMatchObject({ relay: 2 });
    expect([pulsesOf(first) > 0, pulsesOf(second)]).toEqual([true, 0]);
  });

  it.each([
    ['before it was heard', false],
    ['after it was carried out', true],
  ])('at the moment of an order, %s: it is not sent again to the other one', async (_, isHeard) => {
    const { link, stations, first, second } = await openTwo();
    await using _link = link;
    first.behave = (request, answer) => {
      if (request[1] !== 16) return answer();
      if (isHeard) answer();
      stations.set(17, second).set(18, first);
      return null;
    };
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    first.behave = undefined;
    expect(pulsesOf(second)).toBe(0);
    await link.clock.advance(60_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true, address: 18 });
    expect(link.report('GIO-0002')).toMatchObject({ connected: true, address: 17 });
  });

  it.each([
    ['before an order', false],
    ['between the reading of the name and the order, as this process stands still', true],
  ])(
    'without a missed reply, with equal boot counts, %s: no order reaches the other door',
    async (_, isLate) => {
      const { link, stations, first, second } = await openTwo();
      await using _link = link;
      const exchange = () => stations.set(17, second).set(18, first);
      if (!isLate) exchange();
      else
        first.behave = ([, functionCode, page], answer) => {
          const reply = answer();
          // It gives its name, which is in holding registers from 0x0300 on.
          if (functionCode !== 3 || page !== 3) return reply;
          exchange();
          link.clock.hold(1_000);
          return reply;
        };
      await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
      expect([pulsesOf(first), pulsesOf(second)]).toEqual([0, 0]);
    },
  );

  it('without a missed reply, with equal boot counts: each is known by its name again within 40 s', async () => {
    const { link, stations, first, second } = await openTwo();
    await using _ = link;
    stations.set(17, second).set(18, first);
    await link.clock.advance(40_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true, address: 18 });
    expect(link.report('GIO-0002')).toMatchObject({ connected: true, address: 17 });
  });

  it('nor do settings', async () => {
    const { link, stations, first, second } = await openTwo();
    await using _ = link;
    const before = link.report('GIO-0001')?.settings;
    stations.set(17, second).set(18, first);
    const apply = {
      hwId: 'GIO-0001',
      settingsVersion: 7,
      settings: settingsWith({ unlockDurationMilliseconds: 9_000 }),
    };
    await expect(link.execute('applySettings', apply)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    await link.clock.advance(20_000);
    expect(link.report('GIO-0002')?.settings).toEqual(before);
  });

  it('after a reply was missed: nothing is sent before the name was read', async () => {
    const { link, stations, first, second } = await openTwo();
    await using _ = link;
    stations.clear();
    await link.clock.advance(250);
    stations.set(17, second).set(18, first);
    await expect(link.execute('pulse', pulse())).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect([pulsesOf(first), pulsesOf(second)]).toEqual([0, 0]);
  });

  it('nor where one of them is gone and the other has its address', async () => {
    const { link, stations, second } = await openTwo();
    await using _ = link;
    second.device.restart(link.clock.monotonic());
    stations.delete(18);
    stations.set(17, second);
    await link.clock.advance(1_000);
    for (let tries = 0; tries < 5; tries += 1) {
      await link.execute('pulse', pulse()).catch((error: unknown) => error);
      await link.clock.advance(1_000);
    }
    expect(pulsesOf(second)).toBe(0);
    await link.clock.advance(60_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: false });
    expect(link.report('GIO-0002')).toMatchObject({ connected: true, address: 17 });
  });
});

describe('two devices whose settings have different versions, as a gateway gives them', () => {
  const board = (hwId: string, settingsVersion: number) =>
    station({ kind: 'gatehouse-io', hwId, settings: settingsSchema.parse({ settingsVersion }) });

  /** GIO-0001 at 17 and GIO-0002 at 18, met, and polled long enough that names were read twice, and not just now. */
  async function openTwo(versions: [number, number] = [4, 5]) {
    const two = await openBoards(board('GIO-0001', versions[0]), board('GIO-0002', versions[1]));
    await two.link.clock.advance(75_000);
    const exchange = () => two.stations.set(17, two.second).set(18, two.first);
    return { ...two, exchange };
  }
  type Two = Awaited<ReturnType<typeof openTwo>>;
  /** What an order to 17 sends, until its answer. */
  async function ordered({ link }: Two): Promise<{ asked: string[]; result: unknown }> {
    const { length } = link.wire.sent;
    const result = await link.execute('pulse', pulse()).catch((error: unknown) => error);
    const sent = link.wire.sent.slice(length).map(({ bytes }) => Buffer.from(bytes));
    return { asked: sent.filter(([unit]) => unit === 17).map(kindOf), result };
  }
  const kindOf = (frame: Buffer) => `${frame[1]} ${frame.toString('hex', 2, 4)} ${frame.readUInt16BE(4)}`;
  const [NAME, POLL, ORDER, LOOK] = ['3 0300 8', '3 0000 10', '16 0200 4', '3 0002 8'];
  const withoutPolls = (asked: readonly string[]) => asked.filter((one) => one !== POLL);

  it('an order asks for no name that a poll has just shown: it is one write and one look', async () => {
    const two = await openTwo();
    await using _ = two.link;
    const { asked, result } = await ordered(two);
    expect([withoutPolls(asked), result]).toMatchObject([[ORDER, LOOK], { relay: 2 }]);
  });

  it.each([
    ['the same version, also after it', 4, [NAME, ORDER, LOOK, NAME]],
    ['the version of a device from the factory', 0, [NAME, ORDER, LOOK]],
  ])('asks where both have %s', async (_, version, expected) => {
    const two = await openTwo([version, version]);
    await using _link = two.link;
    const { asked, result } = await ordered(two);
    expect([withoutPolls(asked), result]).toMatchObject([expected, { relay: 2 }]);
  });

  it('changed places at the order, with the same version: it is not confirmed', async () => {
    const two = await openTwo([4, 4]);
    const { link, first, second, exchange } = two;
    await using _ = link;
    first.behave = ([, functionCode, page], answer) => {
      if (functionCode === 3 && page === 3) exchange();
      return answer();
    };
    expect((await ordered(two)).result).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    expect([pulsesOf(first), pulsesOf(second)]).toEqual([0, 1]);
  });

  it('asks after this process stood still for longer than half a second', async () => {
    const two = await openTwo();
    await using _ = two.link;
    two.link.clock.hold(600);
    expect(withoutPolls((await ordered(two)).asked)).toEqual([NAME, ORDER, LOOK]);
  });

  it('asks for none either once new settings are in force: the next poll reads it', async () => {
    const two = await openTwo();
    await using _ = two.link;
    const settings = settingsWith({ unlockDurationMilliseconds: 9_000 });
    await two.link.execute('applySettings', { hwId: 'GIO-0001', settingsVersion: 6, settings });
    await two.link.clock.advance(1_000);
    expect(withoutPolls((await ordered(two)).asked)).toEqual([ORDER, LOOK]);
  });

  it('does not reach a device that was met at the address while the order waited', async () => {
    const clock = manualClock();
    const device = {
      unit: 17,
      profile: IO,
      hwId: () => 'GIO-0002',
      shownName: () => 'GIO-0002',
      namedAt: clock.monotonic,
      read: () => undefined,
    } as unknown as Device;
    const asked: (number | undefined)[] = [];
    const exchange = async <Reply>({ request }: Exchange<Reply>) => {
      asked.push(request()[1]);
      return [] as Reply;
    };
    const close = write(17, { functionCode: 5, address: 0, value: true });
    const order = { hwId: 'GIO-0001', deadline: 5_000, attempts: 1, signal: new AbortController().signal };
    const sent = sentByName({ bus: { exchange, outstanding: () => 0 }, device, clock }, close, order);
    await expect(sent).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect(asked).toEqual([3]);
  });

  it('changed places while they were read again, after their names were: they are known again', async () => {
    const two = await openTwo();
    const { link, first, second, exchange } = two;
    await using _ = link;
    first.behave = ([, functionCode, page], answer) => {
      const reply = answer();
      if (functionCode !== 3 || page !== 3) return reply;
      first.behave = undefined;
      exchange();
      return reply;
    };
    for (const { device } of [first, second]) device.restart(link.clock.monotonic());
    await link.clock.advance(12_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true, address: 18 });
    expect(link.report('GIO-0002')).toMatchObject({ connected: true, address: 17 });
  });

  it('changed places since the last poll: no settings reach the other one', async () => {
    const two = await openTwo();
    await using _ = two.link;
    const settings = settingsWith({ unlockDurationMilliseconds: 9_000 });
    const { length } = two.link.wire.sent;
    two.exchange();
    const apply = { hwId: 'GIO-0001', settingsVersion: 6, settings };
    await expect(two.link.execute('applySettings', apply)).rejects.toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect(two.link.wire.sent.slice(length).filter(({ bytes }) => bytes[1] === 16)).toEqual([]);
  });

  it('changed places and back, while they were read again: no input is shown as that of the other', async () => {
    const two = await openTwo();
    const { link, stations, first, second, exchange } = two;
    await using _ = link;
    for (const { device } of [first, second]) {
      device.pins.setInput(device === second.device ? 3 : 1, true, link.clock.monotonic());
    }
    await link.clock.advance(1_000);
    const [events, shown] = [link.events.length, link.history('GIO-0001').length];
    exchange();
    let polled = 0;
    second.behave = ([, functionCode, page, register], answer) => {
      const reply = answer();
      // The last that is read of a contact is what a poll reads.
      polled += Number(functionCode === 3 && page === 0 && register === 0);
      if (stations.get(17) === second && polled === 2) stations.set(17, first).set(18, second);
      return reply;
    };
    await link.clock.advance(12_000);
    expect(link.events.slice(events)).toEqual([]);
    const levels = link.history('GIO-0001').slice(shown);
    expect(levels.filter(({ levels }) => levels.input3 === true)).toEqual([]);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true, address: 17, levels: { input1: true } });
    expect(link.report('GIO-0002')).toMatchObject({ connected: true, address: 18, levels: { input3: true } });
  });

  it('changed places between the last poll and the order: it is not confirmed', async () => {
    const two = await openTwo();
    await using _ = two.link;
    two.exchange();
    const { asked, result } = await ordered(two);
    expect([withoutPolls(asked), result]).toMatchObject([[ORDER, LOOK], { code: 'OUTCOME_UNKNOWN' }]);
  });

  it('changed places without a missed reply, with equal boot counts: the next poll shows it, and no input is shown as that of the other', async () => {
    const two = await openTwo();
    const { link, first, second, exchange } = two;
    await using _ = link;
    first.device.pins.setInput(1, true, link.clock.monotonic());
    second.device.pins.setInput(3, true, link.clock.monotonic());
    await link.clock.advance(5_700);
    const before = link.history('GIO-0001').length;
    exchange();
    // What is known is reported again meanwhile, as every 5 s.
    await link.clock.advance(250);
    expect((await ordered(two)).result).toMatchObject({ code: 'DEVICE_OFFLINE' });
    expect([pulsesOf(first), pulsesOf(second)]).toEqual([0, 0]);
    await link.clock.advance(12_000);
    expect(link.report('GIO-0001')).toMatchObject({ connected: true, address: 18, levels: { input1: true } });
    expect(link.report('GIO-0002')).toMatchObject({ connected: true, address: 17, levels: { input3: true } });
    const shown = link.history('GIO-0001').slice(before);
    expect(shown.filter(({ levels }) => levels.input3 === true)).toEqual([]);
  });
});
