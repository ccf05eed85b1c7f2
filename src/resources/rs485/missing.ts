/** Devices that should answer and do not, for the status: also those that have no address, and so are not polled. */

import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { storedTime } from '../../platform/database/damaged-rows.ts';
import type { Reported } from '../../services/reconcile/reported.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import type { Rs485Row } from './table.ts';
import { unfedReason } from './unfed.ts';
import { isUnclaimed } from './wanted.ts';

/** Named at most; of more the list of devices has the rest (`connected=false`). */
const MISSING_MAX = 20;
/** Of the new devices of a bus, so many are named. */
const NEW_MAX = 3;
/** Of a bus that is up: by then each device was asked several times. */
const SETTLED_MS = 15_000;

export interface MissingDevice {
  deviceId: string;
  name: string | null;
  hwId: string;
  bus: string;
  /** Since when, and what to do. */
  message: string;
}

export function openMissing({
  database,
  table,
  clock,
  buses,
  field,
  reported,
}: Rs485Context & {
  buses: Pick<Buses, 'device'>;
  reported: Pick<Reported<Rs485Report>, 'get'>;
}): () => MissingDevice[] {
  const isConnected = ({ device_id }: Rs485Row) => reported.get(device_id)?.connected ?? false;
  /** It answers, and is not in service yet: a warning of its bus says what to do. */
  const isUnpaired = ({ device_id }: Rs485Row) => reported.get(device_id)?.state?.security === 'unpaired';

  /** Of a bus that is down the status says so once. */
  function isSettled(bus: string): boolean {
    const link = field.link(bus);
    // A clock that was set back counts as time enough: for days nothing would be missing otherwise.
    return link?.up === true && Math.abs(clock.now() - link.since) >= SETTLED_MS;
  }

  function messageOf(row: Rs485Row, found: readonly Rs485Row[], rows: readonly Rs485Row[]): string {
    const changedAt = reported.get(row.device_id)?.changedAt ?? row.connected_changed_at;
    const since = storedTime(`rs485/${row.device_id}`, changedAt);
    const silent = `${row.hw_id} does not answer on bus ${row.bus} since ${since}`;
    const fresh = found.filter(({ bus }) => bus === row.bus).map(({ hw_id }) => hw_id);
    const unfed = unfedReason(row, reported.get(row.device_id)?.state, buses);
    if (unfed) return `${silent}: ${unfed}`;
    const exchanged = rows.find(({ bus, hw_id }) => bus !== row.bus && fresh.includes(hw_id));
    if (exchanged)
      return `${silent}, and ${exchanged.hw_id} of bus ${exchanged.bus} answers there: their adapters may have exchanged names. Name each port by its link in /dev/serial/by-id`;
    if (fresh.length === 0)
      return `${silent}: check its supply and wiring. If its address was changed, a scan of the bus finds it (gatehouse bus scan ${row.bus}). If it is gone for good, remove it; a key that it has is forgotten with that`;
    const more = fresh.length > NEW_MAX ? ' and others' : '';
    return `${silent}; new there: ${fresh.slice(0, NEW_MAX).join(', ')}${more}. If one of them took its place, replace ${row.hw_id} with it`;
  }

  return () => {
    const rows = table.all.all();
    const found = rows.filter((row) => isUnclaimed(row) && isConnected(row));
    return rows
      .filter((row) => !isConnected(row) && !isUnpaired(row) && isSettled(row.bus))
      .slice(0, MISSING_MAX)
      .flatMap((row) =>
        database.legible(`rs485/${row.device_id}`, () => ({
          deviceId: row.device_id,
          name: row.name,
          hwId: row.hw_id,
          bus: row.bus,
          message: messageOf(row, found, rows),
        })),
      );
  };
}
