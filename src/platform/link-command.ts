/** What a slice asks of a link (src/platform/field/field.ts). */
import type { Plain } from '../../drivers/contract/driver.ts';

export interface LinkCommand {
  kind: string;
  data: Plain;
  /** Milliseconds from now; past it nothing may be sent to the device. */
  timeoutMs: number;
  /** It neither closes a relay nor opens a lock, and may take longer than a lease lasts: the end of its host ends it. Absent: it may. */
  movesNothing?: boolean;
  /**
   * What no device notices is done at once. Nothing of it reaches a device before this resolves, in no more than the
   * timeout; when it rejects, nothing ever does. Absent: at once.
   */
  released?: Promise<void>;
}
