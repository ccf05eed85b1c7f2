/** A watchdog that was not fed in time: how the interface shows it. */
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import type { Buses } from './buses.ts';
import type { WatchdogState } from './schema.ts';
import type { Rs485Row } from './table.ts';

type Watchdog = NonNullable<Rs485Report['watchdog']>;

export function unfedOf({ unfed }: Watchdog): WatchdogState['unfed'] {
  return unfed ? { ...unfed, at: new Date(unfed.at).toISOString() } : null;
}

/** Why a device that answers is not connected; undefined: not for that. */
export function unfedReason(
  { bus, address }: Pick<Rs485Row, 'bus' | 'address'>,
  report: Pick<Rs485Report, 'watchdog' | 'address'> | null | undefined,
  buses: Pick<Buses, 'device'>,
): string | undefined {
  const { watchdog } = report ?? {};
  const answers = buses.device(bus, report?.address ?? address)?.alive === true;
  if (!watchdog?.unfed || !answers) return undefined;
  const { pauseMilliseconds } = watchdog.unfed;
  return `its watchdog of ${watchdog.milliseconds} ms was not fed for ${pauseMilliseconds} ms, as the gateway was held up or the bus is too slow; remove devices that are absent, poll fewer on this bus, or raise its baud rate`;
}
