/** Replies that come after their time are neither noise nor collisions. */

import { expect, it, vi } from 'vitest';
import { openTestBus, pollOf, says } from '../../test/drivers/bus/bus.ts';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { openLateReplies } from './late-replies.ts';

const SLOW = 2;

/** 1 answers at once; 2 after so long. */
async function openBusWith(slowMs: { value: number }, everyMs: number) {
  const bench = await openTestBus(
    (request) =>
      request[0] === SLOW ? { bytes: says(7)(request), turnaroundMs: slowMs.value } : says(7)(request),
    { turnaroundMaxMs: 100 },
  );
  const poll = pollOf(SLOW, everyMs);
  bench.bus.poll(pollOf(1, everyMs));
  bench.bus.poll(poll);
  const counters = (address: number) =>
    bench.bus.report().devices.find((device) => device.address === address)?.counters;
  return { ...bench, poll, counters };
}

it('are counted at the device, and reported with what to do', async () => {
  const slowMs = { value: 1 };
  const { bus, clock, counters } = await openBusWith(slowMs, 1_000);
  await clock.advance(5_000);
  slowMs.value = 150;
  await clock.advance(3_000);
  expect(counters(SLOW)).toMatchObject({ timeouts: 3, late: 3, collisions: 0, framing: 0 });
  expect(bus.report()).toMatchObject({
    strayBytes: 0,
    warnings: [{ message: expect.stringMatching(/too late.*address 2$/) }],
  });
  slowMs.value = 1;
  await clock.advance(120_000);
  expect(messagesOf(bus.report())).toEqual([]);
});

it('are no collision of the device that is being asked meanwhile', async () => {
  const slowMs = { value: 1 };
  const { bus, clock, counters } = await openBusWith(slowMs, 0);
  await clock.advance(5_000);
  slowMs.value = 150;
  await clock.advance(1_000);
  expect(counters(SLOW)?.late).toBeGreaterThan(0);
  expect(counters(1)).toMatchObject({ collisions: 0, crc: 0, framing: 0 });
  expect(bus.report().strayBytes).toBe(0);
});

it('show that a device is there that was probed too shortly: it is given all its time then', async () => {
  const slowMs = { value: 1 };
  const { bus, clock, poll } = await openBusWith(slowMs, 100);
  await clock.advance(3_000);
  slowMs.value = Number.POSITIVE_INFINITY;
  await clock.advance(20_000);
  expect(poll.calls.at(-1)).toBe('NO_REPLY');
  slowMs.value = 90;
  // Without it, the eighth probe: after a minute.
  await clock.advance(35_000);
  expect(poll.calls).toContain('alive');
  expect(poll.calls.at(-1)).toBe('reply 7');
  expect(messagesOf(bus.report())).toEqual([]);
});

it('are noise when no one was asked', async () => {
  const { bus, clock, wire } = await openTestBus(says(7));
  wire.deliver(says(7)(Uint8Array.of(SLOW, 3, 0, 0)));
  await clock.advance(10);
  expect(bus.report().strayBytes).toBe(4);
});

it('are the second voice of the address that was asked only when no question that was missed explains them', () => {
  // A protocol whose replies carry no address (DCON `>`).
  const lateReplies = openLateReplies(undefined);
  const behind = Uint8Array.of(0x3e, 0x0d);
  expect(lateReplies.isSecondDevice(behind, 1_000, 2)).toBe(true);
  lateReplies.asked(1, false, 1_000);
  expect(lateReplies.isSecondDevice(behind, 1_220, 2)).toBeUndefined();
  expect(lateReplies.take().late).toEqual([{ address: 1, delayMs: 220 }]);
  expect(lateReplies.isSecondDevice(behind, 1_240, 2)).toBe(true);
});

it('explain damaged bytes behind a reply, and not a second reply of the address that was asked', () => {
  const lateReplies = openLateReplies((received) => [...received].filter((byte) => byte < 0x80));
  lateReplies.asked(1, false, 1_000);
  expect(lateReplies.isSecondDevice(Uint8Array.of(2, 0xff), 1_220, 2)).toBeUndefined();
  expect(lateReplies.isSecondDevice(Uint8Array.of(2, 2), 1_220, 2)).toBe(true);
  expect(lateReplies.isSecondDevice(Uint8Array.of(2, 1), 1_220, 2)).toBe(false);
  expect(lateReplies.take().late).toEqual([{ address: 1, delayMs: 220 }]);
});

it('that have not come leave no memory behind: nothing is cleared after each exchange', () => {
  const lateReplies = openLateReplies(() => [1]);
  const clear = vi.spyOn(Set.prototype, 'clear');
  expect(lateReplies.take()).toEqual({ late: [], unasked: [] });
  expect(clear).not.toHaveBeenCalled();
  lateReplies.stray(new Uint8Array(1), 0, undefined);
  expect(lateReplies.take()).toEqual({ late: [], unasked: [1] });
  expect(lateReplies.take()).toEqual({ late: [], unasked: [] });
  expect(clear).toHaveBeenCalledTimes(1);
  clear.mockRestore();
});
