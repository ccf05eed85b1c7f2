/** How soon an event that happens now is delivered while a backlog drains to mosquitto through a window of 256. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openMosquitto, openSubscriber } from '../services/events/mosquitto.ts';
import { openChild } from '../simulators/child.ts';
import { FORWARDER_SYSTEM_ID, type ForwarderMessage, LIVE_ENCODER } from './forwarder.ts';
import { type BenchTable, quantile } from './table.ts';

const EVENTS_PER_COMMIT = 500;
/** A step of a key each; fifty desks at full speed take a step in 20 ms. */
const LIVE_EVERY_MS = 20;
const TARGET_P99_MS = 50;
const TARGET_PER_SECOND = 10_000;
const DEADLINE_MS = 20 * 60_000;

export async function benchLiveLane({ events }: { events: number }): Promise<BenchTable> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-live-lane-'));
  try {
    await using broker = await openMosquitto({ folder });
    const topic = `gatehouse/1/${FORWARDER_SYSTEM_ID}/encoders/${LIVE_ENCODER}/events`;
    await using subscriber = await openSubscriber(broker.port, { topics: [topic] });
    const args = [join(import.meta.dirname, 'forwarder.ts'), join(folder, 'gatehouse.db')];
    await using forwarder = openChild<ForwarderMessage>({
      args: [...args, `mqtt://127.0.0.1:${broker.port}`],
    });
    for (let from = 1; from <= events; from += EVENTS_PER_COMMIT) {
      forwarder.say({ record: [from, from + EVENTS_PER_COMMIT - 1] });
    }
    await forwarder.waitFor((message) => 'recorded' in message && message.recorded >= events, DEADLINE_MS);
    forwarder.say({ forward: true });
    const drained = forwarder.waitFor((message) => 'sent' in message, DEADLINE_MS);
    let isDraining = true;
    void drained.then(() => {
      isDraining = false;
    });
    const beganAt: number[] = [];
    while (isDraining) {
      await sleep(LIVE_EVERY_MS);
      beganAt.push(performance.now());
      forwarder.say({ live: beganAt.length });
    }
    const sent = await drained;
    const arrivedBy = performance.now() + DEADLINE_MS;
    while (subscriber.received.length < beganAt.length && performance.now() < arrivedBy) await sleep(1);
    const latencies = subscriber.received.map(
      ({ payload, at }) => at - (beganAt[Number(JSON.parse(payload).subject) - 1] ?? Number.NaN),
    );
    const rate = Math.round((events / ('sent' in sent ? sent.milliseconds : Number.NaN)) * 1_000);
    const p99 = quantile(latencies, 0.99);
    const shown = [0.5, 0.99, 1].map((share) => quantile(latencies, share).toFixed(1));
    return {
      title: `Live events while a backlog of ${events} drains: ${latencies.length} of one desk, one every ${LIVE_EVERY_MS} ms`,
      rows: [
        {
          what: 'before its commit → at a subscriber of mosquitto, p50 / p99 / longest',
          figure: `${shown.join(' / ')} ms`,
          target: `p99 ≤ ${TARGET_P99_MS} ms`,
          met: p99 <= TARGET_P99_MS && latencies.length === beganAt.length,
        },
        {
          what: 'the backlog meanwhile',
          figure: `${rate}/s`,
          target: `≥ ${TARGET_PER_SECOND}/s`,
          met: rate >= TARGET_PER_SECOND,
        },
      ],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
