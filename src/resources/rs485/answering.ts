/** What must be so before a job begins that sends something to a device. */
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Known } from '../../services/reconcile/reported.ts';
import type { Rs485Row } from './table.ts';

/** What is known of the device, and where it answers. Throws DEVICE_OFFLINE. */
export function answering(
  { address, bus }: Rs485Row,
  known: Known<Rs485Report> | undefined,
): { address: number; state: Rs485Report | undefined } {
  if (known?.connected === true && address !== null) return { address, state: known.state };
  throw new GatehouseError(
    'DEVICE_OFFLINE',
    `Nothing was sent: the device does not answer. See to its supply and wiring; if its address was changed, a scan of the bus finds it (gatehouse bus scan ${bus}).`,
  );
}
