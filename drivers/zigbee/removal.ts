/** Has a lock leave the network for good (Zigbee specification R22, 2.4.3.3.5, Mgmt_Leave_req). */
import { DriverError } from '../contract/driver.ts';
import { within } from '../contract/waiting.ts';
import type { LockRemoved } from '../contract/zgate.ts';
import type { Gateway } from './gateway.ts';

type RemovalOptions = Pick<Gateway, 'context' | 'network' | 'locks' | 'joining' | 'firmware'>;

/**
 * A lock that does not confirm stays known: frames of it are still understood, so that it can be asked again when it is
 * heard. One that has left may not come back without a join window.
 */
export async function removeLock(
  ieee: string,
  { context: { clock, log }, network, locks, joining, firmware }: RemovalOptions,
  deadline: number,
): Promise<LockRemoved> {
  const radio = network.radio();
  joining.retire(ieee);
  if (!radio.device(ieee)) return { outcome: 'left' };
  const late = () => new DriverError('NO_REPLY', 'the lock did not answer in time');
  try {
    await within(radio.leave(ieee), deadline - clock.monotonic(), clock, late);
  } catch (error) {
    // It may have left although its answer was lost.
    if (!radio.device(ieee)) return { outcome: 'left' };
    log.info({ lock: ieee, err: String(error) }, 'a lock did not confirm that it leaves the network');
    return { outcome: 'unanswered' };
  }
  radio.forget(ieee);
  firmware.left(ieee);
  locks.take({ kind: 'left', ieee });
  return { outcome: 'left' };
}
