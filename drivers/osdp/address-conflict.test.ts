/** Two devices of the factory at one address: neither is believed or given a key, and a warning says so. */

import { expect, it } from 'vitest';
import { openTestPort } from '../../test/drivers/bus/port.ts';
import { messagesOf } from '../../test/drivers/bus/warnings.ts';
import { KEY } from '../../test/drivers/osdp/protocol/panel.ts';
import { manualClock } from '../../test/manual-clock.ts';
import { openRandom } from '../../test/simulators/bus/random.ts';
import { openOsdpDevice } from '../../test/simulators/osdp/device.ts';
import type { DriverError, Plain } from '../contract/driver.ts';
import { busReport } from '../contract/rs485.ts';
import { openOsdpOn } from './driver.ts';

/** Both speak at once · one speaks when the other has ended · now one is heard, now the other. */
type Manner = 'together' | 'behind' | 'by turns';

const forever = new AbortController().signal;
const ADDRESS = 0;
const SEED = 12;
const BEHIND_MS = 15;
const LOOKING_MS = 15_000;
/** A device that could not be understood is asked every 30 s (drivers/bus/circuit-breaker.ts). */
const WINDOW_MS = 40_000;
const MARGIN_MS = 5_000;

async function openConflictBench(manner: Manner) {
  const random = openRandom(SEED);
  const clock = manualClock();
  const devices = [1, 2].map((serial) => openOsdpDevice({ address: ADDRESS, serial, random }));
  let isAlone = false;
  const port = openTestPort(clock, (request) => {
    const replies = devices.map((device) => device.answer(request, clock.monotonic()));
    const [one, other] = replies;
    if (isAlone || !one || !other) return one ?? null;
    if (manner === 'by turns') return random() < 0.5 ? one : other;
    if (manner === 'together') return one.map((byte, index) => byte & (other[index + 1] ?? 0xff));
    const turnaroundMs = BEHIND_MS + request.length + one.length;
    void clock.sleep(turnaroundMs).then(() => port.deliver(other));
    return one;
  });
  const reports = new Map<string, Plain>();
  const connected: string[] = [];
  const driver = await openOsdpOn(port.openPort)(
    { port: '/dev/ttyTest', baudRate: 9_600, devices: [{ address: ADDRESS }] },
    {
      linkId: 'test',
      clock,
      log: port.log,
      emit: async () => {},
      report({ subject, state }) {
        reports.set(subject, state);
        if (JSON.stringify(state).includes('"connected":true')) connected.push(subject);
      },
    },
    forever,
  );
  const stop = new AbortController();
  const run = driver.run(stop.signal).catch(() => undefined);
  const list = { devices: [], keys: [] };
  await driver.execute({ kind: 'watch', data: list, deadline: clock.monotonic() + MARGIN_MS }, forever);
  return {
    clock,
    connected,
    warnings: () => messagesOf(busReport.parse(reports.get('bus'))).join(),
    paired: () => devices.map((device) => device.describe(clock.monotonic()).isPaired),
    disconnectOther: () => {
      isAlone = true;
    },
    /** The outcome, once it has one. */
    async pair(): Promise<unknown> {
      const deadline = clock.monotonic() + WINDOW_MS + MARGIN_MS;
      const data = { address: ADDRESS, key: KEY, milliseconds: WINDOW_MS };
      let outcome: unknown;
      driver.execute({ kind: 'pair', data, deadline }, forever).then(
        (paired) => {
          outcome = paired;
        },
        (error: DriverError) => {
          outcome = `${error.code}: ${error.message}`;
        },
      );
      while (outcome === undefined && clock.monotonic() < deadline) await clock.advance(50);
      return outcome;
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the test is over'));
      await clock.advance(1_000);
      await run;
      await driver[Symbol.asyncDispose]();
    },
  };
}

it.each<[Manner, string, string]>([
  ['together', 'NO_REPLY: what answers at address 0 cannot be read', 'two devices may have this address'],
  ['behind', 'REFUSED: two devices answer at address 0: disconnect one', 'has no key'],
  ['by turns', 'REFUSED: two devices answer at address 0: disconnect one', 'two devices answer at address 0'],
])(
  'that speak %s are detected, and no key is given until there is one device',
  async (manner, refusal, warning) => {
    await using bench = await openConflictBench(manner);
    await bench.clock.advance(LOOKING_MS);
    expect(bench.warnings()).toContain(warning);
    for (let time = 0; time < 3; time += 1) {
      expect(await bench.pair()).toContain(refusal);
      expect(bench.paired()).toEqual([false, false]);
    }
    expect(bench.connected).toEqual([]);
    bench.disconnectOther();
    expect(await bench.pair()).toEqual({ hwId: '0a4748-1-1' });
    await bench.clock.advance(MARGIN_MS);
    expect(bench.warnings()).not.toContain('two devices');
  },
);
