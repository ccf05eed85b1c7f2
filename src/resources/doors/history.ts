/**
 * What the lock of each door reported of its radio and battery, once an hour, for 90 days. An hour in which nothing was heard of
 * the lock has no sample. A thousand doors take 12 MB, and write half a megabyte in an hour.
 */
import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { DoorContext } from './context.ts';
import type { Directory, Entry } from './directory.ts';
import type { HistorySample } from './list-schema.ts';
import type { Locks } from './locks.ts';
import { existing } from './table.ts';

const HOUR_MS = 3_600_000;
const HOURS = 24;
/** In the middle of an hour, so that a clock that is corrected by seconds leaves none out. */
const SAMPLED_AT_MS = HOUR_MS / 2;
/** Rows of one commit, and the time between two: no one waits long for one. */
const BATCH_MAX = 200;
const PAUSE_MS = 500;

export interface History {
  /** The oldest first, of so many days until now. Throws NOT_FOUND. */
  history(doorId: string, query: { days: number }): { doorId: string; samples: HistorySample[] };
  /** For supervise. */
  keepHistory(signal: AbortSignal): Promise<never>;
}

export function openHistory(
  { database, table, clock }: DoorContext,
  directory: Directory,
  locks: Locks,
): History {
  function sampleOf(entry: Entry): Values | undefined {
    const { ageMs = Number.POSITIVE_INFINITY } = locks.connection(entry) ?? {};
    const report = locks.report(entry);
    return report && ageMs <= HOUR_MS ? valuesOf(report) : undefined;
  }

  /** Inside a commit job. */
  function store(accessPointId: number, at: number, values: Values): void {
    const hour = Math.floor(at / HOUR_MS);
    const day = Math.floor(hour / HOURS);
    const row = table.historyDay.get(accessPointId, day);
    const samples = row ? Buffer.from(row.samples) : Buffer.alloc(HOURS * SAMPLE_BYTES);
    samples.set(bytesOf(values), (hour % HOURS) * SAMPLE_BYTES);
    table.setHistory.run(accessPointId, day, samples);
    // By number and not by date: a clock that is wrong for a while removes nothing.
    if (!row) table.pruneHistory.run(accessPointId, accessPointId);
  }

  async function sample(signal: AbortSignal): Promise<void> {
    const at = clock.now();
    const samples = directory.entries().flatMap((entry) => {
      const values = sampleOf(entry);
      return values ? [{ accessPointId: entry.access_point_id, values }] : [];
    });
    while (samples.length > 0) {
      const batch = samples.splice(0, BATCH_MAX);
      await database.commit(() => {
        for (const { accessPointId, values } of batch) store(accessPointId, at, values);
      }, 'telemetry');
      if (samples.length > 0) await clock.sleep(PAUSE_MS, signal);
    }
  }

  return {
    history(doorId, { days }) {
      const { access_point_id: accessPointId } = existing(table, doorId);
      const now = clock.now();
      const since = Math.floor(now / HOUR_MS) - days * HOURS;
      const rows = table.historySince.all(accessPointId, Math.floor(since / HOURS));
      const samples = rows.flatMap(({ day, samples }) => samplesOf(day, samples));
      const isWithin = ({ hour }: { hour: number }) => hour > since && hour * HOUR_MS <= now;
      return {
        doorId,
        samples: samples.filter(isWithin).map(({ hour, values }) => ({
          at: new Date(hour * HOUR_MS).toISOString(),
          ...values,
        })),
      };
    },
    async keepHistory(signal) {
      for (;;) {
        const passed = (clock.now() - SAMPLED_AT_MS) % HOUR_MS;
        await clock.sleep(passed < 0 ? -passed : HOUR_MS - passed, signal);
        await sample(signal);
      }
    },
  };
}

type Values = Omit<HistorySample, 'at'>;

/** A field's number in a byte of its own: how it is made, and what it says. */
const BYTES: readonly [
  keyof Values,
  toByte: (value: number) => number,
  fromByte: (byte: number) => number,
][] = [
  ['lqi', (lqi) => lqi, (byte) => byte],
  ['rssi', (rssi) => -rssi, (byte) => 0 - byte],
  ['battery', (percent) => percent, (byte) => byte],
  // As finely as a battery is reported (locks.ts).
  ['batteryMillivolts', (millivolts) => millivolts / 50, (byte) => byte * 50],
];
/** First a bit for each field that there is. */
const SAMPLE_BYTES = 1 + BYTES.length;

function bytesOf(values: Values): number[] {
  let mask = 0;
  const bytes = BYTES.map(([field, toByte], index) => {
    const value = values[field];
    if (value === null) return 0;
    mask |= 1 << index;
    return Math.min(255, Math.max(0, Math.round(toByte(value))));
  });
  return [mask, ...bytes];
}

function samplesOf(day: number, bytes: Uint8Array): { hour: number; values: Values }[] {
  return Array.from({ length: HOURS }, (_, index) => {
    const [mask = 0, ...stored] = bytes.subarray(index * SAMPLE_BYTES, (index + 1) * SAMPLE_BYTES);
    const values = Object.fromEntries(
      BYTES.map(([field, , fromByte], at) => [field, mask & (1 << at) ? fromByte(stored[at] ?? 0) : null]),
    ) as Values;
    return { mask, hour: day * HOURS + index, values };
  }).filter(({ mask }) => mask !== 0);
}

function valuesOf({ lqi, rssi, battery, dueBatteryUnderLoad, dueBatteryWithoutLoad }: LockReport): Values {
  return {
    lqi: lqi ?? null,
    rssi: rssi ?? null,
    battery: battery ?? null,
    batteryMillivolts: dueBatteryUnderLoad ?? dueBatteryWithoutLoad ?? null,
  };
}
