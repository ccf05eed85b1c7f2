/** A bus of Gatehouse I/O controllers behind a pty, paced byte by byte, and what its wire can carry at most. */
import { setTimeout as sleep } from 'node:timers/promises';
import { openSimulatedBus, type SimulatedBus } from '../../simulators/bus/bus.ts';
import { silenceMs } from '../../simulators/bus/modbus/frame.ts';
import { type BusPlan, characterMs } from '../../simulators/bus/plan.ts';

/** As Modbus prescribes it (over serial line 1.02, 2.5.1). */
export const FORMAT = { parity: 'even', stopBits: 1 } as const;
const TURNAROUND_MS = 1;
/** Characters of the exchanges of a gatehouse-io: its poll of ten registers, the pulse, and the reading of eight of the ten after it. */
const POLL = { request: 8, reply: 25 };
const PULSE = { request: 17, reply: 8 };
const READ_BACK = { request: 8, reply: 21 };

export function unitsTo(last: number): number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

export function hwIdOf(unit: number): string {
  return `GIO-${String(unit).padStart(4, '0')}`;
}

export function openBenchBus(
  baudRate: number,
  units: readonly number[],
  more: Partial<Pick<BusPlan, 'pacing' | 'link' | 'transport'>> = {},
): Promise<SimulatedBus> {
  return openSimulatedBus({
    ...FORMAT,
    baudRate,
    protocol: 'modbus',
    pacing: 'exact',
    ...more,
    devices: units.map((address) => ({
      address,
      kind: 'gatehouse-io',
      hwId: hwIdOf(address),
      // No two of a gateway have the same: a poll says who answers, and an order does not ask.
      settings: { settingsVersion: address },
      turnaroundMs: TURNAROUND_MS,
    })),
  });
}

/** Milliseconds that each exchange takes on a wire with a master that needs no time itself. */
export function wireTimes(baudRate: number) {
  const character = characterMs({ baudRate, ...FORMAT });
  const silence = silenceMs(character);
  const exchange = ({ request, reply }: typeof POLL) =>
    (request + reply) * character + 2 * silence + TURNAROUND_MS;
  return {
    poll: exchange(POLL),
    /** Until the device has heard it, and closes the relay. */
    pulseHeard: PULSE.request * character + silence,
    pulseAnswered: exchange(PULSE) + exchange(READ_BACK),
  };
}

export interface Polling {
  pollsPerSecond: number;
  /** From poll to poll of the device that waits longest, milliseconds. */
  refreshMs: number;
  /** Requests in all that began before the silence that ends the frame before them. */
  shortGaps: number;
  /** Requests that ran into a reply: the master had given it up. */
  collisions: number;
}

/** What the bus itself sees in so many seconds. `healthy`: whose refresh counts. */
export async function watchPolls(
  bus: SimulatedBus,
  healthy: readonly number[],
  seconds: number,
): Promise<Polling> {
  await bus.setBus({ resetStats: true });
  await sleep(seconds * 1_000);
  const { exchanges, elapsedMs, requests, shortGaps, collisions } = await bus.stats();
  const refreshes = healthy.map((unit) => elapsedMs / (requests[unit] ?? 0));
  return {
    pollsPerSecond: (exchanges * 1_000) / elapsedMs,
    refreshMs: Math.max(...refreshes),
    shortGaps,
    collisions,
  };
}
