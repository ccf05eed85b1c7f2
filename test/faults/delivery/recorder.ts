/**
 * The gateway's event log and the forwarders of its sinks, as a process that can be killed: node recorder.ts <database> <sinks>
 * where sinks is the section of the configuration in JSON.
 *
 * in:  {"record": [{"encoder": "desk-1", "n": 7}]}   one commit
 *      {"jump": milliseconds}                       the wall clock
 * out: {"recorded": [...]}      it is on the disk
 *      {"refused": n}          so many are not: the disk takes nothing
 *      {"waiting": {"name": n}} twenty times a second
 */
import { createInterface } from 'node:readline';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';
import { configSchema } from '../../../src/platform/config/config.ts';
import { sinksOf } from '../../../src/platform/config/sinks.ts';
import { openDatabase } from '../../../src/platform/database/database.ts';
import { silentLog } from '../../../src/platform/log.ts';
import { supervise } from '../../../src/platform/supervise.ts';
import { openEvents } from '../../../src/services/events/events.ts';
import { openForwarder } from '../../../src/services/events/forward.ts';
import { openTransport } from '../../../src/services/events/transports.ts';

const SYSTEM_ID = '3c8f7a52-6a25-4be8-9f0a-0a2d6c1b7e11';
const BACKOFF = { firstMs: 50, longestMs: 400, healthyMs: 60_000 };

export interface Step {
  encoder: string;
  n: number;
}

export type RecorderMessage =
  | { recorded: Step[] }
  | { refused: number }
  | { waiting: Record<string, number> };

const [, , file = '', configured = ''] = process.argv;
const report = (what: RecorderMessage) => process.stdout.write(`${JSON.stringify(what)}\n`);
let ahead = 0;
const clock: Clock = { ...systemClock, now: () => systemClock.now() + ahead };
const failed = (error: unknown) => {
  if ((error as { code?: string }).code !== 'SQLITE_FULL') console.error(error);
};
const database = await openDatabase({ file, monotonic: clock.monotonic, failed });
const common = { database, clock, time: { now: systemClock.now, synchronised: () => true }, log: silentLog };
const settings = sinksOf(configSchema.parse({ sinks: JSON.parse(configured) }));
const events = await openEvents({ ...common, systemId: SYSTEM_ID, sinks: settings });
const ending = new AbortController();
for (const [index, sink] of events.sinks.entries()) {
  const setting = settings[index];
  if (!setting) continue;
  const window = setting.kind === 'https' ? setting.batch : setting.window;
  const transport = openTransport(setting, SYSTEM_ID, clock);
  const { run } = openForwarder({ ...common, events, sink, transport, window });
  const { signal } = ending;
  void supervise({ name: setting.name, run, signal, clock, log: silentLog, backoff: BACKOFF });
}
setInterval(() => {
  const waiting = events.sinks.map(({ bounds, backlog }) => [bounds.name, backlog().waiting]);
  report({ waiting: Object.fromEntries(waiting) });
}, 50);

async function record(steps: Step[]): Promise<void> {
  await database.commit(() => {
    for (const { encoder, n } of steps)
      events.writeProgress({
        encoderId: encoder,
        requestId: `r-${n}`,
        jobId: `job-of-${encoder}`,
        keyId: `${encoder}-${n}`,
        entryIndex: 0,
        entryCount: 1,
        status: 'written',
        totals: { written: 1, open: 0 },
        correlationId: 'c',
      });
  });
  events.wake();
  report({ recorded: steps });
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as { record?: Step[]; jump?: number };
  const { record: steps } = order;
  if (steps) record(steps).catch(() => report({ refused: steps.length }));
  if (order.jump) ahead += order.jump;
}
process.exit();
