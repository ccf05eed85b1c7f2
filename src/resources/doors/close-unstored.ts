/** Has a lock locked by an order that is stored now, or carried out from memory and stored when the disk is well. */
import type { LiveEvents } from '../../services/events/events.ts';
import type { Closings } from './closing.ts';
import type { ClosingOrder, Watch } from './closing-orders.ts';
import type { StoredLater } from './stored-later.ts';

export interface CloseUnstoredOptions {
  closings: Pick<Closings, 'schedule' | 'closeUnstored' | 'closingStored'>;
  later: Pick<StoredLater, 'add'>;
  events: Pick<LiveEvents, 'wake'>;
}

/** `store` stores the order and rejects while that cannot be. Never rejects. */
export async function closeAlsoUnstored(
  { closings, later, events }: CloseUnstoredOptions,
  order: ClosingOrder,
  { delayMs = 0, ...watch }: Watch & { delayMs?: number },
  store: () => Promise<void>,
): Promise<void> {
  const { mac } = order;
  const { correlationId } = order.caller;
  try {
    await store();
    closings.schedule(mac, delayMs, watch);
  } catch (error) {
    closings.closeUnstored(order, correlationId, delayMs, watch);
    later.add(order.door.id, 'end', error, {
      async store() {
        await store();
        if (!closings.closingStored(mac, correlationId)) closings.schedule(mac, 0, watch);
        events.wake();
      },
    });
  }
  events.wake();
}
