/** How fast a backlog leaves: 50 000 events through a window of 256 to mosquitto, with a subscriber behind it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openMosquitto, openSubscriber } from '../services/events/mosquitto.ts';
import { openChild } from '../simulators/child.ts';
import type { ForwarderMessage } from './forwarder.ts';
import type { BenchTable } from './table.ts';

const EVENTS = 50_000;
const EVENTS_PER_COMMIT = 500;
const TARGET_PER_SECOND = 10_000;
const DEADLINE_MS = 120_000;

export async function benchDrain(): Promise<BenchTable> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-drain-'));
  try {
    await using broker = await openMosquitto({ folder });
    await using subscriber = await openSubscriber(broker.port);
    const args = [join(import.meta.dirname, 'forwarder.ts'), join(folder, 'gatehouse.db')];
    await using forwarder = openChild<ForwarderMessage>({
      args: [...args, `mqtt://127.0.0.1:${broker.port}`],
    });
    for (let from = 1; from <= EVENTS; from += EVENTS_PER_COMMIT) {
      forwarder.say({ record: [from, from + EVENTS_PER_COMMIT - 1] });
    }
    await forwarder.waitFor((message) => 'recorded' in message && message.recorded === EVENTS, DEADLINE_MS);
    forwarder.say({ forward: true });
    const sent = await forwarder.waitFor((message) => 'sent' in message, DEADLINE_MS);
    await forwarder.waitFor((message) => 'waiting' in message && message.waiting === 0, DEADLINE_MS);
    const milliseconds = 'sent' in sent ? sent.milliseconds : Number.NaN;
    const rate = Math.round((EVENTS / milliseconds) * 1_000);
    const arrived = new Set(subscriber.received.map(({ payload }) => JSON.parse(payload).id)).size;
    return {
      title: `The backlog: ${EVENTS} events through a window of 256 to mosquitto`,
      rows: [
        {
          what: 'events sent and acknowledged',
          figure: `${rate}/s`,
          target: `≥ ${TARGET_PER_SECOND}/s`,
          met: rate >= TARGET_PER_SECOND,
        },
        {
          what: 'different events arrived',
          figure: `${arrived}`,
          target: `${EVENTS}`,
          met: arrived === EVENTS,
        },
      ],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
