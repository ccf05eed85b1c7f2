/** A command goes to the wire before its deadline or not at all, in whatever exchange. */
import { expect, it } from 'vitest';
import { testRandom } from '../../test/drivers/osdp/wire.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';
import type { Bus } from '../bus/bus.ts';
import { DriverError } from '../contract/driver.ts';
import { openDeviceSession } from './device-session.ts';
import { openLateReplies } from './late-replies.ts';
import { type Command, OUTPUT } from './protocol/messages.ts';

const PULSE: Command = { kind: 'OUT', outputs: [{ output: 2, code: OUTPUT.onForTime, time: 50 }] };
const OUT = 0x68;
const DEADLINE_MS = 30;

/** A device in clear text, online. Its polls are the test's; orders end as `exchange` does. */
async function openPolled(exchange: Bus['exchange']) {
  const clock = manualClock();
  const device = openOsdpDevice({ address: 0, serial: 1, random: testRandom() });
  const session = openDeviceSession({
    address: 0,
    check: 'crc',
    security: { secure: 'off' },
    bus: { exchange },
    clock,
    lateReplies: openLateReplies(clock),
    isLooking: () => false,
    effect: () => {},
    exchanged: () => {},
    isGone: () => false,
    isThere: () => true,
  });
  function poll(isHeard = true): void {
    const { request, read } = session.exchange();
    const bytes = request();
    const reply = isHeard ? device.answer(bytes, clock.monotonic()) : undefined;
    if (reply) read(reply);
    session.conclude();
  }
  const isOnline = () => {
    const { stage } = session.state();
    return stage.kind === 'online' && stage.agenda.length === 0;
  };
  for (let polls = 0; !isOnline() && polls < 20; polls += 1) poll();
  expect(isOnline()).toBe(true);
  const deadline = clock.monotonic() + DEADLINE_MS;
  const { signal } = new AbortController();
  const outcome = session.ask(PULSE, { class: 'command', deadline, signal }).then(
    () => 'done',
    (error: DriverError) => error.code,
  );
  return { clock, poll, outcome, pulses: () => device.peripheral.deeds.filter(({ code }) => code === OUT) };
}

/** An order that waits for its turn until it is withdrawn, or the bus refuses it. */
function waiting() {
  const { promise, reject } = Promise.withResolvers<never>();
  const exchange: Bus['exchange'] = (_exchange, _order, signal) => {
    signal.addEventListener('abort', () => reject(signal.reason));
    return promise;
  };
  return {
    exchange,
    refuse: () =>
      reject(new DriverError('DEADLINE_PASSED', 'the bus had no turn for it before its deadline')),
  };
}

it('is carried by a poll before its deadline', async () => {
  const { clock, poll, outcome, pulses } = await openPolled(waiting().exchange);
  await clock.advance(DEADLINE_MS - 1);
  poll();
  expect(await outcome).toBe('done');
  expect(pulses()).toHaveLength(1);
});

it('is carried by no poll after its deadline, while its order still waits', async () => {
  const order = waiting();
  const { clock, poll, outcome, pulses } = await openPolled(order.exchange);
  await clock.advance(DEADLINE_MS);
  poll();
  order.refuse();
  expect(await outcome).toBe('DEADLINE_PASSED');
  expect(pulses()).toEqual([]);
});

it('is carried by no poll after its deadline, when the bus leaves the device alone', async () => {
  const leftAlone = () => Promise.reject(new DriverError('DEVICE_OFFLINE', 'it is left alone'));
  const { clock, poll, outcome, pulses } = await openPolled(leftAlone);
  await clock.advance(DEADLINE_MS + 10);
  poll();
  expect(await outcome).toBe('DEVICE_OFFLINE');
  expect(pulses()).toEqual([]);
});

it('is not repeated after its deadline, when nothing shows whether the device received it', async () => {
  const order = waiting();
  const { clock, poll, outcome, pulses } = await openPolled(order.exchange);
  await clock.advance(DEADLINE_MS / 2);
  poll(false);
  await clock.advance(DEADLINE_MS);
  poll();
  order.refuse();
  expect(await outcome).toBe('OUTCOME_UNKNOWN');
  expect(pulses()).toEqual([]);
});
