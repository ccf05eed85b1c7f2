/** A DCON driver on a manual clock, with modules that are played (modules.ts). */

import type { DriverEvent, Plain } from '../../../drivers/contract/driver.ts';
import { type Rs485Report, rs485Report } from '../../../drivers/contract/settings.ts';
import { openDconOn } from '../../../drivers/dcon/driver.ts';
import { type ManualClock, manualClock } from '../../manual-clock.ts';
import { type Answer, openTestPort } from '../bus/port.ts';
import { ordered } from '../bus/pulse.ts';
import { playModules, type TestModules } from './modules.ts';

export const SETTINGS = {
  ioPins: Object.fromEntries(
    ['input0', 'input1', 'input2', 'input3', ...[0, 1, 2, 3, 4, 5, 6, 7].map((n) => `output${n}`)].map(
      (pin) => [pin, /^(input|output)[01]$/.test(pin)],
    ),
  ),
  relayIndex: 0,
  unlockDurationMilliseconds: 5_000,
  useInputPinMemory: false,
};

/** Modules that outlive a driver. */
export interface TestSite {
  clock: ManualClock;
  modules: TestModules;
  /** What their wire makes of a request. */
  answer(request: Uint8Array): Answer;
}

function siteOf(given: Parameters<typeof playModules>[1]): TestSite {
  const clock = manualClock();
  const modules = playModules(clock, given);
  return { clock, modules, answer: modules.answer };
}

export async function openTestDriver(
  given: Parameters<typeof playModules>[1],
  {
    options = {},
    emit,
    site = siteOf(given),
  }: { options?: Record<string, Plain>; emit?: () => Promise<void>; site?: TestSite } = {},
) {
  const { clock, modules } = site;
  const wire = openTestPort(clock, (request) => site.answer(request));
  const reports = new Map<string, Plain>();
  const events: DriverEvent[] = [];
  const never = new AbortController().signal;
  const driver = await openDconOn(
    wire.openPort,
    {
      port: '/dev/ttyTest',
      devices: Object.keys(given).map((address) => ({ address: Number(address) })),
      ...options,
    },
    {
      linkId: 'lobby',
      clock,
      log: wire.log,
      report: ({ subject, state }) => reports.set(subject, state),
      async emit(event) {
        await emit?.();
        events.push(event);
      },
    },
    never,
  );
  const report = (hwId: string) => reports.get(`device:${hwId}`) as Rs485Report | undefined;
  const stop = new AbortController();
  const run = driver.run(stop.signal).catch((error: unknown) => error);

  /** Turns the clock until the promise has settled. */
  async function settled<Result>(promise: Promise<Result>, patienceMs = 10_000): Promise<Result> {
    let isOver = false;
    const over = () => {
      isOver = true;
    };
    promise.then(over, over);
    for (let waited = 0; !isOver && waited < patienceMs; waited += 5) await clock.advance(5);
    if (!isOver) throw new Error(`not settled within ${patienceMs} ms of the manual clock`);
    return await promise;
  }

  return {
    clock,
    site,
    modules,
    wire,
    events,
    driver,
    run,
    stop,
    settled,
    execute: (kind: string, data: Plain, { withinMs = 2_000, signal = never } = {}) =>
      driver.execute(
        { kind, data: ordered(kind, data, report), deadline: clock.monotonic() + withinMs },
        signal,
      ),
    report: (hwId: string): Rs485Report => rs485Report.parse(reports.get(`device:${hwId}`)),
    bus: () => reports.get('bus'),
    /** What went over the wire, without checksum, oldest first. */
    sent: () => wire.sent.map(({ bytes }) => Buffer.from(bytes).toString('latin1').slice(0, -3)),
    sentAt: (text: string) =>
      wire.sent
        .filter(({ bytes }) => Buffer.from(bytes).toString('latin1').slice(0, -3) === text)
        .map(({ at }) => at),
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the test is over'));
      await settled(run);
      await driver[Symbol.asyncDispose]();
    },
  };
}
