/** Asks every router of a network for its neighbours, on request only: it costs the air some seconds for each. */

import { DriverError } from '../../../drivers/contract/driver.ts';
import { networkMap } from '../../../drivers/contract/zgate.ts';
import { type Caller, TECHNICIANS } from '../../platform/principal.ts';
import type { ZgateContext } from './context.ts';
import { assertReachable } from './reach.ts';
import { existing } from './table.ts';

/** The longest a command may take (src/platform/field/ipc.ts); a router takes some seconds. */
const MAP_TIMEOUT_MS = 600_000;

export function openMap(options: ZgateContext) {
  const { table, jobs, field } = options;
  return async (deviceId: string, caller: Caller): Promise<unknown> => {
    const row = existing(table, deviceId);
    assertReachable(row, options);
    return jobs.start({
      kind: 'zigbee-map',
      object: `zgate/${deviceId}`,
      roles: TECHNICIANS,
      ...caller,
      async run(_, signal) {
        const command = { kind: 'networkMap', data: {}, timeoutMs: MAP_TIMEOUT_MS };
        const answer = networkMap.safeParse(await field.execute(row.link, command, signal));
        if (answer.data) return answer.data;
        throw new DriverError('BAD_REPLY', 'the gateway gave no map');
      },
    });
  };
}
