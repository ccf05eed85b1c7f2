/** What may be believed of what is heard, and when the next one may be asked. */

import { describe, expect, it } from 'vitest';
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
  says,
} from '../../test/drivers/bus/bus.ts';
import { openTestPort } from '../../test/drivers/bus/port.ts';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { openBus } from './bus.ts';
import { characterMs } from './options.ts';
import { MARGIN_MS } from './reply.ts';

const TC = characterMs(optionsWith());
const WIRE_MS = 8 * TC;

it('is listened for on after a reply where others may answer too', async () => {
  const { bus, clock, soon, wire } = await openTestBus(says(7), { turnaroundMaxMs: 100 });
  const lengths: number[] = [];
  const one = ask(1);
  const read = (received: Uint8Array) => {
    lengths.push(received.length);
    return one.read(received);
  };
  const answered = outcomeOf(bus.exchange({ ...one, exhaustive: true, read }, command(soon()), forever));
  await clock.advance(60);
  expect(answered()).toBe('pending');
  wire.deliver(frame(1, 0, 9));
  await clock.advance(100);
  expect([answered(), lengths]).toEqual([7, [4, 8]]);
});

describe('a reply that is late', () => {
  it('is waited for before the same device is asked again, while others have their turn', async () => {
    const back = { turnaroundMs: Number.POSITIVE_INFINITY };
    let asked = 0;
    const { bus, clock, soon, wire } = await openTestBus(
      ([address = 0, question = 0]) => {
        asked += 1;
        const bytes = frame(address, question, asked);
        return { bytes, turnaroundMs: address === 1 ? back.turnaroundMs : 1 };
      },
      { turnaroundMaxMs: 100 },
    );
    for (const address of [1, 2]) bus.poll(pollOf(address, 50));
    const sentTo = (address: number) => wire.sent.filter(({ bytes }) => bytes[0] === address);
    await clock.advance(3_000);
    // Taken for dead; it is back now, slow as it may be, and its probe is too short for that.
    back.turnaroundMs = 85;
    const before = sentTo(1).length;
    while (sentTo(1).length === before) await clock.advance(1);
    const probedAt = sentTo(1).at(-1)?.at ?? 0;
    const lateReply = asked;
    await clock.advance(30);
    const next = outcomeOf(bus.exchange(ask(1), command(soon()), forever));
    const other = outcomeOf(bus.exchange(ask(2), command(soon()), forever));
    await clock.advance(20);
    expect(other()).toBeGreaterThan(lateReply);
    await clock.advance(250);
    expect(next()).toBeGreaterThan(lateReply);
    const askedAgain = sentTo(1).find(({ at }) => at > probedAt);
    expect((askedAgain?.at ?? 0) - probedAt).toBeGreaterThan(WIRE_MS + 99.9);
  });

  it('is waited for by all when it does not say whose it is', async () => {
    const isDead = { value: false };
    const { bus, clock, soon, wire } = await openTestBus(
      (request) => (isDead.value ? null : says(7)(request)),
      { turnaroundMaxMs: 100 },
    );
    const anonymous = { ...ask(1), anonymous: true };
    for (let time = 0; time < 20; time += 1) {
      void bus.exchange(anonymous, command(soon()), forever);
      await clock.advance(50);
    }
    isDead.value = true;
    const sentAt = clock.monotonic();
    const missed = outcomeOf(bus.exchange(anonymous, command(soon()), forever));
    void bus.exchange(ask(2), command(soon()), forever).catch(() => {});
    await clock.advance(WIRE_MS + 100 + MARGIN_MS + 1);
    expect(missed()).toBe('NO_REPLY');
    await clock.advance(250);
    expect(wire.sent.at(-1)?.bytes[0]).toBe(2);
    expect(wire.sent.at(-1)?.at).toBeGreaterThan(sentAt + WIRE_MS + 99.9);
  });
});

describe('a reply that is damaged', () => {
  const damaged = frame(17, 3, 9).with(3, 0);

  it('ends the wait when the line has fallen silent, so that others have their turn', async () => {
    const { bus, clock, soon, wire } = await openTestBus(
      ([address = 0, question = 0]) => (address === 17 ? damaged : frame(address, question, 7)),
      { turnaroundMaxMs: 200 },
    );
    const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
    const other = outcomeOf(bus.exchange(ask(2), command(soon()), forever));
    await clock.advance(WIRE_MS + 1 + 20 + 1);
    expect(outcome()).toBe('BAD_REPLY');
    await clock.advance(WIRE_MS + 5);
    expect(other()).toBe(7);
    expect(wire.sent).toHaveLength(2);
  });

  it('may be noise before the true one, and then the line is not silent', async () => {
    const { bus, clock, soon, wire } = await openTestBus(() => null, { turnaroundMaxMs: 200 });
    const one = ask(17);
    const read = (received: Uint8Array) =>
      received.length < 5 ? one.read(received) : one.read(received.subarray(4));
    const outcome = outcomeOf(bus.exchange({ ...one, replyLength: 8, read }, command(soon()), forever));
    await clock.advance(10);
    wire.deliver(damaged);
    await clock.advance(19);
    wire.deliver(frame(17, 3, 9));
    await clock.advance(1);
    expect(outcome()).toBe(9);
  });

  it('in parts that come slowly is waited for to its end', async () => {
    const { bus, clock, soon, wire } = await openTestBus(() => null, { turnaroundMaxMs: 200 });
    const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
    await clock.advance(10);
    for (const byte of frame(17, 3, 9)) {
      wire.deliver(Uint8Array.of(byte));
      await clock.advance(45);
    }
    expect(outcome()).toBe(9);
  });
});

describe('bytes that come sooner than the request can have left', () => {
  it.each([
    [true, 'NO_REPLY', 4],
    [false, 9, 0],
  ])('are believed only where nothing is known of the pace (paced: %j)', async (paced, expected, stray) => {
    const { bus, clock, soon, wire } = await openTestBus(() => null, {}, { paced });
    const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
    await clock.advance(TC);
    wire.deliver(frame(17, 3, 9));
    await clock.advance(300);
    expect(outcome()).toBe(expected);
    expect(bus.report().strayBytes).toBe(stray);
  });

  it('are believed when they come time after time, and nothing in its time', async () => {
    const { bus, clock, soon, wire } = await openTestBus(() => null);
    const outcomes: unknown[] = [];
    for (let time = 0; time < 4; time += 1) {
      const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
      await clock.advance(TC);
      wire.deliver(frame(17, 3, 9));
      await clock.advance(300);
      outcomes.push(outcome());
    }
    expect(outcomes).toEqual(['NO_REPLY', 'NO_REPLY', 'NO_REPLY', 9]);
    expect(messagesOf(bus.report())).toEqual([expect.stringContaining('sooner than the baud rate')]);
  });

  it('are nothing when no one was asked', async () => {
    const { bus, clock, wire } = await openTestBus(() => null);
    wire.deliver(frame(17, 3, 9));
    await clock.advance(100);
    expect(bus.report()).toMatchObject({ strayBytes: 4, devices: [] });
  });
});

describe('local echo', () => {
  /** A write whose reply is what was sent, as those of Modbus are. */
  const write = { ...ask(17), request: () => frame(17, 3, 5) };
  const replyTo = (reply: Uint8Array) => (request: Uint8Array) => Uint8Array.of(...request, ...reply);

  it('is stripped, and is no reply', async () => {
    const dead = await openTestBus(replyTo(Uint8Array.of()), { localEcho: true });
    const lost = outcomeOf(dead.bus.exchange(write, command(dead.soon()), forever));
    await dead.clock.advance(300);
    expect(lost()).toBe('NO_REPLY');
    const alive = await openTestBus(replyTo(frame(17, 3, 5)), { localEcho: true });
    const done = outcomeOf(alive.bus.exchange(write, command(alive.soon()), forever));
    await alive.clock.advance(300);
    expect(done()).toBe(5);
  });

  it('reports a collision when it differs', async () => {
    const { bus, clock, soon } = await openTestBus((request) => request.with(1, 0xff), { localEcho: true });
    bus.poll(pollOf(17, 60_000));
    const outcome = outcomeOf(bus.exchange(write, command(soon()), forever));
    await clock.advance(300);
    expect(outcome()).toBe('BAD_REPLY');
    expect(bus.report().devices[0]?.counters).toMatchObject({ collisions: 2, timeouts: 0 });
  });

  it('may come in pieces', async () => {
    const { bus, clock, soon, wire } = await openTestBus(() => null, { localEcho: true });
    const outcome = outcomeOf(bus.exchange(ask(17), command(soon()), forever));
    for (const byte of [...frame(17, 3, 0), ...frame(17, 3, 9)]) {
      await clock.advance(TC);
      wire.deliver(Uint8Array.of(byte));
    }
    await clock.advance(0);
    expect(outcome()).toBe(9);
  });

  it('is shown to a technician when no one configured it', async () => {
    const { bus, clock, soon } = await openTestBus((request) => request, {}, { paced: false });
    const read = { ...ask(17), request: () => frame(17, 99, 0) };
    for (let time = 0; time < 3; time += 1) {
      expect(messagesOf(bus.report())).toEqual([]);
      void bus.exchange(read, command(soon()), forever).catch(() => {});
      await clock.advance(300);
    }
    expect(messagesOf(bus.report())).toEqual([expect.stringContaining('localEcho')]);
  });
});

it('sends into noise that does not end', async () => {
  const { bus, clock, soon, wire } = await openTestBus(() => null);
  wire.deliver(Uint8Array.of(0));
  const outcome = outcomeOf(bus.exchange(ask(17), command(soon(10_000)), forever));
  for (let time = 0; time < 1_000; time += 1) {
    await clock.advance(0.5);
    wire.deliver(new Uint8Array(64));
  }
  expect(wire.sent).toHaveLength(1);
  expect(wire.sent[0]?.at).toBeLessThan(256 * TC + 1);
  expect(outcome()).toBe('BAD_REPLY');
});

it('reads what arrived in time although this process was held up past the deadline', async () => {
  const manual = manualClock();
  const wire = openTestPort(manual, () => null);
  // As the event loop does it after a stall: the timer that is overdue comes before the bytes that wait.
  const clock = {
    ...manual,
    async sleep(milliseconds: number, signal?: AbortSignal) {
      await manual.sleep(milliseconds, signal);
      if (wire.sent.length > 0) setImmediate(() => wire.deliver(frame(17, 3, 9)));
    },
  };
  const { openPort, log } = wire;
  await using bus = await openBus({ options: optionsWith(), openPort, clock, log }, forever);
  const outcome = outcomeOf(bus.exchange(ask(17), command(1_000), forever));
  await manual.advance(200);
  expect(outcome()).toBe(9);
});

it('finds a reply behind noise', async () => {
  const { bus, clock, soon } = await openTestBus(() => Uint8Array.of(BUSY, 0, ...frame(17, 3, 9)));
  const exchange = { ...ask(17), read: (received: Uint8Array) => ask(17).read(received.subarray(2)) };
  const outcome = outcomeOf(bus.exchange(exchange, command(soon()), forever));
  await clock.advance(100);
  expect(outcome()).toBe(9);
});

describe('a peer that is gone without a word', () => {
  const answering = (isGone: { value: boolean }) => (request: Uint8Array) =>
    isGone.value ? null : says(7)(request);

  it.each([
    [2, 3_000],
    [1, 25_000],
  ])('is noticed by %i devices that answered before', async (devices, withinMs) => {
    const isGone = { value: false };
    const { bus, clock } = await openTestBus(answering(isGone), {}, { diesUnnoticed: true });
    const running = outcomeOf(bus.run(forever));
    for (let address = 1; address <= devices; address += 1) bus.poll(pollOf(address, 100));
    await clock.advance(2_000);
    isGone.value = true;
    await clock.advance(500);
    expect(running()).toBe('pending');
    await clock.advance(withinMs);
    expect(running()).toBe('LINK_LOST');
  });

  it.each([
    ['and nothing else is heard for 2 s: it is not delivered later', true, 1, 'LINK_LOST'],
    ['and other devices are heard', true, 2, 'pending'],
    ['on a port that would notice', false, 1, 'pending'],
  ])(
    'is not waited for after an order without an answer, %s',
    async (_, diesUnnoticed, devices, expected) => {
      const gone = new Set<number>();
      const answer = (request: Uint8Array) => (gone.has(request[0] ?? 0) ? null : says(7)(request));
      const { bus, clock, soon } = await openTestBus(answer, {}, { diesUnnoticed });
      const running = outcomeOf(bus.run(forever));
      for (let address = 1; address <= devices; address += 1) bus.poll(pollOf(address, 100));
      await clock.advance(1_000);
      gone.add(1);
      const ordered = outcomeOf(bus.exchange(ask(1), command(soon()), forever));
      await clock.advance(1_900);
      expect([running(), ordered()]).toEqual(['pending', 'NO_REPLY']);
      await clock.advance(3_000);
      expect(running()).toBe(expected);
    },
  );

  it('is not meant when a port would notice, when others answer, or when no one ever did', async () => {
    const serial = await openTestBus(answering({ value: true }), {});
    const half = await openTestBus(
      ([address = 0]) => (address === 1 ? frame(1, 3, 7) : null),
      {},
      {
        diesUnnoticed: true,
      },
    );
    const scan = await openTestBus(answering({ value: true }), {}, { diesUnnoticed: true });
    for (const { bus, clock } of [serial, half, scan]) {
      const running = outcomeOf(bus.run(forever));
      for (let address = 1; address <= 3; address += 1) bus.poll(pollOf(address, 100));
      await clock.advance(30_000);
      expect(running()).toBe('pending');
    }
  });
});
