/** What is asked of a device when it is met, and in its polls. */
import type { Exchange } from '../bus/exchange.ts';
import type { DriverError } from '../contract/driver.ts';

/** One exchange of a contact. */
export interface Step {
  /** Asked for when its turn has come, which may be long after the contact began. */
  exchange(): Exchange<unknown>;
  take(reply: unknown): void;
  /** Whether the contact goes on although the device answered with this error. */
  bears?(error: DriverError): boolean;
  /** What is to follow it at once, as its reply shows. */
  more?(): readonly Step[];
  /** Why the contact must begin again after this step; undefined: it goes on. */
  hindrance?(): string | undefined;
  /** It opens relays, or sees that they are open. */
  opens?: true;
}
