/**
 * The record of a door's configurations on their way: each version, who wanted it and what became of it. Everything
 * here runs inside the commit job of the change itself.
 */
import type { Principal } from '../../platform/principal.ts';
import type { DeliveryRow, DoorTable } from './table.ts';

export interface Deliveries {
  /** The door's present configuration waits for its lock; its fields and its version are stored already. */
  queue(doorId: string, order: Order): void;
  /** A change of what is wanted, which is stored already: counts it, and queues what of it travels, if anything. */
  changed(doorId: string, order: Omit<Order, 'by'> & { caller: Author }): void;
}

/** The part of a Caller that is stored with the door. */
interface Author {
  principal: Pick<Principal, 'id'>;
  correlationId: string;
}

interface Order {
  /** Names of what travels and has changed; the record is for people. */
  fields: readonly string[];
  /** Epoch milliseconds. */
  now: number;
  /** The principal who wants it. */
  by: string;
  /** What becomes of the version that still waited. */
  replaced?: DeliveryRow['status'];
}

export function openDeliveries(table: DoorTable): Deliveries {
  function queue(doorId: string, { fields, now, by, replaced = 'superseded' }: Order): void {
    const row = table.door.get(doorId);
    if (!row) return;
    table.endOpenDelivery.run(replaced, now, doorId);
    table.insertDelivery.run(doorId, row.config_version, JSON.stringify(fields), now, by);
    table.pruneDeliveries.run(doorId, doorId);
  }

  return {
    queue,
    changed(doorId, { caller, ...order }) {
      const { principal, correlationId } = caller;
      table.bumpVersion.run(order.now, principal.id, doorId);
      if (order.fields.length === 0) return;
      table.bumpConfigVersion.run(principal.id, correlationId, doorId);
      queue(doorId, { ...order, by: principal.id });
    },
  };
}
