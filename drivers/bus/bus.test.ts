/** Exchanges of a bus on a manual clock and a scripted port. */

import { expect, it } from 'vitest';
import {
  ask,
  BUSY,
  command,
  forever,
  frame,
  openTestBus,
  optionsWith,
  outcomeOf,
  pollOf,
  REFUSAL,
  says,
} from '../../test/drivers/bus/bus.ts';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { characterMs, rtuGapMs } from './options.ts';
import { MARGIN_MS } from './reply.ts';

const TC = characterMs(optionsWith());
const WIRE_MS = 8 * TC;
/** What the machine itself may add; see line.ts. */

it('has an exchange on the wire', async () => {
  const { bus, clock, soon, wire } = await openTestBus(says(7));
  const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(WIRE_MS + 0.9);
  expect(outcome()).toBe('pending');
  await clock.advance(0.2);
  expect(outcome()).toBe(7);
  expect(wire.sent.map(({ bytes }) => bytes)).toEqual([frame(17, 3, 0)]);
  const [device] = bus.report().devices;
  expect(device).toMatchObject({ address: 17, counters: { replies: 1, timeouts: 0 } });
  expect(device?.turnaroundMs).toBeCloseTo(1);
});

it('sends nothing later of an order that its port did not take', async () => {
  const heard: number[] = [];
  const { bus, clock, soon, wire } = await openTestBus(([address = 0, question = 0]) => {
    heard.push(address);
    return frame(address, question, 7);
  });
  const first = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(1_000);
  expect(first()).toBe(7);
  wire.stall(true);
  const outcomes = [17, 18].map((unit) => outcomeOf(bus.exchange(ask(unit), command(soon()), forever)));
  await clock.advance(5_000);
  expect(outcomes.map((outcome) => outcome())).toEqual(['NO_REPLY', 'NO_REPLY']);
  wire.stall(false);
  await clock.advance(40_000);
  expect(heard).toEqual([17]);
});

it('says after 5 s that nothing is heard while its port takes no bytes, and no more once it does', async () => {
  const { bus, clock, wire } = await openTestBus(says(7));
  bus.poll(pollOf(17));
  await clock.advance(1_000);
  wire.stall(true);
  await clock.advance(4_500);
  expect(messagesOf(bus.report())).toEqual([]);
  await clock.advance(1_500);
  expect(messagesOf(bus.report())).toEqual([
    expect.stringMatching(/^nothing is heard on this bus.*flow control/),
  ]);
  wire.stall(false);
  await clock.advance(10_000);
  expect(messagesOf(bus.report())).toEqual([]);
});

it('reports how long commands took from the queue to their replies, and nothing else', async () => {
  const { bus, clock, soon } = await openTestBus(says(7));
  bus.poll(pollOf(18));
  for (const order of [command(soon()), command(soon()), { ...command(soon()), class: 'settings' as const }])
    void bus.exchange(ask(17), order, forever);
  const unheard = { ...ask(0), replyLength: 0, read: () => ({ kind: 'reply' as const, reply: 'sent' }) };
  void bus.exchange(unheard, command(soon()), forever);
  await clock.advance(1_000);
  const { count, sum, atMost } = bus.report().commandSeconds;
  expect(count).toBe(2);
  // The second one waits for the first.
  expect(sum).toBeGreaterThan((3 * WIRE_MS) / 1_000);
  expect(sum).toBeLessThan(0.1);
  expect(atMost.at(-1)).toEqual({ bound: 5, count: 2 });
});

it('gives a device that no one knows all the time of the options, and no more', async () => {
  const { bus, clock, soon } = await openTestBus(() => null, { turnaroundMaxMs: 60 });
  const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(WIRE_MS + 60 + MARGIN_MS - 0.1);
  expect(outcome()).toBe('pending');
  await clock.advance(0.2);
  expect(outcome()).toBe('NO_REPLY');
});

it('gives a device that is there all the time of the options, however soon it answered so far', async () => {
  const slow = { turnaroundMs: 1 };
  const { bus, clock, soon } = await openTestBus(([address = 0, question = 0]) => ({
    bytes: frame(address, question, 1),
    ...slow,
  }));
  bus.poll(pollOf(17, 60_000));
  for (let time = 0; time < 40; time += 1) {
    const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
    await clock.advance(20);
    expect(outcome()).toBe(1);
  }
  slow.turnaroundMs = 99;
  const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(WIRE_MS + 99.5);
  expect(outcome()).toBe(1);
  await clock.advance(20);
  slow.turnaroundMs = 1_000;
  const missed = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(WIRE_MS + 100 + MARGIN_MS - 1);
  expect(missed()).toBe('pending');
  await clock.advance(2);
  expect(missed()).toBe('NO_REPLY');
});

it('lets a reply that has begun come to its end', async () => {
  const { bus, clock, soon, wire } = await openTestBus(() => null, { turnaroundMaxMs: 20, baudRate: 1_200 });
  const tc = characterMs(optionsWith({ baudRate: 1_200 }));
  const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(4 * tc + 20 + MARGIN_MS + 3 * tc);
  for (const byte of frame(17, 3, 9)) {
    wire.deliver(Uint8Array.of(byte));
    await clock.advance(tc);
  }
  expect(outcome()).toBe(9);
});

it('does not wait for ever for a reply that does not come to its end', async () => {
  const { bus, clock, soon, wire } = await openTestBus(() => null, { turnaroundMaxMs: 20 });
  const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(4 * TC + 20);
  for (let time = 0; time < 40; time += 1) {
    wire.deliver(frame(17, 3, 9).subarray(0, 1));
    await clock.advance(1);
  }
  expect(outcome()).toBe('BAD_REPLY');
});

it.each([
  ['crc', Uint8Array.of(17, 3, 9, 0), 'BAD_REPLY', { crc: 1 }],
  ['framing', Uint8Array.of(17, 3), 'BAD_REPLY', { framing: 1 }],
  ['foreign', frame(18, 3, 9), 'BAD_REPLY', { collisions: 1 }],
  ['refused', frame(17, REFUSAL, 0), 'REFUSED', { refusals: 1 }],
])('reports a reply that is %s', async (_, bytes, code, counters) => {
  const { bus, clock, soon } = await openTestBus(() => bytes);
  using _poll = bus.poll({ ...pollOf(17), everyMs: 3_600_000 });
  await clock.advance(200);
  const before = bus.report().devices[0]?.counters;
  const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(200);
  expect(outcome()).toBe(code);
  const after = bus.report().devices[0]?.counters;
  for (const [name, count] of Object.entries(counters)) {
    expect(after).toMatchObject({ [name]: 2 * count });
    expect(before).toMatchObject({ [name]: count });
  }
});

it('survives a protocol that throws at bytes of strangers, and says so once', async () => {
  const { bus, clock, soon, wire } = await openTestBus(says(7));
  const defective = {
    ...ask(17),
    read: () => {
      throw new Error('out of range');
    },
  };
  for (let time = 0; time < 3; time += 1) {
    const outcome = outcomeOf(bus.exchange(defective, command(soon()), forever));
    await clock.advance(300);
    expect(outcome()).toBe('BAD_REPLY');
  }
  expect(wire.complaints).toHaveLength(1);
  const sound = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(300);
  expect(sound()).toBe(7);
});

it('rejects an order that cannot say what to send', async () => {
  const { bus, soon, clock } = await openTestBus(says(7));
  const request = () => {
    throw new Error('no such relay');
  };
  const outcome = outcomeOf(bus.exchange({ ...ask(17), request }, command(soon()), forever));
  const next = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(100);
  expect([outcome(), next()]).toEqual(['no such relay', 7]);
  await expect(bus.exchange(ask(256), command(soon()), forever)).rejects.toMatchObject({
    code: 'INVALID_COMMAND',
  });
});

it('tries again as often as allowed, but not after the deadline', async () => {
  let losses = 1;
  const { bus, clock, soon, wire } = await openTestBus((request) => (losses-- > 0 ? null : says(7)(request)));
  const outcome = outcomeOf(bus.exchange(ask(17), command(soon(), 2), forever));
  await clock.advance(500);
  expect(outcome()).toBe(7);
  expect(wire.sent).toHaveLength(2);
  losses = 10;
  const late = outcomeOf(bus.exchange(ask(17), command(soon(50), 5), forever));
  await clock.advance(500);
  expect(late()).toBe('NO_REPLY');
  expect(wire.sent).toHaveLength(3);
});

it('asks a device that is busy again, after a while', async () => {
  let isBusy = true;
  const { bus, clock, soon, wire } = await openTestBus(([address = 0, question = 0]) => {
    const number = isBusy ? frame(address, BUSY, 0) : frame(address, question, 7);
    isBusy = false;
    return number;
  });
  const outcome = outcomeOf(bus.exchange(ask(17), command(soon(), 2), forever));
  await clock.advance(100);
  expect(outcome()).toBe(7);
  const [first = 0, second = 0] = wire.sent.map(({ at }) => at);
  expect(second - first).toBeGreaterThan(WIRE_MS + 20);
  isBusy = true;
  const given = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(100);
  expect(given()).toBe('BUSY');
});

it('sends nothing after the deadline, and too much at once neither', async () => {
  const { bus, clock, soon, wire } = await openTestBus(says(7));
  const outcomes = Array.from({ length: 65 }, () =>
    outcomeOf(bus.exchange(ask(17), command(soon(30)), forever)),
  );
  await clock.advance(100);
  expect(outcomes.map((outcome) => outcome())).toEqual([
    ...Array.from({ length: 4 }, () => 7),
    ...Array.from({ length: 60 }, () => 'DEADLINE_PASSED'),
    'BUSY',
  ]);
  expect(wire.sent).toHaveLength(4);
});

it('forgets an order no one wants any more; one that was sent keeps the wire for its time', async () => {
  const { bus, clock, soon, wire } = await openTestBus(() => null);
  const ending = new AbortController();
  const sent = outcomeOf(bus.exchange(ask(1), command(soon(), 3), ending.signal));
  const waiting = outcomeOf(bus.exchange(ask(2), command(soon()), ending.signal));
  const other = outcomeOf(bus.exchange(ask(3), command(soon()), forever));
  await clock.advance(5);
  ending.abort(new Error('not wanted'));
  await clock.advance(5);
  expect([sent(), waiting(), other()]).toEqual(['not wanted', 'not wanted', 'pending']);
  expect(wire.sent).toHaveLength(1);
  await clock.advance(500);
  expect(wire.sent.map(({ bytes }) => bytes[0])).toEqual([1, 3]);
  expect(wire.sent[1]?.at).toBeGreaterThanOrEqual(WIRE_MS + 100);
});

it('reports each attempt to the one who measures', async () => {
  let losses = 1;
  const { bus, clock, soon } = await openTestBus((request) => (losses-- > 0 ? null : says(7)(request)));
  const attempts: unknown[] = [];
  const order = { ...command(soon(), 2), observe: (attempt: unknown) => attempts.push(attempt) };
  void bus.exchange(ask(17), order, forever);
  await clock.advance(500);
  expect(attempts).toEqual([
    { outcome: 'timeout', turnaroundMs: null, late: 0 },
    { outcome: 'reply', turnaroundMs: expect.closeTo(1), late: 0 },
  ]);
});

it('ends everything at once when the port is lost', async () => {
  const { bus, clock, soon, wire } = await openTestBus(() => null);
  const running = outcomeOf(bus.run(forever));
  const poll = pollOf(4);
  const sent = outcomeOf(bus.exchange(ask(1), command(soon(), 3), forever));
  const waiting = outcomeOf(bus.exchange(ask(2), command(soon()), forever));
  bus.poll(poll);
  await clock.advance(5);
  wire.lose();
  await clock.advance(0);
  expect([running(), sent(), waiting()]).toEqual(['LINK_LOST', 'NO_REPLY', 'LINK_LOST']);
  await expect(bus.exchange(ask(1), command(soon()), forever)).rejects.toMatchObject({ code: 'LINK_LOST' });
  await clock.advance(1_000);
  expect(wire.sent).toHaveLength(1);
  expect(poll.calls).toEqual([]);
  expect(wire.isClosed()).toBe(false);
  await bus[Symbol.asyncDispose]();
  expect(wire.isClosed()).toBe(true);
});

it('runs until its signal fires, and works until it is disposed', async () => {
  const { bus, clock, soon } = await openTestBus(says(7));
  const ending = new AbortController();
  const running = outcomeOf(bus.run(ending.signal));
  ending.abort(new Error('enough'));
  const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await clock.advance(100);
  expect([running(), outcome()]).toEqual(['enough', 7]);
  const waiting = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
  await bus[Symbol.asyncDispose]();
  await clock.advance(0);
  expect(waiting()).toBe('LINK_LOST');
});

it('has broadcasts that no one answers, and lets devices work on them', async () => {
  const { bus, clock, soon, wire } = await openTestBus(() => null, { turnaroundMaxMs: 100 });
  const broadcast = { ...ask(0), replyLength: 0, read: () => ({ kind: 'reply' as const, reply: 'sent' }) };
  const outcome = outcomeOf(bus.exchange(broadcast, command(soon()), forever));
  void bus.exchange(ask(1), command(soon()), forever).catch(() => {});
  await clock.advance(4 * TC + 99);
  expect(outcome()).toBe('pending');
  await clock.advance(2);
  expect(outcome()).toBe('sent');
  expect(wire.sent[1]?.at).toBeGreaterThanOrEqual(4 * TC + 100);
  expect(bus.report().devices).toEqual([]);
  await clock.advance(1_000);
  const begun = clock.monotonic();
  const brief = outcomeOf(bus.exchange({ ...broadcast, quietMs: 5 }, command(soon()), forever));
  await clock.advance(4 * TC + 4);
  expect(brief()).toBe('pending');
  void bus.exchange(ask(1), command(soon()), forever).catch(() => {});
  await clock.advance(2);
  expect(brief()).toBe('sent');
  expect(wire.sent.at(-1)?.at).toBeCloseTo(begun + 4 * TC + 5, 6);
});

it('keeps t3.5 of silence before each request', async () => {
  const { bus, clock, soon, wire } = await openTestBus(says(7));
  const gap = rtuGapMs(optionsWith());
  for (let time = 0; time < 3; time += 1) void bus.exchange(ask(17), command(soon()), forever);
  await clock.advance(50);
  const times = wire.sent.map(({ at }) => at);
  expect(times[1]).toBeCloseTo(WIRE_MS + 1 + gap, 6);
  expect(times[2]).toBeCloseTo(2 * (WIRE_MS + 1 + gap), 6);
  wire.deliver(Uint8Array.of(0));
  void bus.exchange(ask(17), command(soon()), forever);
  await clock.advance(50);
  expect(wire.sent[3]?.at).toBeCloseTo(50 + gap, 6);
  expect(bus.report().strayBytes).toBe(1);
});
