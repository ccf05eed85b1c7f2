/**
 * What has to be closed when a database has taken the place of another one, or has lost some of what was stored: it does not
 * know what was opened since. What the other one still says is carried over. Where that cannot be read every lock is locked
 * once, also one that a hand has unlocked: which those are cannot be known either, a locked door opens from inside, and one
 * that is left unlocked stays so until somebody passes. What stood open when the copy was made is closed, and not opened again.
 */

import { randomUUID } from 'node:crypto';
import type { Prepare } from '../../platform/database/database.ts';
import type { Principal } from '../../platform/principal.ts';
import type { OpenAudit } from '../../services/audit/audit.ts';
import { doorEntry } from './live-events.ts';
import { type ClosingRow, openingStatements } from './openings-table.ts';

/** A lock that is to be seen locked. */
export type Duty = Pick<ClosingRow, 'mac' | 'door_id' | 'gateway_id' | 'network_id' | 'purpose'>;

export interface ClosingsAfter {
  /** Undefined: what was to be closed is not known. */
  known: readonly Duty[] | undefined;
  reason: string;
  now: number;
  principal: Principal;
  audit: Pick<OpenAudit, 'record'> | undefined;
}

/** Of the database in place, of any schema. Throws when it does not say. */
export function dutiesIn({ prepare }: Prepare): Duty[] {
  return prepare<[], Duty>(
    `SELECT mac, door_id, gateway_id, network_id, purpose FROM lock_closing
     UNION ALL SELECT mac, door_id, gateway_id, network_id, 'standOpen' FROM stand_open WHERE mac IS NOT NULL`,
  ).all();
}

/** Returns what stores it inside a commit job, and says how many locks the next start locks. */
export function openClosingsAfter(database: Prepare): (after: ClosingsAfter) => number {
  const { prepare } = database;
  const { closing, closings, standOpens, deleteStandOpen, storeClosing } = openingStatements(prepare);
  const doorOf = prepare<[string], { id: string }>('SELECT id FROM door WHERE mac = ?');
  const allLocks = prepare<[], Duty>(
    `SELECT mac, id AS door_id, gateway_id, network_id, 'unlock' AS purpose FROM door WHERE mac IS NOT NULL`,
  );

  return ({ known, reason, now, principal, audit }) => {
    const correlation = randomUUID();
    const stood = standOpens.all();
    for (const { door_id: id, mac } of stood) {
      // A relay that is held no more lets go by itself.
      const outcome = mac === null ? 'ended' : 'ending';
      const by = { principal, correlationId: correlation };
      audit?.record(doorEntry(id, 'door.stand-open', { mac, reason }, by, outcome));
      deleteStandOpen.run(id);
    }
    const own = stood.flatMap(({ mac, ...row }) =>
      mac === null ? [] : [{ ...row, mac, purpose: 'standOpen' as const }],
    );
    for (const { mac, door_id, gateway_id, network_id, purpose } of [...own, ...(known ?? allLocks.all())]) {
      if (purpose === 'unlock' && closing.get(mac)) continue;
      storeClosing({
        mac,
        door_id: doorOf.get(mac)?.id ?? door_id,
        gateway_id,
        network_id,
        purpose,
        reason,
        // What opens it may have been on its way when the gateway was stopped.
        uncertain: 1,
        since: now,
        actor_id: principal.id,
        actor: principal.label,
        correlation_id: correlation,
      });
    }
    return closings.all().length;
  };
}
