/** What waits for the lock of a door, what became of what did, and cancelling it. */

import { z } from 'zod';
import { storedJson } from '../../platform/database/damaged-rows.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import type { Reconciler } from '../../services/reconcile/reconcile.ts';
import type { Configuration } from './configuration.ts';
import type { DoorContext } from './context.ts';
import type { Deliveries } from './deliveries.ts';
import { acknowledgedOf, changedFields, storeWanted, wantedOf } from './edit.ts';
import type { DoorPending } from './list-schema.ts';
import { doorEntry } from './live-events.ts';
import type { DoorState } from './schema.ts';
import type { DeliveryRow, DoorRow, DoorTable } from './table.ts';

export interface PendingOptions extends DoorContext {
  deliveries: Deliveries;
  configuration: Pick<Configuration, 'isInForce' | 'isWaiting'>;
  reconciler: Pick<Reconciler, 'failure' | 'nextAttempt'>;
}

type Attempts = Pick<DoorState['configuration'], 'failure' | 'nextAttempt'>;

/** How it goes with the door's present configuration. */
export function attemptsOf(row: DoorRow, { reconciler }: PendingOptions): Attempts {
  const failure = reconciler.failure(row.id);
  const next = reconciler.nextAttempt(row.id);
  return {
    failure: failure ? { ...failure, at: iso(failure.at) } : null,
    nextAttempt: next === undefined ? null : iso(next),
  };
}

export function pendingOf(row: DoorRow, options: PendingOptions): DoorPending {
  const { table, configuration } = options;
  const attempts = attemptsOf(row, options);
  const items = table.deliveries.all(row.id).map((delivery) => {
    const isPresent = delivery.config_version === row.config_version;
    const status = isPresent ? presentStatus(delivery, row, options) : delivery.status;
    const isOpen = isPresent && status !== 'acknowledged';
    return {
      configVersion: delivery.config_version,
      status,
      fields: fieldsOf(row.id, delivery),
      wantedBy: delivery.wanted_by,
      wantedAt: iso(delivery.wanted_at),
      sentAt: delivery.sent_at === null ? null : iso(delivery.sent_at),
      endedAt: isOpen || delivery.ended_at === null ? null : iso(delivery.ended_at),
      ...(isOpen ? attempts : { failure: null, nextAttempt: null }),
    };
  });
  return { id: row.id, waiting: configuration.isWaiting(row), items };
}

/** What the lock has lost waits again; and what it refused does so in vain. */
function presentStatus(
  { status }: DeliveryRow,
  row: DoorRow,
  { configuration, reconciler }: PendingOptions,
): DoorPending['items'][number]['status'] {
  if (configuration.isInForce(row)) return status;
  if (reconciler.failure(row.id)?.permanent) return 'refused';
  return status === 'acknowledged' ? 'queued' : status;
}

/** Inside a commit job: what travels is wanted as it was acknowledged last. Returns whether that is a change. */
export function cancelIn(row: DoorRow, caller: Caller, options: PendingOptions): boolean {
  const { table, clock, audit, deliveries, configuration } = options;
  if (configuration.isInForce(row)) return false;
  const acknowledged = acknowledgedOf(row);
  if (acknowledged === null) {
    const message =
      'The lock has acknowledged nothing yet, so there is nothing to go back to: change the door to what it is to be.';
    throw new GatehouseError('NOTHING_APPLIED', message);
  }
  const before = wantedOf(row);
  const after = { ...before, ...acknowledged };
  const fields = changedFields(before, after);
  const isOfCatalogue = awaitsCatalogue(row, table);
  if (fields.length === 0) {
    if (isOfCatalogue) throw new GatehouseError('CATALOGUE_PENDING', OF_CATALOGUE);
    return false;
  }
  storeWanted(table, row.id, after, fields);
  const travels = isOfCatalogue ? [...fields, 'catalogue'] : fields;
  deliveries.changed(row.id, { fields: travels, now: clock.now(), caller, replaced: 'cancelled' });
  audit.record(doorEntry(row.id, 'door.cancel', { configVersion: row.config_version, fields }, caller));
  return true;
}

const OF_CATALOGUE =
  'Only a change of the catalogue waits for this lock, and that cannot be cancelled at one door: change the schedule, the template or the system configuration back, or give the door another schedule or template.';

/** A schedule, a template or the system configuration changed since the lock acknowledged its last configuration. */
function awaitsCatalogue({ id, applied_config_version: applied }: DoorRow, table: DoorTable): boolean {
  return table.deliveries
    .all(id)
    .some(
      (delivery) => delivery.config_version > (applied ?? 0) && fieldsOf(id, delivery).includes('catalogue'),
    );
}

function fieldsOf(doorId: string, { fields }: DeliveryRow): string[] {
  return storedJson(`door/${doorId}`, z.array(z.string()), fields);
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
