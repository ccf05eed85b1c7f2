/**
 * The gateway's event log and forwarder alone, as a process that can be killed: node forwarder.ts <database> <url>
 *
 * in:  {"record": [from, to]}   one commit; `recorded` says that it is on the disk
 *      {"live": n}              an event of an encoder that has no backlog
 *      {"forward": true}        from now on
 * out: {"recorded": to}  {"sent": seq, "milliseconds": n}  {"waiting": n}
 */
import { createInterface } from 'node:readline';
import { systemClock } from '../../src/platform/clock.ts';
import { configSchema } from '../../src/platform/config/config.ts';
import { type SinkConfig, sinksOf } from '../../src/platform/config/sinks.ts';
import { openDatabase } from '../../src/platform/database/database.ts';
import { silentLog } from '../../src/platform/log.ts';
import { supervise } from '../../src/platform/supervise.ts';
import type { WriteProgress } from '../../src/services/events/cloud-event.ts';
import { openEvents } from '../../src/services/events/events.ts';
import { openForwarder } from '../../src/services/events/forward.ts';
import type { Sink } from '../../src/services/events/sink.ts';
import { openTransport } from '../../src/services/events/transports.ts';

const ENCODERS = 50;
const WINDOW = 256;
export const LIVE_ENCODER = 'encoder-live';
export const FORWARDER_SYSTEM_ID = '3c8f7a52-6a25-4be8-9f0a-0a2d6c1b7e11';

export type ForwarderMessage =
  | { recorded: number }
  | { sent: number; milliseconds: number }
  | { waiting: number };

async function main(file: string, url: string): Promise<void> {
  const report = (what: ForwarderMessage) => process.stdout.write(`${JSON.stringify(what)}\n`);
  const ending = new AbortController();
  const database = await openDatabase({ file, monotonic: () => performance.now(), failed: console.error });
  const common = {
    database,
    clock: systemClock,
    time: { now: systemClock.now, synchronised: () => true },
    log: silentLog,
  };
  const systemId = FORWARDER_SYSTEM_ID;
  const sinks = sinksOf(configSchema.parse({ upstream: { url, window: WINDOW } }));
  const events = await openEvents({ ...common, systemId, sinks });
  const sink = events.sinks[0] as Sink;
  const transport = openTransport(sinks[0] as SinkConfig, systemId, systemClock);
  const { run } = openForwarder({ ...common, events, sink, transport, window: WINDOW });

  async function record([from, to]: [number, number]): Promise<void> {
    await database.commit(() => {
      for (let n = from; n <= to; n += 1) events.writeProgress(progress(n));
    });
    events.wake();
    report({ recorded: to });
  }

  async function live(n: number): Promise<void> {
    await database.commit(() => events.writeProgress(progress(n, LIVE_ENCODER)));
    events.wake();
  }

  function forward(): void {
    const started = performance.now();
    const last = sink.table.newest();
    void supervise({ name: 'upstream', run, signal: ending.signal, clock: systemClock, log: silentLog });
    const look = setInterval(() => {
      if (sink.link.sentThrough >= last) {
        report({ sent: last, milliseconds: performance.now() - started });
        clearInterval(look);
      }
    }, 1);
    setInterval(() => report({ waiting: sink.backlog().waiting }), 200);
  }

  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    if (order.record) void record(order.record);
    if (order.live) void live(order.live);
    if (order.forward) forward();
  }
  process.exit();
}

export function progress(n: number, encoderId = `encoder-${n % ENCODERS}`): WriteProgress {
  return {
    encoderId,
    requestId: `request-${n}`,
    jobId: '0d9f2c1e-1111-4222-8333-444455556666',
    keyId: String(n),
    entryIndex: 0,
    entryCount: 1,
    status: 'written',
    totals: { written: 1, open: 0 },
    correlationId: '7f1d7e52-1c8c-4a06-b9a3-0a9f4e0f1f11',
  };
}

if (import.meta.main) {
  const [, , file, url] = process.argv;
  if (!file || !url) throw new Error('usage: node forwarder.ts <database> <url>');
  await main(file, url);
}
