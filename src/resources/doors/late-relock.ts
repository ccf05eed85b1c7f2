/** A door that its lock reports unlocked by radio when no command was under way: the gateway locks it. */
import type { LockEvent } from '../../../drivers/contract/zgate.ts';
import { openLastRead } from '../../platform/database/last-read.ts';
import { systemCaller } from '../../platform/principal.ts';
import type { ClosingOrder } from './closing-orders.ts';
import type { OpeningContext } from './opening-context.ts';
import type { StandOpen } from './stand-open.ts';
import { isByLock, RELOCK_MS, watchMs } from './unlock.ts';

/** Events whose door was locked before they were stored; a driver sends each again until it is stored. */
const REMEMBERED_MAX = 1_000;

export interface LateRelocks {
  /** Inside the commit job of the event; returns what is to be done after it. `key`: the same each time that it is sent. */
  relock(door: ClosingOrder['door'], event: LockEvent, key: string): (() => void) | undefined;
  /** The event could not be stored: events are refused sooner than what closes a door. */
  unstored(event: LockEvent, key: string): void;
}

/**
 * A lock reports that it was unlocked by radio when nothing waits for that any more, such as by a frame that its parent has held
 * for minutes.
 */
export function openLateRelocks(
  context: OpeningContext,
  standOpen: Pick<StandOpen, 'keepsOpen'>,
): LateRelocks {
  const { database, table, locks, closings } = context;
  /** Keys of the closings that were undone, and are not stored. */
  const undone = new Set<string>();
  const doorOf = openLastRead<ClosingOrder['door']>(
    (mac) => table.byMac.get(mac),
    table.listed.all().flatMap(({ mac, ...door }) => (mac === null ? [] : [[mac, door] as const])),
  );

  function lateRelock(door: ClosingOrder['door'], { hwId: mac, what, source }: LockEvent) {
    if (what !== 'unlocked' || source !== 'rf' || context.actuations.isBusy(`door/${door.id}`))
      return undefined;
    if (closings.isPending(mac) || standOpen.keepsOpen(mac)) return undefined;
    const known = locks.report({ mac, gateway_id: door.gateway_id })?.relock;
    const relocksItself = isByLock(known?.by);
    const delayMs = relocksItself ? watchMs(known?.by, known) : RELOCK_MS;
    const caller = systemCaller();
    const reason = 'it was unlocked by radio, and no command was under way';
    const order = { door, mac, purpose: 'unlock' as const, reason, uncertain: false, caller };
    return { order, delayMs, relocksItself };
  }

  return {
    relock(door, event, key) {
      if (undone.has(key)) return () => void undone.delete(key);
      const relock = lateRelock(door, event);
      if (!relock) return undefined;
      const { order, delayMs, relocksItself } = relock;
      closings.store(order);
      return () => closings.schedule(order.mac, delayMs, { relocksItself });
    },
    unstored(event, key) {
      const door = undone.has(key) ? undefined : doorOf(event.hwId);
      const relock = door && lateRelock(door, event);
      if (!relock) return;
      if (undone.size >= REMEMBERED_MAX) undone.clear();
      undone.add(key);
      const { order, delayMs, relocksItself } = relock;
      const store = () => database.commit(() => closings.store(order), 'urgent');
      void closings.close(door.id, order, { delayMs, relocksItself }, store);
    },
  };
}
