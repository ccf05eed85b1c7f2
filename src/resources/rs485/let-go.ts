/**
 * The relay that a device has in force, when it is given another relay or door, is replaced or removed: pulses for it that a host
 * has are withdrawn, and what an earlier one still keeps closed is opened, where the device can.
 */
import { DriverError } from '../../../drivers/contract/driver.ts';
import type { EndPulse } from '../../../drivers/contract/rs485.ts';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Execute } from '../../platform/execute.ts';
import type { Log } from '../../platform/log.ts';
import type { Known } from '../../services/reconcile/reported.ts';
import { relayInForce } from './relay.ts';
import type { Rs485Row } from './table.ts';

/** The change is answered after so long at the latest. */
const END_MS = 2_000;

export interface LetGoOptions {
  execute: Execute;
  log: Log;
  known(deviceId: string): Known<Rs485Report> | undefined;
  isInForce(row: Rs485Row): boolean;
  /** Resolves when no pulse that a host has can close a relay of the device any more. */
  callOff(deviceId: string): Promise<void>;
}

/** `row`: as it is before the change. What is returned is called after that is stored; it does not reject. */
export type LetGo = (row: Rs485Row) => () => Promise<void>;

export function openLetGo(options: LetGoOptions): LetGo {
  const { execute, log, callOff } = options;
  return (row) => {
    const held = heldBy(row, options);
    return async () => {
      await callOff(row.device_id);
      if (!held) return;
      try {
        await execute(
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
function heldBy(row: Rs485Row, { known, isInForce }: LetGoOptions): EndPulse | undefined {
  const now = known(row.device_id);
  if (!now?.connected) return undefined;
  try {
    return { hwId: row.hw_id, relay: relayInForce(row, now.state, isInForce(row)) };
  } catch (error) {
    if (error instanceof GatehouseError) return undefined;
    throw error;
  }
}
