/** The bus on a manual clock and a scripted port. */
import { expect, it } from 'vitest';
import { manualClock } from '../../test/manual-clock.ts';
import { openBus } from './bus.ts';
import { ask, command, frame, optionsWith } from './test-exchange.ts';
import { openTestPort } from './test-port.ts';

const signal = new AbortController().signal;

it('has an exchange on the wire', async () => {
  const clock = manualClock();
  const wire = openTestPort(clock, ([address = 0, question = 0]) => frame(address, question, 7));
  await using bus = await openBus(
    { options: optionsWith(), openPort: wire.openPort, clock, log: wire.log },
    signal,
  );
  const reply = bus.exchange(ask(17), command(clock.monotonic() + 1_000), signal);
  await clock.advance(100);
  await expect(reply).resolves.toBe(7);
});
