/** Has a gateway do something now, or says why it cannot. */

import { DriverError } from '../../../drivers/contract/driver.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { ZgateContext } from './context.ts';
import type { ZgateRow } from './table.ts';

/** Throws DEVICE_OFFLINE. */
export function assertReachable(row: Pick<ZgateRow, 'device_id' | 'link'>, options: ZgateContext): void {
  const link = linkOf(row, options);
  if (!link) throw offline(row, 'the configuration names it no more');
  if (!link.up) throw offline(row, `link ${row.link} is down${link.lastError ? `: ${link.lastError}` : ''}`);
}

/** The link that the gateway is on; undefined: the configuration names it no more. */
export function linkOf(
  { link, device_id }: Pick<ZgateRow, 'device_id' | 'link'>,
  { gatewayOfLink, field }: Pick<ZgateContext, 'gatewayOfLink' | 'field'>,
): { up: boolean; lastError: string | null } | undefined {
  const state = gatewayOfLink.get(link) === device_id ? field.link(link) : undefined;
  return state && { up: state.up, lastError: state.lastError?.message ?? null };
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
