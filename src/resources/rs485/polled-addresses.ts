/**
 * Where devices are, and so which ones each bus is to poll besides those its configuration names: the rows that have an
 * address.
 */
import { createHash } from 'node:crypto';
import { DriverError, type Plain } from '../../../drivers/contract/driver.ts';
import type { Watch } from '../../../drivers/contract/rs485.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import { openWaking } from '../../platform/waking.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import type { Keys } from './keys.ts';
import type { Rs485Row } from './table.ts';

/** The driver only takes note of it. */
const WATCH_TIMEOUT_MS = 10_000;
const RETRY_MS = 5_000;
/** What a driver has that has just opened its link. */
const NOTHING = JSON.stringify([[], undefined]);

/** Where a device was found. */
export interface Found {
  bus: string;
  hwId: string;
  address: number | null;
}

export interface PolledAddresses {
  /** Devices of this bus were added, removed or moved. */
  changed(bus: string): void;
  /** Inside a commit job: a device is at this address. Whose that was before is there no more. */
  heardAt(row: Rs485Row, address: number): void;
  /** Stores where devices with a row are; one with a key, once a session has shown it. */
  place(found: readonly Found[]): Promise<void>;
  /** A driver that has just opened its link watches nothing. */
  link(bus: string, up: boolean): void;
  /** For supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openPolledAddresses(
  { database, table, field, clock, log }: Rs485Context,
  buses: Pick<Buses, 'speaks'>,
  keys: Pick<Keys, 'of' | 'follow' | 'moved'>,
): PolledAddresses {
  /** Buses that are up, each with what its present driver has. */
  const drivers = new Map<string, { has: string }>();
  const stale = new Set<string>();
  const waking = openWaking(clock);

  function wake(bus: string): void {
    stale.add(bus);
    waking.wake();
  }

  async function send(bus: string, signal: AbortSignal): Promise<void> {
    const driver = drivers.get(bus);
    const devices = table.addressed.all(bus).map(({ address, hwId }) => ({ address, hwId }));
    const known = buses.speaks(bus, 'osdp') ? keys.of(bus) : undefined;
    const list = listOf({ devices, keys: known });
    stale.delete(bus);
    if (!driver || driver.has === list) return;
    try {
      // Plain, but for optional keys in its type.
      const data = { devices, ...(known && { keys: known }) } as { [key: string]: Plain };
      await field.execute(
        bus,
        { kind: 'watch', data, timeoutMs: WATCH_TIMEOUT_MS, movesNothing: true },
        signal,
      );
      driver.has = list;
    } catch (error) {
      // Another driver has the link by then: link() will say so.
      if (error instanceof DriverError && error.code === 'LINK_LOST') return;
      stale.add(bus);
      log.warn(
        { link: bus, err: error },
        `bus ${bus} did not get the list of devices to poll; it is sent again`,
      );
    }
  }

  function heardAt({ device_id, bus, address }: Rs485Row, now: number): void {
    if (address === now) return;
    table.clearAddress.run(bus, now, device_id);
    table.setAddress.run(now, device_id);
    if (address !== null) keys.moved(bus, address, now);
    wake(bus);
  }

  function elsewhere(found: readonly Found[]): { row: Rs485Row; address: number }[] {
    return found.flatMap(({ bus, hwId, address }) => {
      const row = table.byHwId.get(bus, hwId);
      return row && address !== null && row.address !== address ? [{ row, address }] : [];
    });
  }

  return {
    changed: wake,
    heardAt,
    async place(found) {
      if (elsewhere(found).length === 0) return;
      await database.commit(() => {
        for (const { row, address } of elsewhere(found)) {
          const by = { now: clock.now(), principalId: SYSTEM_PRINCIPAL.id };
          const { bus, address: from } = row;
          if (from !== null && keys.follow({ bus, address: from }, address, by)) wake(bus);
          else heardAt(row, address);
        }
      });
    },
    link(bus, up) {
      if (!up) return void drivers.delete(bus);
      drivers.set(bus, { has: NOTHING });
      wake(bus);
    },
    run: (signal) =>
      waking.run(signal, async () => {
        await Promise.all([...stale].map((bus) => send(bus, signal)));
        return RETRY_MS;
      }),
  };
}

/** A list to compare. Where there are keys, none at all is something to be sent too. */
function listOf({ devices, keys }: { devices: Watch['devices']; keys: Watch['keys'] }): string {
  const digest = (key: Uint8Array | undefined) => key && createHash('sha256').update(key).digest('hex');
  const hidden = keys?.map(({ address, key, pending }) => [address, digest(key), digest(pending)]);
  return JSON.stringify([devices, hidden]);
}
