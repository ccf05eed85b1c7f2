/** Asks every router of a network for its neighbours, on request only: it costs the air some seconds for each. */

import { DriverError } from '../../../drivers/contract/driver.ts';
import { networkMap } from '../../../drivers/contract/zgate.ts';
import { COMMAND_TIMEOUT_MAX_MS } from '../../platform/field/ipc.ts';
import { type Caller, TECHNICIANS } from '../../platform/principal.ts';
import type { ZgateContext } from './context.ts';
import { assertReachable } from './reach.ts';
import { existing } from './table.ts';

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
        // A router takes some seconds.
        const command = {
          kind: 'networkMap',
          data: {},
          timeoutMs: COMMAND_TIMEOUT_MAX_MS,
          movesNothing: true,
        };
        const answer = networkMap.safeParse(await field.execute(row.link, command, signal));
        if (answer.data) return answer.data;
        throw new DriverError('BAD_REPLY', 'the gateway gave no map');
      },
    });
  };
}
