/** Whether the memory that a burst of events takes is used again by the next one. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { openTestSite } from '../simulators/test-site.ts';
import { isTerminalEvent } from '../simulators/upstream.ts';
import { connectEncoders, ENCODERS, residentMegabytes } from './desk.ts';
import { openRequests } from './requests.ts';
import type { BenchTable } from './table.ts';
import { until } from './zigbee/waiting.ts';

const BURSTS = 4;
const EVENTS = 30_000;
/** Entries of a request of the largest kind. */
const KEYS = 10;
const SETTLE_MS = 3_000;
const TIMEOUT_MS = 600_000;
const LOOK_EVERY_MS = 50;
/** The last burst in megabytes above the second: what a collection leaves differs by that. */
const MORE_TARGET_MB = 5;

export async function benchBurst(): Promise<BenchTable> {
  await using site = await openTestSite();
  const open = new Map<string, () => void>();
  await using _encoders = await connectEncoders(site);
  let events = 0;
  site.upstream.onEvent = (event) => {
    events += 1;
    if (isTerminalEvent(event)) open.get(event.data.keyId)?.();
  };
  using requests = openRequests(site);
  async function writeTen(encoder: number): Promise<void> {
    const data = Array.from({ length: KEYS }, () => ({
      keyId: randomUUID(),
      blocks: ['00112233445566778899aabbccddeeff'],
    }));
    const ended = data.map(({ keyId }) => new Promise<void>((resolve) => open.set(keyId, resolve)));
    const path = `/encoder/bench-${encoder}/write-request/${randomUUID()}`;
    const { status } = await requests.send('PUT', path, 'front-desk', { data });
    if (status !== 202) throw new Error(`a write request was answered ${status}`);
    await Promise.all(ended);
    for (const { keyId } of data) open.delete(keyId);
  }
  async function burst(): Promise<void> {
    events = 0;
    const encoder = async (_: unknown, index: number) => {
      while (events < EVENTS) {
        await writeTen(index);
        site.upstream.forget();
      }
    };
    await Promise.all(Array.from({ length: ENCODERS }, encoder));
    await until('the backlog is sent', TIMEOUT_MS, LOOK_EVERY_MS, async () => open.size === 0);
    await sleep(SETTLE_MS);
  }
  const resident = [residentMegabytes(site.daemon.pid)];
  for (let count = 0; count < BURSTS; count += 1) {
    await burst();
    resident.push(residentMegabytes(site.daemon.pid));
  }
  const [, , second = Number.NaN] = resident;
  const last = resident.at(-1) ?? Number.NaN;
  return {
    title: `Bursts of ${EVENTS} events by ${ENCODERS} encoders`,
    rows: [
      {
        what: 'memory of the daemon before, and after each burst',
        figure: `${resident.join(', ')} MB`,
        target: `the last ≤ the second + ${MORE_TARGET_MB} MB`,
        met: last <= second + MORE_TARGET_MB,
      },
    ],
  };
}
