/** What arrived at the test broker, as a consumer of events sees it. */
import { expect } from 'vitest';
import type { Received, TestBroker } from './broker.ts';
import { SYSTEM_ID, type TestLog } from './log.ts';

export interface Arrival {
  connection: number;
  replayed: boolean;
  encoderId: string;
  /** NaN: a gap record. */
  sequence: number;
  id: string;
  /** Without `replayed`. */
  rest: string;
}

function arrival({ connection, payload }: Received): Arrival {
  const { replayed, ...rest } = JSON.parse(payload);
  const encoderId = rest.source.split('/')[4] ?? '';
  return {
    connection,
    replayed,
    encoderId,
    sequence: Number(rest.sequence),
    id: rest.id,
    rest: JSON.stringify(rest),
  };
}

export const arrivals = (broker: TestBroker) => broker.received.map(arrival);
export const sequenceOf = (received: Received) => arrival(received).sequence;

/** The sequence numbers in the order of first arrival. */
export function firstArrivals(broker: TestBroker): number[] {
  const seen = new Set<string>();
  return arrivals(broker)
    .filter(({ id }) => !seen.has(id) && seen.add(id))
    .map(({ sequence }) => sequence);
}

export function gapsSent(broker: TestBroker) {
  const gaps = broker.received.filter(({ topic }) => topic === `gatehouse/1/${SYSTEM_ID}/gaps`);
  return gaps.map(({ payload }) => JSON.parse(payload).data);
}

export function expectExactRepeats(broker: TestBroker): void {
  const first = new Map<string, Arrival>();
  for (const each of arrivals(broker)) {
    const original = first.get(each.id);
    if (original) {
      expect([each.rest, each.replayed]).toEqual([original.rest, true]);
    } else {
      first.set(each.id, each);
    }
  }
}

export const numbers = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n);

/** How each encoder's sequence numbers arrived first. */
export function firstArrivalsByEncoder(broker: TestBroker): Record<string, number[]> {
  const seen = new Set<string>();
  const first = arrivals(broker).filter(({ id }) => !seen.has(id) && seen.add(id));
  return Object.fromEntries(
    [...Map.groupBy(first, ({ encoderId }) => encoderId)].map(([encoderId, events]) => [
      encoderId,
      events.map(({ sequence }) => sequence),
    ]),
  );
}

/** Runs the forwarder once, to its end, and returns why it ended. */
export async function runOnce(log: TestLog, broker: TestBroker, signal = new AbortController().signal) {
  return log
    .forwarder({ url: broker.url })
    .run(signal)
    .catch((error: Error) => error);
}

/** Stops a healthy forwarder, so that its cursor is on the disk, and returns what is left. */
export async function settled(log: TestLog, forwarding: { stop(): Promise<void> }) {
  await forwarding.stop();
  return log.events.backlog();
}
