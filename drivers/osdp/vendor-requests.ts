/** Asks a device of ours for what OSDP itself has no message for (protocol/vendor-messages.ts). */
import { DriverError } from '../contract/driver.ts';
import type { Asking, DeviceSession } from './device-session.ts';
import {
  decodeVendorReply,
  encodeVendorRequest,
  type VendorReply,
  type VendorRequest,
} from './protocol/vendor-messages.ts';

type Answer<Kind> = VendorReply & { kind: Kind };

/** Throws a DriverError; REFUSED also when the device knows no such message. */
export async function askVendor<Kind extends 'status' | 'settings' | 'product'>(
  session: Pick<DeviceSession, 'ask'>,
  request: VendorRequest,
  kind: Kind,
  asking: Asking,
): Promise<Answer<Kind>> {
  const reply = decodeVendorReply(await session.ask(encodeVendorRequest(request), asking));
  if (reply?.kind === kind) return reply as Answer<Kind>;
  if (reply?.kind === 'refused')
    throw new DriverError('REFUSED', `the device does not take it (reason ${reply.reason})`);
  throw new DriverError('BAD_REPLY', 'the device answered something else than it was asked');
}
