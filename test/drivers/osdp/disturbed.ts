/**
 * For tests: a whole link, driver and bus, on a wire that loses one frame of twenty and damages three of a hundred, in
 * both directions, in the time of a manual clock.
 */

import type { DriverEvent, Plain } from '../../../drivers/contract/driver.ts';
import { rs485Report } from '../../../drivers/contract/settings.ts';
import { openOsdpOn } from '../../../drivers/osdp/driver.ts';
import { manualClock } from '../../manual-clock.ts';
import { openRandom } from '../../simulators/bus/random.ts';
import { openOsdpDevice } from '../../simulators/osdp/device.ts';
import { openTestPort } from '../bus/port.ts';
import { KEY } from './protocol/panel.ts';

export interface Disturbed {
  /** Codes of the commands that failed. */
  failures: string[];
  /** What the device did, in order: the number of the output of each OUT. */
  outputs: number[];
  /** What it should have done. */
  ordered: number[];
  /** Sessions it had in all. */
  sessions: number;
  /** Frames that were lost, and that were damaged. */
  lost: number;
  damaged: number;
  alarms: string[];
  /** How often it was reported as gone. */
  disconnections: number;
}

const LOST = 0.05;
const DAMAGED = 0.03;
const HW_ID = '0a4748-1-1';
const RELAYS = 8;
const PULSE_MS = 100;
const COMMAND_MS = 5_000;
/** Past its deadline. */
const NEVER_MS = 60_000;
const READOUT_MS = 10_000;
const STEP_MS = 20;
const CONTROL_AT = 5;
const USES_CRC = 4;
const QUIET = { led: 'none', beeps: 0 };
const OUT = 0x68;

/** Loses and damages what is sent and what comes back. */
function openDisturbance(random: () => number) {
  const counts = { lost: 0, damaged: 0 };
  function damage(bytes: Uint8Array): Uint8Array {
    counts.damaged += 1;
    const damaged = Uint8Array.from(bytes);
    const at = Math.floor(random() * damaged.length);
    damaged[at] = (damaged[at] ?? 0) ^ (1 + Math.floor(random() * 255));
    // Without this bit the check is a sum, which one of 256 damaged frames has: no panel can help a device that
    // believes it.
    if (at === CONTROL_AT) damaged[at] = (damaged[at] ?? 0) | USES_CRC;
    return damaged;
  }
  return {
    counts,
    pass(bytes: Uint8Array): Uint8Array | undefined {
      const fate = random();
      if (fate < LOST) {
        counts.lost += 1;
        return undefined;
      }
      return fate < LOST + DAMAGED ? damage(bytes) : bytes;
    },
  };
}

/** Fires relays one after the other, each command as soon as the one before it was answered. */
export async function fireDisturbed(commands: number, seed: number): Promise<Disturbed> {
  const random = openRandom(seed);
  const clock = manualClock();
  const device = openOsdpDevice({ address: 0, serial: 1, key: KEY, random, requiresSecurity: true });
  const disturbance = openDisturbance(random);
  const port = openTestPort(clock, (request) => {
    const heard = disturbance.pass(request);
    const reply = heard && device.answer(heard, clock.monotonic());
    return (reply && disturbance.pass(reply)) ?? null;
  });
  const { signal } = new AbortController();
  const events: DriverEvent[] = [];
  const connected: boolean[] = [];
  await using driver = await openOsdpOn(port.openPort)(
    {
      port: '/dev/ttyTest',
      baudRate: 115_200,
      devices: [{ address: 0 }],
      feedback: { granted: QUIET, denied: QUIET },
    },
    {
      linkId: 'test',
      clock,
      log: port.log,
      emit: async (event) => void events.push(event),
      report({ subject, state }) {
        if (subject !== 'bus') connected.push(rs485Report.parse(state).connected);
      },
    },
    signal,
  );
  const stop = new AbortController();
  const run = driver.run(stop.signal).catch(() => undefined);
  const execute = async (kind: string, data: Plain): Promise<string | undefined> => {
    const deadline = clock.monotonic() + COMMAND_MS;
    const reported = driver.execute({ kind, data, deadline }, signal).then(
      () => ({ failure: undefined }),
      (error: { code?: string }) => ({ failure: error.code ?? String(error) }),
    );
    let result: Awaited<typeof reported> | undefined;
    void reported.then((done) => {
      result = done;
    });
    while (!result && clock.monotonic() < deadline + NEVER_MS) await clock.advance(STEP_MS);
    return result ? result.failure : 'never settled';
  };
  await execute('watch', { devices: [], keys: [{ address: 0, key: KEY }] });
  await clock.advance(READOUT_MS);

  const failures: string[] = [];
  const ordered: number[] = [];
  for (let number = 0; number < commands; number += 1) {
    const relay = number % RELAYS;
    ordered.push(relay);
    const failure = await execute('pulse', {
      hwId: HW_ID,
      relay,
      milliseconds: PULSE_MS,
      settingsVersion: 0,
    });
    if (failure !== undefined) failures.push(failure);
  }
  stop.abort(new Error('all is done'));
  await run;
  const outs = device.peripheral.deeds.filter(({ code }) => code === OUT);
  return {
    failures,
    ordered,
    sessions: device.sessions(),
    ...disturbance.counts,
    outputs: outs.map(({ data }) => Number.parseInt(data.slice(0, 2), 16)),
    alarms: events.flatMap(({ kind, data }) => (kind === 'alarm' ? JSON.stringify(data) : [])),
    disconnections: connected.filter((is, index) => !is && connected[index - 1] === true).length,
  };
}
