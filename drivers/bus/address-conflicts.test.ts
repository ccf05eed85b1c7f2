/** Two devices at one address: found out, reported, and kept from disturbing the others. */

import { expect, it } from 'vitest';
import {
  ask,
  command,
  forever,
  frame,
  openTestBus,
  outcomeOf,
  pollOf,
  says,
} from '../../test/drivers/bus/bus.ts';
import type { Answer } from '../../test/drivers/bus/port.ts';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';
import type { Poll } from './exchange.ts';
import { openMissedRequests } from './outstanding-requests.ts';

const HEALTHY = [1, 2, 3, 4];
const TWIN = 9;
const DUPLICATE = expect.stringContaining(`address ${TWIN}: `);

/** What two devices say at once. */
const garbled = (request: Uint8Array): Uint8Array => says(7)(request).with(3, 0x55);

async function openBusWith(twins: (request: Uint8Array) => Answer, turnaroundMaxMs = 200) {
  const bench = await openTestBus((request) => (request[0] === TWIN ? twins(request) : says(7)(request)), {
    turnaroundMaxMs,
  });
  for (const address of HEALTHY) bench.bus.poll(pollOf(address));
  await bench.clock.advance(3_000);
  const report = () => bench.bus.report();
  const refreshMs = async () => {
    const replies = () =>
      report()
        .devices.filter(({ address }) => address !== TWIN)
        .reduce((sum, { counters }) => sum + counters.replies, 0);
    const before = replies();
    await bench.clock.advance(20_000);
    return (20_000 * HEALTHY.length) / (replies() - before);
  };
  return { ...bench, report, refreshMs };
}

it('that speak at once are reported, also when one of them is understood at times', async () => {
  let asked = 0;
  const bench = await openBusWith((request) => {
    asked += 1;
    return asked % 3 === 0 ? says(7)(request) : garbled(request);
  });
  expect(messagesOf(bench.report())).toEqual([]);
  const alone = await bench.refreshMs();
  bench.bus.poll(pollOf(TWIN));
  const together = await bench.refreshMs();
  expect(messagesOf(bench.report())).toEqual([DUPLICATE]);
  expect(together / alone).toBeLessThan(1.1);
});

it('are reported no more when there is one', async () => {
  let areTwo = true;
  const bench = await openBusWith((request) => (areTwo ? garbled(request) : says(7)(request)));
  bench.bus.poll(pollOf(TWIN));
  await bench.clock.advance(20_000);
  expect(messagesOf(bench.report())).toEqual([DUPLICATE]);
  areTwo = false;
  await bench.clock.advance(60_000);
  expect(messagesOf(bench.report())).toEqual([]);
});

it('are not made of a bad wire', async () => {
  let asked = 0;
  const bench = await openTestBus((request) => {
    asked += 1;
    return asked % 3 === 0 ? garbled(request) : says(7)(request);
  });
  for (const address of [...HEALTHY, TWIN]) bench.bus.poll(pollOf(address));
  await bench.clock.advance(60_000);
  expect(messagesOf(bench.bus.report())).toEqual([]);
});

it('of which one speaks behind the other are reported, and heard out before anybody else is asked', async () => {
  /** After the request: both answer to it. */
  const BEHIND_MS = 8;
  const bench = await openBusWith((request) => {
    void bench.clock.sleep(BEHIND_MS).then(() => disturb());
    return says(7)(request);
  });
  let disturbed = 0;
  function disturb() {
    const { bytes, at } = bench.wire.sent.at(-1) ?? { bytes: [], at: 0 };
    const isOpen = bytes[0] !== TWIN && bench.clock.monotonic() - at < 6;
    if (isOpen) disturbed += 1;
    bench.wire.deliver(frame(TWIN, 3, 8));
  }
  bench.bus.poll(pollOf(TWIN));
  await bench.clock.advance(20_000);
  expect(messagesOf(bench.report())).toEqual([DUPLICATE]);
  const before = disturbed;
  await bench.clock.advance(20_000);
  expect(disturbed - before).toBeLessThan(5);
  const answered = outcomeOf(bench.bus.exchange(ask(1), command(bench.soon()), forever));
  await bench.clock.advance(30);
  expect(answered()).toBe(7);
});

it('are found when one answers while no question is open, and not made of a late reply', async () => {
  const bench = await openTestBus((request) => {
    void bench.clock.sleep(30).then(() => bench.wire.deliver(frame(TWIN, 3, 8)));
    return says(7)(request);
  });
  bench.bus.poll(pollOf(TWIN, 200));
  await bench.clock.advance(20_000);
  expect(messagesOf(bench.bus.report())).toEqual([DUPLICATE]);
  const late = await openTestBus((request) => ({ bytes: says(7)(request), turnaroundMs: 150 }), {
    turnaroundMaxMs: 100,
  });
  late.bus.poll(pollOf(TWIN, 200));
  await late.clock.advance(20_000);
  expect(messagesOf(late.bus.report()).filter((warning) => warning.includes('two devices'))).toEqual([]);
});

/** Address 1 answers after `lateMs`; the others are healthy. */
async function openBusWithLatecomer(lateMs: () => number) {
  const bench = await openTestBus(
    (request) => (request[0] === 1 ? { bytes: says(7)(request), turnaroundMs: lateMs() } : says(7)(request)),
    { turnaroundMaxMs: 200 },
  );
  for (const address of [1, 2, 3]) bench.bus.poll(pollOf(address, 30));
  const seen = new Set<string>();
  for (let second = 0; second < 60; second += 1) {
    await bench.clock.advance(1_000);
    for (const warning of messagesOf(bench.bus.report())) seen.add(warning);
  }
  const device = (address: number) =>
    bench.bus.report().devices.find((candidate) => candidate.address === address);
  return { seen: [...seen], device };
}

/** Now and then late, by 150 to 250 ms. */
function unsteady() {
  let asked = 0;
  return () => {
    asked += 1;
    return asked % 3 === 0 ? 150 + ((asked * 37) % 100) : 1;
  };
}

it('are not made of a healthy device behind which another one answers late', async () => {
  const { seen, device } = await openBusWithLatecomer(unsteady());
  expect(seen.filter((warning) => warning.includes('two devices'))).toEqual([]);
  expect(device(1)?.counters.late).toBeGreaterThan(0);
  expect(device(2)?.refreshMs).toBeLessThan(200);
});

/** Its replies repeat the number of their request, as those of OSDP do: a late one is no answer to the next request. */
function numberedPollOf(address: number): Poll {
  let number = 0;
  return {
    ...pollOf(address, 20),
    begin() {
      number = (number % 3) + 1;
      const asked = ask(address, number);
      return { ...asked, operation: 'poll', numbered: true };
    },
  };
}

it.each([0.5, 0.8])(
  'are not made of one device of whose replies %d are 225 to 450 ms late, and are found beside it',
  async (share) => {
    const random = openRandom(7);
    let isLate = false;
    let hasTwin = false;
    const bench = await openTestBus(
      (request) => {
        if (request[0] === 1 && isLate && random() < share)
          return { bytes: says(7)(request), turnaroundMs: 225 + 225 * random() };
        return request[0] === TWIN && hasTwin ? garbled(request) : says(7)(request);
      },
      { turnaroundMaxMs: 200 },
    );
    for (const address of [1, 2, TWIN]) bench.bus.poll(numberedPollOf(address));
    const conflicts = () =>
      messagesOf(bench.bus.report()).filter((warning) => warning.includes('two devices'));
    await bench.clock.advance(5_000);
    isLate = true;
    for (let second = 0; second < 60; second += 1) {
      await bench.clock.advance(1_000);
      expect(conflicts()).toEqual([]);
    }
    hasTwin = true;
    await bench.clock.advance(20_000);
    expect(conflicts()).toEqual([DUPLICATE]);
  },
);

it('a request that was missed explains one disturbed exchange, for five seconds', () => {
  const missed = openMissedRequests();
  missed.missed(1, 1_000);
  missed.missed(1, 2_000);
  expect(missed.explains(2, 2_500)).toBe(false);
  expect(missed.explains(1, 2_500)).toBe(true);
  missed.spokeLate(1);
  expect(missed.explains(1, 2_600)).toBe(false);
  missed.missed(1, 3_000);
  expect(missed.explains(1, 8_001)).toBe(false);
});
