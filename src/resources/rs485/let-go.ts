/**
 * The relay that a device has in force, when it is given another relay or door, is replaced or removed: pulses for it that a host
 * has are withdrawn, and what an earlier one still keeps closed is opened, where the device can.
 */

import { DriverError } from '../../../drivers/contract/driver.ts';
import type { EndPulse } from '../../../drivers/contract/rs485.ts';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Reported } from '../../services/reconcile/reported.ts';
import type { Rs485Context } from './context.ts';
import type { Pulses } from './pulse.ts';
import { relayInForce } from './relay.ts';
import type { Settings } from './settings.ts';
import type { Rs485Row } from './table.ts';

/** The change is answered after so long at the latest. */
const END_MS = 2_000;

export interface LetGoOptions extends Rs485Context {
  reported: Pick<Reported<Rs485Report>, 'get'>;
  settings: Pick<Settings, 'isInForce'>;
  pulses: Pick<Pulses, 'callOff'>;
}

/** `row`: as it is before the change. What is returned is called after that is stored; it does not reject. */
export type LetGo = (row: Rs485Row) => () => Promise<void>;

export function openLetGo(options: LetGoOptions): LetGo {
  const { field, log, pulses } = options;
  return (row) => {
    const held = heldBy(row, options);
    return async () => {
      await pulses.callOff(row.device_id);
      if (!held) return;
      try {
        await field.execute(
          row.bus,
          { kind: 'endPulse', data: held, timeoutMs: END_MS },
          new AbortController().signal,
        );
      } catch (error) {
        if (!(error instanceof DriverError)) throw error;
        log.info(
          { device: row.device_id, relay: held.relay, err: error.message },
          'the former relay of a device is left to the end of its pulse',
        );
      }
    };
  };
}

/** undefined: there is none, or it cannot be reached. */
function heldBy(row: Rs485Row, { reported, settings }: LetGoOptions): EndPulse | undefined {
  const now = reported.get(row.device_id);
  if (!now?.connected) return undefined;
  try {
    return { hwId: row.hw_id, relay: relayInForce(row, now.state, settings.isInForce(row)) };
  } catch (error) {
    if (error instanceof GatehouseError) return undefined;
    throw error;
  }
}
