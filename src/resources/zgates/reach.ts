/** Has a gateway do something now, or says why it cannot. */
import { DriverError } from '../../../drivers/contract/driver.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Execute } from '../../platform/execute.ts';
import type { ZgateRow } from './table.ts';

export interface ReachOptions {
  /** The gateway on each link, by the configuration. */
  gatewayOfLink: ReadonlyMap<string, string>;
  /** `lastError`: why it is down, or was last; undefined: the configuration has no such link. */
  linkState(linkId: string): { up: boolean; lastError: string | null } | undefined;
  execute: Execute;
}

/** Throws DEVICE_OFFLINE. */
export function assertReachable(row: Pick<ZgateRow, 'device_id' | 'link'>, options: ReachOptions): void {
  const link = linkOf(row, options);
  if (!link) throw offline(row, 'the configuration names it no more');
  if (!link.up) throw offline(row, `link ${row.link} is down${link.lastError ? `: ${link.lastError}` : ''}`);
}

/** The link that the gateway is on; undefined: the configuration names it no more. */
export function linkOf(
  { link, device_id }: Pick<ZgateRow, 'device_id' | 'link'>,
  { gatewayOfLink, linkState }: Pick<ReachOptions, 'gatewayOfLink' | 'linkState'>,
): ReturnType<ReachOptions['linkState']> {
  return gatewayOfLink.get(link) === device_id ? linkState(link) : undefined;
}

export function offline(
  { device_id, link }: Pick<ZgateRow, 'device_id' | 'link'>,
  reason: string,
): GatehouseError {
  return new GatehouseError(
    'DEVICE_OFFLINE',
    `Gateway ${device_id} cannot be reached (${reason}). See to it and to link ${link}: gatehouse status.`,
  );
}

/** Whether no one can say what became of a command that failed so. */
export function isUnknown(error: unknown): boolean {
  return !(error instanceof DriverError) || ['OUTCOME_UNKNOWN', 'NO_REPLY', 'BAD_REPLY'].includes(error.code);
}
