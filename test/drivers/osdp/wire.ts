/** For tests: a link on a wire that is a function, in the time of a manual clock. */
import { expect, onTestFinished } from 'vitest';
import type { DriverError, DriverEvent, Plain } from '../../../drivers/contract/driver.ts';
import type { Watch } from '../../../drivers/contract/rs485.ts';
import { type Rs485Report, rs485Report } from '../../../drivers/contract/settings.ts';
import { openOsdpOn } from '../../../drivers/osdp/driver.ts';
import { type ManualClock, manualClock } from '../../manual-clock.ts';
import { openRandom } from '../../simulators/bus/random.ts';
import { type Answer, openTestPort } from '../bus/port.ts';
import { ordered } from '../bus/pulse.ts';

export interface WireOptions {
  /** What answers; null: no one. */
  answer(request: Uint8Array, now: number): Answer;
  /** Addresses of the configuration. */
  devices?: { [key: string]: Plain }[];
  /** That of an earlier link, when this one is the next life of its host. */
  clock?: ManualClock;
  pollEveryMs?: number;
}

const SEED = 12;
const STEP_MS = 10;
const COMMAND_MS = 5_000;
const QUIET = { led: 'none', beeps: 0 };
const never = new AbortController().signal;

/** For devices: the same numbers each time. */
export const testRandom = () => openRandom(SEED);

export async function openWireLink({
  answer,
  devices = [],
  clock = manualClock(),
  pollEveryMs = 20,
}: WireOptions) {
  const port = openTestPort(clock, (request) => answer(request, clock.monotonic()));
  const history: Rs485Report[] = [];
  const events: DriverEvent[] = [];
  let bus: Plain = null;
  const driver = await openOsdpOn(port.openPort)(
    {
      port: '/dev/ttyTest',
      baudRate: 115_200,
      pollEveryMs,
      devices,
      feedback: { granted: QUIET, denied: QUIET },
    },
    {
      linkId: 'test',
      clock,
      log: port.log,
      emit: async (event) => void events.push(event),
      report({ subject, state }) {
        if (subject === 'bus') bus = state;
        else history.push(rs485Report.parse(state));
      },
    },
    never,
  );
  const stop = new AbortController();
  const run = driver.run(stop.signal).catch(() => undefined);
  async function close(): Promise<void> {
    stop.abort(new Error('the test is over'));
    await clock.advance(1_000);
    await run;
    await driver[Symbol.asyncDispose]();
  }
  onTestFinished(close);

  /** The last report of a device. */
  const report = (hwId: string) => history.findLast((reported) => reported.hwId === hwId);

  /** What it resolves with, or the code of its error. */
  function execute(kind: string, data: Plain, signal = never, milliseconds = COMMAND_MS): Promise<unknown> {
    const deadline = clock.monotonic() + milliseconds;
    return driver
      .execute({ kind, data: ordered(kind, data, report), deadline }, signal)
      .catch((error: DriverError) => error.code ?? String(error));
  }

  /** Goes on until it is so, or for so long. */
  async function until(isSo: () => boolean, milliseconds = 20_000): Promise<void> {
    const end = clock.monotonic() + milliseconds;
    while (!isSo() && clock.monotonic() < end) await clock.advance(STEP_MS);
    expect(isSo()).toBe(true);
  }

  return {
    clock,
    port,
    close,
    history,
    events,
    /** The last report of the bus. */
    bus: () => bus,
    execute,
    until,
    report,
    watch: (keys: NonNullable<Watch['keys']>, named: { address: number; hwId: string }[] = []) =>
      execute('watch', { devices: named, keys } as Plain),
    connected: (hwId: string, isConnected = true) => until(() => report(hwId)?.connected === isConnected),
    /** Goes on until it is settled. */
    async outcome<Result>(pending: Promise<Result>, milliseconds = 20_000): Promise<Result> {
      let isSettled = false;
      void pending.finally(() => {
        isSettled = true;
      });
      await until(() => isSettled, milliseconds);
      return await pending;
    },
  };
}
