/** Has a gateway do something now, or says why it cannot. */
import { DriverError } from '../../drivers/driver.ts';
import { GatehouseError } from '../errors.ts';
import type { Execute } from '../execute.ts';
import type { ZgateRow } from './table.ts';

export interface ReachOptions {
  /** The gateway on each link, by the configuration. */
  gatewayOfLink: ReadonlyMap<string, string>;
  linkUp(linkId: string): boolean | undefined;
  execute: Execute;
}

/** Throws DEVICE_OFFLINE. */
export function assertReachable(row: ZgateRow, { gatewayOfLink, linkUp }: ReachOptions): void {
  const reason =
    gatewayOfLink.get(row.link) !== row.device_id
      ? 'the configuration names it no more'
      : linkUp(row.link)
        ? undefined
        : `link ${row.link} is down`;
  if (reason !== undefined) throw offline(row, reason);
}

export function offline({ device_id, link }: ZgateRow, reason: string): GatehouseError {
  return new GatehouseError(
    'DEVICE_OFFLINE',
    `Gateway ${device_id} cannot be reached (${reason}). See to it and to link ${link}: gatehouse status.`,
  );
}

/** Whether nobody can say what became of a command that failed so. */
export function isUnknown(error: unknown): boolean {
  return !(error instanceof DriverError) || ['OUTCOME_UNKNOWN', 'NO_REPLY', 'BAD_REPLY'].includes(error.code);
}
