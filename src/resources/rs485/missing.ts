/** Devices that should answer and do not, for the status: also those that have no address, and so are not polled. */

import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { storedTime } from '../../platform/database/damaged-rows.ts';
import type { Reported } from '../../services/reconcile/reported.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import type { Rs485Row } from './table.ts';
import { isUnclaimed } from './wanted.ts';
import { unfedReason } from './watchdog.ts';

/** Named at most; of more the list of devices has the rest (`connected=false`). */
const MISSING_MAX = 20;
/** Of the new devices of a bus, so many are named. */
const NEW_MAX = 3;
/** Of a bus that is up: by then each device was asked several times. */
const SETTLED_MS = 15_000;

/**
 * UNFED: it answers too late for its watchdog · PORTS_EXCHANGED: a device of another bus answers on this one · NEW_ONES_THERE:
 * devices answer that have no name yet · SILENT: none of it
 */
export type MissingCode = 'UNFED' | 'PORTS_EXCHANGED' | 'NEW_ONES_THERE' | 'SILENT';

export interface MissingDevice {
  deviceId: string;
  name: string | null;
  hwId: string;
  bus: string;
  code: MissingCode;
  /** Since when, and what to do. */
  message: string;
  parameters: Record<string, string>;
}

export function openMissing(
  { database, table, clock, field }: Rs485Context,
  buses: Pick<Buses, 'device'>,
  reported: Pick<Reported<Rs485Report>, 'get'>,
): () => MissingDevice[] {
  const isConnected = ({ device_id }: Rs485Row) => reported.get(device_id)?.connected ?? false;
  /** It answers, and is not in service yet: a warning of its bus says what to do. */
  const isUnpaired = ({ device_id }: Rs485Row) => reported.get(device_id)?.state?.security === 'unpaired';

  /** Such as the one that was replaced: it was never heard as this record, and no one wants anything of it. */
  const isGone = (row: Rs485Row) => row.address === null && isUnclaimed(row);

  /** Of a bus that is down the status says so once. */
  function isSettled(bus: string): boolean {
    const link = field.link(bus);
    // A clock that was set back counts as time enough: for days nothing would be missing otherwise.
    return link?.up === true && Math.abs(clock.now() - link.since) >= SETTLED_MS;
  }

  const changedAt = (row: Rs485Row) => reported.get(row.device_id)?.changedAt ?? row.connected_changed_at;

  function reasonOf(
    row: Rs485Row,
    found: readonly Rs485Row[],
    rows: readonly Rs485Row[],
  ): Pick<MissingDevice, 'code' | 'message' | 'parameters'> {
    const since = storedTime(`rs485/${row.device_id}`, changedAt(row));
    const about = { hwId: row.hw_id, bus: row.bus, since };
    const silent = `${row.hw_id} does not answer on bus ${row.bus} since ${since}`;
    const unfed = unfedReason(row, reported.get(row.device_id)?.state, buses);
    if (unfed) return { code: 'UNFED', message: `${silent}: ${unfed}`, parameters: about };
    // The one that was mounted last is the most likely.
    const fresh = found
      .filter(({ bus }) => bus === row.bus)
      .toSorted((one, other) => changedAt(other) - changedAt(one))
      .map(({ hw_id }) => hw_id);
    const exchanged = rows.find(({ bus, hw_id }) => bus !== row.bus && fresh.includes(hw_id));
    if (exchanged) {
      const { hw_id: newHwId, bus: newBus } = exchanged;
      const message = `${silent}, and ${newHwId} of bus ${newBus} answers there: their adapters may have exchanged names. Name each port by its link in /dev/serial/by-id`;
      return { code: 'PORTS_EXCHANGED', message, parameters: { ...about, newHwId, newBus } };
    }
    if (fresh.length === 0) {
      const message = `${silent}: check its supply and wiring. If its address was changed, a scan of the bus finds it (gatehouse bus scan ${row.bus}). If it is gone for good, remove it; a key that it has is forgotten with that`;
      return { code: 'SILENT', message, parameters: about };
    }
    const named = [...fresh.slice(0, NEW_MAX), ...(fresh.length > NEW_MAX ? ['…'] : [])].join(', ');
    const message = `${silent}; new there: ${named}. If one of them took its place, replace ${row.hw_id} with it`;
    return { code: 'NEW_ONES_THERE', message, parameters: { ...about, named } };
  }

  return () => {
    const rows = table.all.all();
    const found = rows.filter((row) => isUnclaimed(row) && isConnected(row));
    return rows
      .filter((row) => !isConnected(row) && !isGone(row) && !isUnpaired(row) && isSettled(row.bus))
      .slice(0, MISSING_MAX)
      .flatMap((row) =>
        database.legible(`rs485/${row.device_id}`, () => ({
          deviceId: row.device_id,
          name: row.name,
          hwId: row.hw_id,
          bus: row.bus,
          ...reasonOf(row, found, rows),
        })),
      );
  };
}
