/**
 * standOpenEnabled used to be an action: `true` put a lock into passage mode and held a relay. It is a permission now. What
 * stands open only by the former meaning is closed once, after the update: the relay is held no more, and the lock is locked.
 */

import { systemCaller } from '../../platform/principal.ts';
import { doorEntry } from './live-events.ts';
import type { OpeningContext } from './opening-context.ts';
import type { DoorTable } from './table.ts';

const REASON = 'standOpenEnabled is a permission since the update, and holds no door open';

/** Each door by itself, and from memory where that cannot be stored. */
export async function closeFormerStandOpen(options: OpeningContext): Promise<void> {
  const doors = options.table.stoodOpenBySetting.all();
  if (doors.length === 0) return;
  await Promise.all(doors.map((door) => closeFormer(door, options)));
  const ids = doors.map(({ id }) => id);
  options.log.warn(
    { doors: ids },
    `doors that may have stood open by their configuration are closed: ${REASON}`,
  );
}

type FormerRow = ReturnType<DoorTable['stoodOpenBySetting']['all']>[number];

async function closeFormer({ mac, ...door }: FormerRow, options: OpeningContext): Promise<void> {
  const { database, table, audit, closings } = options;
  const caller = systemCaller();
  const order =
    mac === null
      ? undefined
      : { door, mac, purpose: 'standOpen' as const, reason: REASON, uncertain: false, caller };
  const store = () =>
    database.commit(() => {
      const detail = { mac, reason: REASON };
      audit.record(doorEntry(door.id, 'door.stand-open', detail, caller, 'ending'));
      if (order) closings.store(order);
      table.forgetStoodOpen.run(door.id);
    }, 'urgent');
  await closings.close(door.id, order, {}, store);
}
