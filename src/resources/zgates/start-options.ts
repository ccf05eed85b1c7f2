/** What the link of a gateway is started with beside its configuration (drivers/zigbee/options.ts). */

import { join } from 'node:path';
import type { Plain } from '../../../drivers/contract/driver.ts';
import type { ZgateContext } from './context.ts';
import type { Snapshots } from './snapshots.ts';
import { allowedChannelsOf, existing } from './table.ts';

/** Between the channels of Wi-Fi, and allowed at full power everywhere: where nothing else is wanted. */
const CHANNELS = [15, 20, 25];
/** What a message to a host has room for beside a large snapshot (src/platform/field/ipc.ts). */
const KNOWN_MAX = 512;

export function startOptions(
  { table, locksOf, networks, stateDirectory }: ZgateContext,
  snapshots: Snapshots,
) {
  return (deviceId: string): { [key: string]: Plain } => {
    const row = existing(table, deviceId);
    const locks = locksOf(deviceId).slice(0, KNOWN_MAX);
    const allowed = allowedChannelsOf(row);
    return {
      ...snapshots.startOf(deviceId),
      allowedChannels: allowed.length > 0 ? allowed : CHANNELS,
      cert: networks.certOf(row.network_id),
      knownLocks: locks.map(({ mac }) => mac),
      lastSeen: Object.fromEntries(
        locks.flatMap(({ mac, lastSeen }) => (lastSeen === null ? [] : [[mac, lastSeen]])),
      ),
      heardOn: Object.fromEntries(
        locks.flatMap(({ mac, heardOn }) => (heardOn === null ? [] : [[mac, heardOn]])),
      ),
      missed: locks.filter(({ isMissed }) => isMissed).map(({ mac }) => mac),
      stateDirectory: join(stateDirectory, deviceId),
    };
  };
}
