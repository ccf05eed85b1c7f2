/** Whose turn it is, seen on the wire. */
import { describe, expect, it, vi } from 'vitest';
import {
  ask,
  command,
  forever,
  frame,
  openTestBus,
  optionsWith,
  outcomeOf,
  pollOf,
  says,
} from '../../test/drivers/bus/bus.ts';
import type { TestPort } from '../../test/drivers/bus/port.ts';
import { characterMs, rtuGapMs } from './options.ts';

const TC = characterMs(optionsWith());
/** Request and reply of four characters, 1 ms between them, and the silence after them. */
const TURN_MS = 8 * TC + 1 + rtuGapMs(optionsWith());

/** As long as a command waits for a device that is absent: its request, and reply.ts. */
const YIELD_MS = 4 * TC + 3 + 4 * TC;

const addresses = (wire: TestPort, from = 0) => wire.sent.slice(from).map(({ bytes }) => bytes[0] ?? 0);

/** How often each was asked. */
function tally(asked: number[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const address of asked) counts[address] = (counts[address] ?? 0) + 1;
  return counts;
}

const dead =
  (...silent: number[]) =>
  (request: Uint8Array) =>
    silent.includes(request[0] ?? 0) ? null : says(7)(request);

describe('orders', () => {
  it('come before polls, but after six commands in a row one poll that is due has its turn', async () => {
    const { bus, clock, soon, wire } = await openTestBus(says(7));
    for (const address of [1, 2]) bus.poll(pollOf(address));
    for (let time = 0; time < 12; time += 1) void bus.exchange(ask(9), command(soon()), forever);
    await clock.advance(13.5 * TURN_MS);
    expect(addresses(wire)).toEqual([9, 9, 9, 9, 9, 9, 1, 9, 9, 9, 9, 9, 9, 2]);
  });

  it('of settings take turns with polls, and come after commands', async () => {
    const { bus, clock, soon, wire } = await openTestBus(says(7));
    bus.poll(pollOf(1));
    for (let time = 0; time < 3; time += 1) {
      void bus.exchange(ask(8), { ...command(soon()), class: 'settings' }, forever);
    }
    for (let time = 0; time < 8; time += 1) void bus.exchange(ask(9), command(soon()), forever);
    await clock.advance(14.5 * TURN_MS);
    expect(addresses(wire)).toEqual([9, 9, 9, 9, 9, 9, 1, 9, 9, 8, 1, 8, 1, 8, 1]);
  });

  it('that check a relay come after commands, share their limit, and come before settings', async () => {
    const { bus, clock, soon, wire } = await openTestBus(says(7));
    bus.poll(pollOf(1));
    void bus.exchange(ask(8), { ...command(soon()), class: 'settings' }, forever);
    for (let time = 0; time < 6; time += 1) {
      void bus.exchange(ask(7), { ...command(soon()), class: 'check' }, forever);
    }
    for (let time = 0; time < 2; time += 1) void bus.exchange(ask(9), command(soon()), forever);
    await clock.advance(10.5 * TURN_MS);
    expect(addresses(wire)).toEqual([9, 9, 7, 7, 7, 7, 1, 7, 7, 8, 1]);
  });

  it('that end a pulse come first, and wait for no late reply', async () => {
    let isLost = false;
    const { bus, clock, soon, wire } = await openTestBus((request) => (isLost ? null : says(7)(request)));
    bus.poll(pollOf(1, 100));
    await clock.advance(99);
    isLost = true;
    const before = wire.sent.length;
    await vi.waitFor(async () => {
      await clock.advance(1);
      expect(wire.sent.length).toBe(before + 1);
    });
    isLost = false;
    const missedAt = wire.sent.at(-1)?.at ?? 0;
    for (let time = 0; time < 6; time += 1) void bus.exchange(ask(9, 1), command(soon()), forever);
    void bus.exchange(ask(1, 2), { ...command(soon()), class: 'off' }, forever);
    await clock.advance(1_000);
    const off = wire.sent.find(({ bytes }) => bytes[1] === 2);
    expect(wire.sent[before + 1]).toBe(off);
    expect((off?.at ?? 0) - missedAt).toBeLessThan(1.5 * optionsWith().turnaroundMaxMs);
  });

  it('have the next turn whatever else is due', async () => {
    const { bus, clock, soon, wire } = await openTestBus(says(7));
    for (const address of [1, 2, 3, 4]) bus.poll(pollOf(address));
    await clock.advance(10.5 * TURN_MS);
    const outcome = outcomeOf(bus.exchange(ask(9), command(soon()), forever));
    await clock.advance(2 * TURN_MS);
    expect(outcome()).toBe(7);
    expect(wire.sent[11]?.bytes[0]).toBe(9);
  });
});

describe('polls', () => {
  it('leave the bus no idle moment while one is due, and none of equals behind', async () => {
    const { bus, clock, wire } = await openTestBus(says(7));
    for (let address = 1; address <= 5; address += 1) bus.poll(pollOf(address));
    await clock.advance(100 * TURN_MS - 0.1);
    expect(tally(addresses(wire))).toEqual({ 1: 20, 2: 20, 3: 20, 4: 20, 5: 20 });
    expect(bus.report()).toMatchObject({ utilisation: expect.closeTo(1, 2) });
    expect(bus.report().pollsPerSecond).toBeCloseTo(1_000 / TURN_MS, -1);
    expect(bus.report().devices[4]?.refreshMs).toBeCloseTo(5 * TURN_MS);
  });

  it('keep their intervals, the earliest due first', async () => {
    const { bus, clock, wire } = await openTestBus(says(7));
    bus.poll(pollOf(1, 100));
    bus.poll(pollOf(2, 250));
    bus.poll(pollOf(3, 1_000));
    await clock.advance(1_999);
    expect(tally(addresses(wire))).toEqual({ 1: 20, 2: 8, 3: 2 });
    const times = wire.sent.filter(({ bytes }) => bytes[0] === 1).map(({ at }) => at);
    // Late by one exchange of another one at most, and never early.
    for (const [index, at] of times.entries()) {
      const sinceLast = at - (times[index - 1] ?? at - 100);
      expect(sinceLast).toBeGreaterThanOrEqual(100 - 1e-6);
      expect(sinceLast).toBeLessThan(100 + 2 * TURN_MS);
    }
  });

  it('may ask something else each time, begin late, and end', async () => {
    const { bus, clock, wire } = await openTestBus(says(7));
    let question = 0;
    const poll = { ...pollOf(1, 100), begin: () => ask(1, ++question) };
    await clock.advance(50);
    const reading = bus.poll(poll);
    expect(() => bus.poll(pollOf(1))).toThrow('on the list twice');
    await clock.advance(310);
    reading[Symbol.dispose]();
    reading[Symbol.dispose]();
    await clock.advance(1_000);
    expect(wire.sent.map(({ bytes }) => bytes[1])).toEqual([1, 2, 3, 4]);
    bus.poll(pollOf(1, 100));
    await clock.advance(50);
    expect(wire.sent).toHaveLength(5);
  });

  it('are not called after they ended, not even what was under way', async () => {
    const { bus, clock, wire } = await openTestBus(says(7));
    const poll = pollOf(1);
    const reading = bus.poll(poll);
    await clock.advance(1);
    expect(wire.sent).toHaveLength(1);
    reading[Symbol.dispose]();
    await clock.advance(100);
    expect(poll.calls).toEqual([]);
  });

  it('of a defective driver harm no one else', async () => {
    const { bus, clock, wire } = await openTestBus(says(7));
    const defect = () => {
      throw new Error('defect');
    };
    bus.poll({ ...pollOf(1), begin: defect });
    bus.poll({ ...pollOf(2), settle: defect, alive: defect });
    const sound = pollOf(3);
    bus.poll(sound);
    await clock.advance(1_000);
    expect(sound.calls.length).toBeGreaterThan(50);
    expect(wire.complaints).toHaveLength(1);
  });
});

describe('dead devices', () => {
  it('are reported once, and once when they are back', async () => {
    const silent = [2];
    const { bus, clock } = await openTestBus((request) => dead(...silent)(request));
    const [one, two] = [pollOf(1, 100), pollOf(2, 100)];
    bus.poll(one);
    bus.poll(two);
    await clock.advance(2_000);
    expect(two.calls.filter((calls) => calls !== 'NO_REPLY')).toEqual(['dead']);
    expect(two.calls.indexOf('dead')).toBe(2);
    silent.pop();
    await clock.advance(5_000);
    expect(two.calls.filter((calls) => !/NO_REPLY|reply/.test(calls))).toEqual(['dead', 'alive']);
    expect(one.calls.filter((calls) => !calls.startsWith('reply'))).toEqual(['alive']);
    expect(bus.report().devices.map(({ alive }) => alive)).toEqual([true, true]);
  });

  it('cost the healthy ones less than a tenth of their refresh', async () => {
    async function refreshOf(healthy: number[], silent: number[]): Promise<number> {
      const { bus, clock } = await openTestBus(dead(...silent));
      for (const address of [...healthy, ...silent]) bus.poll(pollOf(address));
      // What it takes to know which device to ask less often is over.
      await clock.advance(3_000);
      const counts = () => bus.report().devices.filter(({ alive }) => alive);
      const total = () => counts().reduce((sum, { counters }) => sum + counters.replies, 0);
      const before = total();
      await clock.advance(10_000);
      return (10_000 * healthy.length) / (total() - before);
    }
    const healthy = [1, 2, 3, 4, 5, 6, 7, 8];
    const alone = await refreshOf(healthy, []);
    const withDead = await refreshOf(healthy, [9, 10]);
    expect(withDead / alone).toBeLessThan(1.1);
  });

  it('are asked ever more rarely, and once in a cycle of the healthy ones at most', async () => {
    const { bus, clock, wire } = await openTestBus(dead(8, 9, 10), { turnaroundMaxMs: 5 });
    for (let address = 1; address <= 10; address += 1) bus.poll(pollOf(address));
    await clock.advance(70_000);
    const asked = addresses(wire);
    const opened = asked.indexOf(8, asked.indexOf(8, asked.indexOf(8) + 1) + 1) + 3;
    const probes = asked.flatMap((address, index) => (address >= 8 && index > opened ? [index] : []));
    for (const [index, place] of probes.entries()) {
      expect(place - (probes[index - 1] ?? -10)).toBeGreaterThan(7);
    }
    const times = wire.sent.filter(({ bytes }) => bytes[0] === 8).map(({ at }) => at);
    expect(times.length).toBeLessThan(15);
    const last = times.slice(-2);
    expect((last[1] ?? 0) - (last[0] ?? 0)).toBeGreaterThanOrEqual(30_000);
    expect((last[1] ?? 0) - (last[0] ?? 0)).toBeLessThan(30_500);
  });

  it.each([[[1]], [[1, 2, 3, 4]]])('are all back within 1.5 s after a bus was silent (%j)', async (all) => {
    let isSilent = false;
    const { bus, clock, wire } = await openTestBus((request) => (isSilent ? null : says(7)(request)));
    const polls = all.map((address) => pollOf(address, 200));
    for (const poll of polls) bus.poll(poll);
    for (const minutes of [0.02, 0.1, 1, 10]) {
      isSilent = true;
      await clock.advance(minutes * 60_000);
      const { length } = wire.sent;
      const probes = minutes < 1 ? 25 : 11;
      await clock.advance(10_000);
      expect(wire.sent.length - length).toBeLessThanOrEqual(probes);
      isSilent = false;
      await clock.advance(1_500);
      expect(bus.report().devices.filter(({ alive }) => !alive)).toEqual([]);
    }
  });

  it('are probed as shortly as a healthy one answers, and now and then for all the time they may have', async () => {
    const { bus, clock, wire } = await openTestBus(dead(2), { turnaroundMaxMs: 500 });
    bus.poll(pollOf(1));
    bus.poll(pollOf(2));
    await clock.advance(70_000);
    const waits = wire.sent.flatMap(({ bytes, at }, index) =>
      bytes[0] === 2 ? [(wire.sent[index + 1]?.at ?? at) - at] : [],
    );
    expect(waits.slice(0, 3).every((wait) => wait > 500)).toBe(true);
    expect(waits.slice(3, 10).every((wait) => wait < 30)).toBe(true);
    expect(waits[10]).toBeGreaterThan(500);
  });

  it('let a command have the wire when a healthy one would have, also while they are given all their time', async () => {
    const { bus, clock, soon, wire } = await openTestBus(dead(2, 3), { turnaroundMaxMs: 200 });
    for (const address of [1, 2, 3]) bus.poll(pollOf(address));
    await clock.advance(5_000);
    const waits: number[] = [];
    // Past the minute in which each has its one probe of full length.
    while (clock.monotonic() < 120_000) {
      const issuedAt = clock.monotonic();
      const from = wire.sent.length;
      void bus.exchange(ask(9), command(soon()), forever).catch(() => {});
      await clock.advance(37);
      waits.push((wire.sent.slice(from).find(({ bytes }) => bytes[0] === 9)?.at ?? Number.NaN) - issuedAt);
    }
    expect(waits.every((wait) => wait < TURN_MS + YIELD_MS)).toBe(true);
  });

  it('are probed in vain for a tenth of the time of the wire at most', async () => {
    const silent = Array.from({ length: 40 }, (_, index) => 100 + index);
    const { bus, clock, wire } = await openTestBus(dead(...silent), { turnaroundMaxMs: 200 });
    bus.poll(pollOf(1));
    await clock.advance(1_000);
    for (const address of silent) bus.poll(pollOf(address));
    await clock.advance(60_000);
    const from = wire.sent.length;
    await clock.advance(60_000);
    const sent = wire.sent.slice(from);
    const heldMs = sent.reduce(
      (sum, { bytes, at }, index) => sum + (bytes[0] === 1 ? 0 : (sent[index + 1]?.at ?? at) - at),
      0,
    );
    expect(heldMs).toBeGreaterThan(0);
    expect(heldMs / 60_000).toBeLessThan(0.11);
  });

  it('whose probe was cut short for a command are found when they are back', async () => {
    const silent = [2];
    const { bus, clock, soon } = await openTestBus((request) => dead(...silent)(request));
    const poll = pollOf(2, 100);
    bus.poll(pollOf(1, 100));
    bus.poll(poll);
    await clock.advance(5_000);
    silent.pop();
    for (let time = 0; time < 400; time += 1) {
      void bus.exchange(ask(1), command(soon()), forever);
      await clock.advance(15);
    }
    expect(poll.calls).toContain('alive');
  });

  it('are tried by one command between two probes; the next is refused at once', async () => {
    const { bus, clock, soon, wire } = await openTestBus(dead(2));
    bus.poll(pollOf(1, 100));
    bus.poll(pollOf(2, 100));
    // Probes after 0.25, 0.5, 1, 2, 4 s: the next one is seconds away.
    await clock.advance(10_000);
    const before = wire.sent.length;
    const outcomes = [1, 2, 3].map(() => outcomeOf(bus.exchange(ask(2), command(soon(), 3), forever)));
    await clock.advance(300);
    expect(outcomes.map((outcome) => outcome())).toEqual(['NO_REPLY', 'DEVICE_OFFLINE', 'DEVICE_OFFLINE']);
    expect(tally(addresses(wire, before))[2]).toBe(1);
    await expect(bus.exchange(ask(2), command(soon()), forever)).rejects.toMatchObject({
      code: 'DEVICE_OFFLINE',
    });
    await clock.advance(20_000);
    const later = outcomeOf(bus.exchange(ask(2), command(soon()), forever));
    await clock.advance(300);
    expect(later()).toBe('NO_REPLY');
  });

  it('are asked time after time by anyone who wants to see how they fail', async () => {
    const { bus, clock, soon } = await openTestBus(dead(2));
    bus.poll(pollOf(2, 100));
    await clock.advance(10_000);
    const order = { ...command(soon(2_000)), insists: true };
    const outcomes = [1, 2, 3].map(() => outcomeOf(bus.exchange(ask(2), order, forever)));
    await clock.advance(1_000);
    expect(outcomes.map((outcome) => outcome())).toEqual(['NO_REPLY', 'NO_REPLY', 'NO_REPLY']);
  });

  it('are alive again when they answer a command', async () => {
    const silent = [2];
    const { bus, clock, soon } = await openTestBus((request) => dead(...silent)(request));
    const poll = pollOf(2, 100);
    bus.poll(poll);
    await clock.advance(10_000);
    silent.pop();
    const outcome = outcomeOf(bus.exchange(ask(2), command(soon()), forever));
    await clock.advance(60);
    expect(outcome()).toBe(7);
    expect(poll.calls.slice(-2)).toEqual(['alive', 'reply 7']);
  });

  it('that no one polls can be asked as often as one likes', async () => {
    const { bus, clock, soon } = await openTestBus(() => null);
    for (let time = 0; time < 10; time += 1) {
      const outcome = outcomeOf(bus.exchange(ask(2), { ...command(soon()), class: 'settings' }, forever));
      await clock.advance(300);
      expect(outcome()).toBe('NO_REPLY');
    }
    const poll = pollOf(2, 100);
    using _reading = bus.poll(poll);
    await clock.advance(250);
    expect(poll.calls).toEqual(['NO_REPLY', 'NO_REPLY']);
  });

  it('that say no, or that they are busy, are alive', async () => {
    const { bus, clock } = await openTestBus(([address = 0]) => frame(address, 0x80, 0));
    const poll = pollOf(2, 100);
    bus.poll(poll);
    await clock.advance(1_000);
    expect(poll.calls.slice(0, 2)).toEqual(['alive', 'REFUSED']);
    expect(poll.calls).not.toContain('dead');
  });
});
