/**
 * The numbers that others remember and that a restored database has forgotten: the epoch of the starts, and the sequence
 * of the events of each encoder. Both go on above all that was ever used, also where the database in place is lost or
 * damaged and the same archive is restored again; then only the clock is known to have gone on.
 *
 * The epoch. A start takes max(epoch + 1, seconds of the clock) (system.ts), and a restore takes the seconds plus LEAP.
 * Starts are more than a second apart, so at the time t no start had more than t, and none after a restore more than
 * t + LEAP: a restore at t is above all of them. LEAP is there for a clock that was a little ahead and was set back. It is
 * not added to what an earlier restore gave, for then nothing but that database would know how far to go. Seconds, and
 * not milliseconds: an encoder may keep 32 bits.
 *
 * The sequence. It counts from 1, and a restore takes hundredths of a second: no encoder has a hundred events a second
 * on average. In twelve digits (src/services/events/cloud-event.ts) they last until the year 2286.
 */
import { openConnection } from '../platform/database/connection.ts';
import type { Prepare } from '../platform/database/database.ts';
import { EARLIEST_MS } from '../platform/known-time.ts';
import { openEventTable } from '../services/events/table.ts';

const LEAP = 1_000_000;

export interface Counters {
  epoch: number;
  /** The highest of all encoders. */
  sequence: number;
}

/** Those of the copy, and those of the database in place as far as it can be read. `now` is epoch milliseconds. */
export function countersFrom(copy: Counters, inPlace: Counters, now: number): Counters {
  return {
    epoch: Math.max(inPlace.epoch + 1, above(copy.epoch, Math.floor(now / 1_000) + LEAP, now)),
    sequence: Math.max(inPlace.sequence, above(copy.sequence, Math.floor(now / 10), now)),
  };
}

/** Where the clock is behind what the copy has used, one of the two clocks was wrong: best is a number that still grows. */
function above(used: number, byClock: number, now: number): number {
  if (byClock > used) return byClock;
  return used + LEAP + Math.max(0, Math.floor((now - EARLIEST_MS) / 1_000));
}

/** Inside a commit job. */
export const openSequenceFloor = (database: Prepare) => openEventTable(database).setSequenceFloor;

export function countersOf(database: Prepare): Counters {
  return { epoch: epochOf(database), sequence: sequenceOf(database) };
}

/** None where the file is missing, and of a damaged one what can be read: that is why there is a restore. */
export function countersIn(file: string): Counters {
  const read = (counter: (database: Prepare) => number) => {
    try {
      using connection = openConnection(file);
      return counter(connection);
    } catch {
      return 0;
    }
  };
  return { epoch: read(epochOf), sequence: read(sequenceOf) };
}

const epochOf = (database: Prepare) => highest(database, 'SELECT epoch AS value FROM system WHERE id = 1');

const sequenceOf = (database: Prepare) =>
  Math.max(
    highest(database, 'SELECT max(last) AS value FROM event_sequence'),
    highest(database, 'SELECT max(sequence) AS value FROM event'),
  );

function highest(database: Prepare, sql: string): number {
  return database.prepare<[], { value: number | null }>(sql).get()?.value ?? 0;
}
