/** A device whose replies come after their time, each of them: none counts as the reply to a later question. */

import { expect, it } from 'vitest';
import { ask, command, forever, frame, openTestBus, outcomeOf, pollOf } from '../../test/drivers/bus/bus.ts';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';

it.each([150, 215, 250, 300, 400])(
  'a device that is %i ms late is found out, and not believed',
  async (slow) => {
    let asked = 0;
    let slowMs = 1;
    const { bus, clock } = await openTestBus(
      ([address = 0, question = 0]) => {
        asked += 1;
        return { bytes: frame(address, question, asked & 0xff), turnaroundMs: slowMs };
      },
      { turnaroundMaxMs: 100 },
    );
    const poll = pollOf(2, 100);
    bus.poll(poll);
    await clock.advance(1_000);
    slowMs = slow;
    await clock.advance(5_000);
    poll.calls.length = 0;
    await clock.advance(30_000);
    expect(poll.calls.filter((one) => one.startsWith('reply'))).toEqual([]);
    expect(messagesOf(bus.report())).toEqual([expect.stringMatching(/too late.*address 2$/)]);
  },
);

const DELAYS = [105, 130, 160, 190, 205, 215, 230, 250, 270, 290, 310, 350, 400, 700];

it.each([100, 200])(
  'what an order reads is never what an earlier request was answered, when the device becomes late (polls every %i ms)',
  async (everyMs) => {
    for (const slow of DELAYS) {
      let asked = 0;
      let slowMs = 1;
      const { bus, clock, soon } = await openTestBus(
        ([address = 0, question = 0]) => {
          asked += 1;
          return { bytes: frame(address, question, asked & 0xff), turnaroundMs: slowMs };
        },
        { turnaroundMaxMs: 100 },
      );
      bus.poll(pollOf(2, everyMs));
      await clock.advance(1_000);
      slowMs = slow;
      for (let ms = 0; ms < 2_000; ms += 37) {
        await clock.advance(37);
        const before = asked & 0xff;
        const read = outcomeOf(bus.exchange(ask(2), { ...command(soon(5_000), 3), isFresh: true }, forever));
        while (read() === 'pending') await clock.advance(5);
        const number = read();
        if (typeof number === 'number') expect((number - before) & 0xff).toBeGreaterThan(0);
        if (typeof number === 'number') expect((number - before) & 0xff).toBeLessThan(128);
      }
    }
  },
);

it('an answer to another operation shows that what was asked before is not answered any more', async () => {
  let isLost = false;
  let asked = 0;
  const { bus, clock, soon } = await openTestBus(([address = 0, question = 0]) => {
    asked += 1;
    return isLost ? null : frame(address, question, asked & 0xff);
  });
  const exchange = async (question: number, attempts: number) => {
    const order = { ...command(soon(5_000), attempts), isFresh: true };
    const outcome = outcomeOf(bus.exchange(ask(2, question), order, forever));
    while (outcome() === 'pending') await clock.advance(5);
    return outcome();
  };
  expect(await exchange(3, 1)).toBe(1);
  isLost = true;
  expect(await exchange(3, 1)).toBe('NO_REPLY');
  isLost = false;
  // The reply may be the one that was missed: the order asks again, and the second one is its own for certain.
  expect(await exchange(3, 1)).toBe('NO_REPLY');
  expect(await exchange(5, 1)).toBe(4);
  expect(await exchange(3, 1)).toBe(5);
});

it('an order that may be repeated gets its own reply, however many replies were missed before', async () => {
  let isLost = false;
  let asked = 0;
  const { bus, clock, soon } = await openTestBus(([address = 0, question = 0]) => {
    asked += 1;
    return isLost ? null : frame(address, question, asked & 0xff);
  });
  bus.poll(pollOf(2, 200));
  await clock.advance(1_000);
  isLost = true;
  await clock.advance(2_000);
  isLost = false;
  await clock.advance(20_000);
  const before = asked;
  const read = outcomeOf(bus.exchange(ask(2), { ...command(soon(2_000), 3), isFresh: true }, forever));
  await clock.advance(1_000);
  expect(read()).toBeGreaterThan(before & 0xff);
});

it.each([205, 230, 260, 290, 310])(
  'a poll that is credited to the request after its own says how old it is, when the device is %i ms late',
  async (lateMs) => {
    let asked = 0;
    let isLate = false;
    const takenAt = new Map<number, number>();
    const { bus, clock } = await openTestBus(
      ([address = 0, question = 0]) => {
        asked += 1;
        takenAt.set(asked & 0xff, clock.monotonic());
        return { bytes: frame(address, question, asked & 0xff), turnaroundMs: isLate ? lateMs : 1 };
      },
      { turnaroundMaxMs: 100 },
    );
    let shown: number | undefined;
    const poll = pollOf(2, 200);
    bus.poll({
      ...poll,
      settle(outcome) {
        if ('reply' in outcome) shown = Number(outcome.reply);
      },
    });
    await clock.advance(1_000);
    for (let round = 0; round < 20; round += 1) {
      isLate = !isLate;
      for (let step = 0; step < 60; step += 1) {
        await clock.advance(17);
        const heardMsAgo = bus.report().devices[0]?.heardMsAgo ?? 0;
        const ageMs = clock.monotonic() - (takenAt.get(shown ?? -1) ?? 0);
        // A request and its reply take some milliseconds on the wire.
        expect(ageMs).toBeLessThanOrEqual(heardMsAgo + 20);
      }
    }
  },
);
