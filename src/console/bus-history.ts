/** What a bus did since the console was opened, kept here: the gateway has the present only. */

import type { WireCounters } from '../../drivers/contract/rs485.ts';
import type { BusOverview } from '../resources/rs485/bus-schema.ts';

export const WINDOW_MS = 600_000;

type ErrorClass = Exclude<keyof WireCounters, 'replies'> | 'stray';
/** As docs/openapi.json names them. */
export const ERROR_CLASSES = [
  'timeouts',
  'crc',
  'framing',
  'refusals',
  'collisions',
  'late',
  'stray',
] as const;

export interface BusSample {
  at: number;
  /** 0 to 1. */
  utilisation: number | null;
  /** Of the device that takes longest to begin its reply. */
  latencyMs: number | null;
  /** Since the sample before. */
  errors: Readonly<Record<ErrorClass, number>>;
}

interface History {
  samples: BusSample[];
  totals: Record<ErrorClass, number>;
}

const histories = new Map<string, History>();

/** Adds what was just read, and returns the samples of the window, the oldest first. */
export function remember(bus: BusOverview, now: number): readonly BusSample[] {
  const before = histories.get(bus.id);
  const totals = totalsOf(bus);
  const sample: BusSample = {
    at: now,
    utilisation: bus.utilisation,
    latencyMs: bus.devices.reduce<number | null>(slower, null),
    errors: mapped((name) => grownBy(before?.totals[name], totals[name])),
  };
  const samples = [...(before?.samples ?? []), sample].filter(({ at }) => now - at < WINDOW_MS);
  histories.set(bus.id, { samples, totals });
  return samples;
}

const mapped = (of: (name: ErrorClass) => number) =>
  Object.fromEntries(ERROR_CLASSES.map((name) => [name, of(name)])) as Record<ErrorClass, number>;

/** Counters begin again at 0 when the link comes up. */
function grownBy(before: number | undefined, now: number): number {
  if (before === undefined) return 0;
  return now >= before ? now - before : now;
}

const slower = (most: number | null, { alive, turnaroundMs }: BusOverview['devices'][number]) =>
  turnaroundMs === null || !alive ? most : Math.max(most ?? 0, turnaroundMs);

function totalsOf({ devices, strayBytes }: BusOverview): Record<ErrorClass, number> {
  return mapped((name) =>
    name === 'stray' ? (strayBytes ?? 0) : devices.reduce((sum, { counters }) => sum + counters[name], 0),
  );
}
