/** Exchanges with other characters than the bus is configured with. */

import { expect, it } from 'vitest';
import { ask, command, forever, openTestBus, outcomeOf, pollOf, says } from '../../test/drivers/bus/bus.ts';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { tuned } from './line-settings.ts';
import type { LineSettings } from './options.ts';

const SLOW: LineSettings = { baudRate: 9_600, parity: 'none', stopBits: 1 };
const CONFIGURED: LineSettings = { baudRate: 19_200, parity: 'even', stopBits: 1 };

it('finds a device that has others, and goes back for everything else', async () => {
  const { bus, clock, wire, soon } = await openTestBus(says(7), {}, { deviceLine: SLOW });
  const usual = outcomeOf(bus.exchange(ask(1), command(soon()), forever));
  await clock.advance(300);
  expect(usual()).toBe('NO_REPLY');
  const found = outcomeOf(tuned(bus, SLOW).exchange(ask(1), command(soon()), forever));
  const again = outcomeOf(bus.exchange(ask(1), command(soon()), forever));
  await clock.advance(500);
  expect([found(), again()]).toEqual([7, 'NO_REPLY']);
  expect(wire.sent.map(({ line }) => line)).toEqual([CONFIGURED, SLOW, CONFIGURED]);
});

it('says nothing of a device that is polled, and lets its polls go on in between', async () => {
  const { bus, clock, wire, soon } = await openTestBus(says(7), {}, { deviceLine: CONFIGURED });
  const poll = pollOf(1, 20);
  bus.poll(poll);
  await clock.advance(100);
  const search = tuned(bus, SLOW);
  const asked = outcomeOf(
    (async () => {
      for (let n = 0; n < 5; n += 1) {
        const order = { ...command(clock.monotonic() + 2_000), class: 'settings' } as const;
        await search.exchange(ask(1), order, forever).catch(() => undefined);
      }
      return 'done';
    })(),
  );
  await clock.advance(1_500);
  expect(asked()).toBe('done');
  expect(poll.calls).not.toContain('dead');
  expect(poll.calls).not.toContain('NO_REPLY');
  const [device] = bus.report().devices;
  expect(device?.counters).toMatchObject({ timeouts: 0 });
  // After each question in vain somebody else had his turn.
  const lines = wire.sent.map(({ line }) => line.baudRate);
  const last = lines.lastIndexOf(9_600);
  const first = lines.indexOf(9_600);
  expect(lines.slice(first, last).filter((rate) => rate === 19_200).length).toBeGreaterThanOrEqual(4);
  expect(messagesOf(bus.report())).toContainEqual(expect.stringContaining('a scan tries other baud rates'));
  await clock.advance(5_000);
  expect(messagesOf(bus.report())).toEqual([]);
  expect(soon()).toBeGreaterThan(0);
});

it('goes back when the caller gives up meanwhile', async () => {
  const { bus, clock, wire, soon } = await openTestBus(says(7), {}, { deviceLine: CONFIGURED });
  const stop = new AbortController();
  const asked = outcomeOf(tuned(bus, SLOW).exchange(ask(2), command(soon()), stop.signal));
  await clock.advance(10);
  stop.abort(new Error('cancelled'));
  await clock.advance(0);
  expect(asked()).toBe('cancelled');
  const next = outcomeOf(bus.exchange(ask(1), command(soon()), forever));
  await clock.advance(500);
  expect(next()).toBe(7);
  expect(wire.sent.map(({ line }) => line.baudRate)).toEqual([9_600, 19_200]);
});

it('takes a port that does not go back for lost', async () => {
  const { bus, clock, soon } = await openTestBus(says(7), {}, { sticks: true });
  const running = outcomeOf(bus.run(forever));
  tuned(bus, SLOW)
    .exchange(ask(1), command(soon()), forever)
    .catch(() => undefined);
  await clock.advance(500);
  expect(running()).toBe('LINK_LOST');
});

it('refuses where the port keeps its own, and the bus works on', async () => {
  const { bus, clock, soon } = await openTestBus(says(7), {}, { fixed: true });
  const refused = outcomeOf(tuned(bus, SLOW).exchange(ask(1), command(soon()), forever));
  const next = outcomeOf(bus.exchange(ask(1), command(soon()), forever));
  await clock.advance(300);
  expect([refused(), next()]).toEqual(['INVALID_COMMAND', 7]);
});
