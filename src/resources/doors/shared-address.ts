/**
 * The lock of a door that is taken to have the network address of another device of its network: its gateway sends it
 * nothing that opens (drivers/zigbee/shared-addresses.ts). Until each has an address of its own this is in the state of
 * the door; that it began and that it ended is audited.
 */
import { randomUUID } from 'node:crypto';
import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Log } from '../../platform/log.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { Audit } from '../../services/audit/audit.ts';
import type { LockPlace, Locks } from './locks.ts';
import type { DoorState } from './schema.ts';
import type { DoorRow, DoorTable } from './table.ts';

export interface SharedAddressOptions {
  database: Database;
  table: Pick<DoorTable, 'byLock'>;
  audit: Audit;
  clock: Clock;
  log: Log;
  locks: Pick<Locks, 'report'>;
}

export function openSharedAddress({ database, table, audit, clock, log, locks }: SharedAddressOptions) {
  /** By lock, epoch milliseconds. */
  const found = new Map<string, number>();
  const sinceOf = (mac: string): number => {
    const since = found.get(mac) ?? clock.now();
    found.set(mac, since);
    return since;
  };

  async function record({ mac, gatewayId }: LockPlace, others: readonly string[]): Promise<void> {
    await database.commit(() => {
      for (const { id } of table.byLock.all(mac, gatewayId))
        audit.record({
          principal: SYSTEM_PRINCIPAL,
          action: 'door.lock-address-shared',
          object: `door/${id}`,
          outcome: others.length > 0 ? 'found' : 'ended',
          detail: { mac, others: [...others] },
          correlationId: randomUUID(),
        });
    }, 'telemetry');
  }

  return {
    /** A lock has reported its state. */
    reported(place: LockPlace, before: LockReport | undefined, after: LockReport): void {
      const others = after.sharesAddressWith ?? [];
      if (others.length === 0) found.delete(place.mac);
      else sinceOf(place.mac);
      if (others.join() === (before?.sharesAddressWith ?? []).join()) return;
      record(place, others).catch((error) =>
        log.warn({ lock: place.mac, err: error }, 'a lock shares its network address: this was not audited'),
      );
    },
    shown(row: Pick<DoorRow, 'mac' | 'gateway_id' | 'lock_left_at'>): DoorState['doubled'] {
      const { mac, gateway_id, lock_left_at } = row;
      const others = locks.report(row)?.sharesAddressWith ?? [];
      if (mac === null || gateway_id === null || lock_left_at !== null || others.length === 0) return null;
      return {
        gatewayIds: [gateway_id],
        since: new Date(sinceOf(mac)).toISOString(),
        message: `The lock ${mac} has the network address of ${others.join(', ')} too: what opens one could open the other, so nothing that opens is sent to it; closing is sent. Have one of the two leave the network and join again; remove the one that is not there any more.`,
      };
    },
  };
}
