/**
 * Rows for devices that no configuration names: found on their bus, by what they say or by a scan. They are written
 * in batches, and so many of a bus that one with a hostile device on it fills no disk.
 */

import { randomUUID } from 'node:crypto';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { printable } from '../../platform/http/fields.ts';
import { type Caller, SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Rs485Context } from './context.ts';
import type { Found, PolledAddresses } from './polled-addresses.ts';
import type { Settings } from './settings.ts';
import type { Rs485Row } from './table.ts';

/** Devices of a bus, found or imported, beyond which none is found: as many as there are addresses. */
const DEVICES_MAX = 256;
/** Found and not written yet; a bus that has more says so again. */
const WAITING_MAX = 1_024;
/** Between two batches: soon enough for a person who has just wired a device. */
const BATCH_MS = 1_000;

export interface Discovery {
  /** A device without a row said this. */
  unknown(bus: string, report: Rs485Report): void;
  /** The bus is down: what its devices without a row said is so no more. */
  lost(bus: string): void;
  /** Writes rows for those that have none, now; on behalf of the caller that looked for them. */
  record(found: readonly Found[], caller: Caller): Promise<void>;
  /** Inside a commit job: the row of a device, made when there is none; undefined when its bus has too many. */
  row(found: Found): Rs485Row | undefined;
  /** For supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openDiscovery(
  { database, table, audit, clock, log }: Rs485Context,
  settings: Settings,
  polled: PolledAddresses,
): Discovery {
  const waiting = new Map<string, { bus: string; report: Rs485Report }>();
  /** Buses that were named in the log. */
  const crowded = new Set<string>();

  /**
   * After the commit: rows of these, of which some may be part of others by now, and may have reported since they have
   * one. `since` is epoch milliseconds.
   */
  function follow(deviceIds: readonly string[], since: number): void {
    for (const { device_id, bus } of deviceIds.flatMap((id) => table.device.get(id) ?? [])) {
      if (!settings.reported.get(device_id)) settings.reported.add(device_id, since);
      polled.changed(bus);
    }
  }

  /** After the commit: what one said last before it had a row. */
  function reportedBefore(row: Rs485Row, report: Rs485Report): void {
    const isLatest = settings.reported.get(row.device_id)?.at === undefined;
    if (isLatest) settings.take(row, report);
  }

  function hasRoom(bus: string): boolean {
    if ((table.countOnBus.get(bus)?.count ?? 0) < DEVICES_MAX) return true;
    if (!crowded.has(bus))
      log.warn({ link: bus }, `bus ${bus} has ${DEVICES_MAX} devices: no further ones are taken up`);
    crowded.add(bus);
    return false;
  }

  const mayHaveRow = (bus: string, hwId: string) => printable.safeParse(hwId).success && hasRoom(bus);

  /** Inside a commit job. Returns the id of the new row; undefined when there is none. */
  function insert({ bus, hwId, address }: Found, { principal, correlationId }: Caller): string | undefined {
    if (table.byHwId.get(bus, hwId) || !mayHaveRow(bus, hwId)) return undefined;
    const deviceId = randomUUID();
    const now = clock.now();
    const by = SYSTEM_PRINCIPAL.id;
    if (address !== null) table.clearAddress.run(bus, address, deviceId);
    table.insertFound.run(deviceId, bus, hwId, address, now, now, by, now, by);
    audit.record({
      principal,
      action: 'rs485.found',
      object: `rs485/${deviceId}`,
      outcome: 'done',
      detail: { bus, hwId, address },
      correlationId,
    });
    return deviceId;
  }

  async function record(found: readonly Found[], caller: Caller): Promise<void> {
    const added = await database.commit(() => found.flatMap((one) => insert(one, caller) ?? []));
    if (added.length > 0) follow(added, clock.now());
    for (const { bus, hwId } of found) {
      const key = keyOf(bus, hwId);
      const report = waiting.get(key)?.report;
      const row = report && table.byHwId.get(bus, hwId);
      // What another record has just taken over is reported in the next round: it may not be known yet.
      if (!row || !added.includes(row.device_id)) continue;
      waiting.delete(key);
      reportedBefore(row, report);
    }
  }

  const bySystem = (): Caller => ({ principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() });
  return {
    record,
    unknown(bus, report) {
      const key = keyOf(bus, report.hwId);
      // A driver goes on to report one that was retired, which no one has seen again. One of OSDP without a key answers, and is not connected.
      const isThere = report.connected || report.security !== undefined;
      if (waiting.has(key) || (isThere && waiting.size < WAITING_MAX)) waiting.set(key, { bus, report });
    },
    lost(bus) {
      for (const [key, one] of waiting) if (one.bus === bus) waiting.delete(key);
    },
    row(found) {
      insert(found, bySystem());
      return table.byHwId.get(found.bus, found.hwId);
    },
    async run(signal) {
      for (;;) {
        await clock.sleep(BATCH_MS, signal);
        for (const [key, { bus, report }] of waiting) {
          const row = table.byHwId.get(bus, report.hwId);
          if (row) reportedBefore(row, report);
          if (row || !mayHaveRow(bus, report.hwId)) waiting.delete(key);
        }
        if (waiting.size > 0) await record([...waiting.values()].map(foundBy), bySystem());
      }
    },
  };
}

const keyOf = (bus: string, hwId: string) => JSON.stringify([bus, hwId]);

function foundBy({ bus, report }: { bus: string; report: Rs485Report }): Found {
  return { bus, hwId: report.hwId, address: report.connected ? (report.address ?? null) : null };
}
