/** What changes a device is sent to one alone: two in clear text at one address would both carry it out. */
import type { Bus } from '../bus/bus.ts';
import { assertAlone } from '../rs485/alone.ts';
import type { Device } from './device.ts';
import { channelOf } from './protocol/state.ts';

/** Throws REFUSED. Under a key of its own no other device carries it out. */
export function assertAloneInClear(bus: Pick<Bus, 'isContested'>, device: Device): void {
  if (channelOf(device.session.state())) return;
  const areTwo = bus.isContested(device.address) || device.alarms().includes('duplicateAddress');
  assertAlone(areTwo, device.address);
}
