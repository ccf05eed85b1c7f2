/** What the driver of one Zigbee gateway is made of, for its commands. */
import type { DriverContext } from '../contract/driver.ts';
import type { Firmware } from './firmware.ts';
import type { Joining } from './joining.ts';
import type { Locks } from './locks.ts';
import type { Network } from './network.ts';
import type { ZigbeeOptions } from './options.ts';
import type { Recovery } from './recovery.ts';
import type { SharedAddresses } from './shared-addresses.ts';
import type { StateReader } from './state-reader.ts';

export interface Gateway {
  options: ZigbeeOptions;
  context: DriverContext;
  network: Network;
  locks: Locks;
  joining: Joining;
  firmware: Firmware;
  recovery: Recovery;
  states: StateReader;
  addresses: SharedAddresses;
  link: {
    /** Ends it. */
    lost(reason: string): void;
    /** Fires when it ends: nothing more is heard of its locks. */
    ended: AbortSignal;
  };
}
