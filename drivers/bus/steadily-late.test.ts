/** A device whose replies come after their time, each of them: none counts as the reply to a later question. */
import { expect, it } from 'vitest';
import { frame, openTestBus, pollOf } from './test-bus.ts';

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
    poll.told.length = 0;
    await clock.advance(30_000);
    expect(poll.told.filter((one) => one.startsWith('reply'))).toEqual([]);
    expect(bus.report().warnings).toEqual([expect.stringMatching(/too late.*address 2$/)]);
  },
);
