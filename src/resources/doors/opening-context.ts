/** What unlocks doors, locks them and has them stand open uses of this slice. */
import type { Closings } from './closing.ts';
import type { DoorContext } from './context.ts';
import type { DeferredWrites } from './deferred-writes.ts';
import type { Locks } from './locks.ts';
import type { RfPins } from './rf-pin.ts';

export interface OpeningContext extends DoorContext {
  locks: Pick<Locks, 'report'>;
  rfPins: RfPins;
  closings: Closings;
  deferredWrites: DeferredWrites;
}
