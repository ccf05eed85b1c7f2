/** Puts the standby's copy in the place of its own database, when it becomes the active one. What was there is kept aside. */

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Takeover } from '../app/services.ts';
import type { Clock } from '../platform/clock.ts';
import { openConnection } from '../platform/database/connection.ts';
import { syncPath } from '../platform/database/migrate.ts';
import type { Log } from '../platform/log.ts';
import { openLockMemoryDoubt } from '../resources/doors/lock-memory-table.ts';
import type { Copy } from '../services/cluster/copy.ts';
import type { OwnState } from '../services/cluster/own-state.ts';
import { countersFrom, countersOf, openSequenceFloor } from './restore-counters.ts';

export interface TakeOverOptions {
  dataDirectory: string;
  clock: Clock;
  log: Log;
}

/** Without a copy with the database that there is. Again until the database has recorded it; undefined: there is nothing to take over. */
export function takeOver(
  { dataDirectory, clock, log }: TakeOverOptions,
  own: OwnState,
  copy: Copy | undefined,
): Takeover | undefined {
  const { epoch, unplaced: from } = own.current;
  if (from === null) return undefined;
  if (copy) {
    placeCopy(dataDirectory, copy, clock.now());
    log.warn({ epoch, from }, 'this gateway takes over, with the copy that it has followed');
  } else
    log.warn(
      { epoch, from },
      'this gateway takes over by the word of an operator, with the database that it has',
    );
  return { epoch, from, recorded: () => own.change({ unplaced: null }) };
}

/** Once more after it was cut short: goes on where it was. */
function placeCopy(dataDirectory: string, copy: Copy, now: number): void {
  goOn(copy.file, now);
  const aside = join(dataDirectory, 'cluster', 'replaced');
  // Of this takeover when it was cut short: then the database is in it already.
  const isAside = existsSync(aside) && !existsSync(join(dataDirectory, 'gatehouse.db'));
  if (!isAside) rmSync(aside, { recursive: true, force: true });
  mkdirSync(aside, { recursive: true, mode: 0o700 });
  // The files of Zigbee networks are of an earlier time: those in the copy count.
  const outdated = readdirSync(dataDirectory).filter(
    (name) => /^gatehouse\.db(-|$)/.test(name) || name === 'zigbee' || name === 'inventory.json',
  );
  for (const name of outdated) renameSync(join(dataDirectory, name), join(aside, name));
  renameSync(copy.file, join(dataDirectory, 'gatehouse.db'));
  syncPath(dataDirectory);
  copy.drop();
}

/** As after a restore: the newest commits of the other gateway may be missing, and what encoders and services count goes on above them. */
function goOn(file: string, now: number): void {
  using connection = openConnection(file);
  const { epoch, sequence } = countersFrom(countersOf(connection), { epoch: 0, sequence: 0 }, now);
  const setSequenceFloor = openSequenceFloor(connection);
  const doubtLocks = openLockMemoryDoubt(connection);
  connection.exec('BEGIN IMMEDIATE');
  // The id of the database stays: the chain of the audit is bound to it.
  connection.prepare<[number]>('UPDATE system SET epoch = ? WHERE id = 1').run(epoch);
  setSequenceFloor(sequence);
  doubtLocks();
  connection.exec('COMMIT');
}
