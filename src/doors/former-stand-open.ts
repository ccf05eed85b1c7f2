/**
 * standOpenEnabled used to be an action: `true` put a lock into passage mode and held a relay. It is a permission now. What
 * stands open only by the former meaning is closed once, after the update: the relay is held no more, and the lock is locked.
 */
import { randomUUID } from 'node:crypto';
import type { Audit } from '../audit/audit.ts';
import type { Database } from '../database/database.ts';
import type { Log } from '../log.ts';
import { SYSTEM_PRINCIPAL } from '../principal.ts';
import type { Closings } from './closing.ts';
import type { DoorTable } from './table.ts';

export interface FormerStandOpenOptions {
  database: Database;
  table: DoorTable;
  audit: Audit;
  log: Log;
  closings: Pick<Closings, 'store' | 'schedule'>;
}

const REASON = 'standOpenEnabled is a permission since the update, and holds no door open';

export async function closeFormerStandOpen(options: FormerStandOpenOptions): Promise<void> {
  const { database, table, audit, log, closings } = options;
  const doors = table.stoodOpenBySetting.all();
  if (doors.length === 0) return;
  const caller = { principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() };
  await database.commit(() => {
    for (const { id, mac, gateway_id, network_id } of doors) {
      const object = `door/${id}`;
      const detail = { mac, reason: REASON };
      audit.record({ ...caller, action: 'door.stand-open', object, outcome: 'ending', detail });
      const door = { id, gateway_id, network_id };
      if (mac !== null)
        closings.store({ door, mac, purpose: 'standOpen', reason: REASON, uncertain: false, caller });
      table.forgetStoodOpen.run(id);
    }
  }, 'urgent');
  for (const { mac } of doors) if (mac !== null) closings.schedule(mac, 0);
  const ids = doors.map(({ id }) => id);
  log.warn({ doors: ids }, `doors that may have stood open by their configuration are closed: ${REASON}`);
}
