/** What closes a relay is sent to one device: two with one address would both carry it out. */
import { DriverError } from '../contract/driver.ts';

/** Throws REFUSED while two devices are heard at the address. */
export function assertAlone(isContested: boolean, address: number): void {
  if (!isContested) return;
  throw new DriverError(
    'REFUSED',
    `two devices answer at address ${address}, and both might carry it out: disconnect one, give the other one another address, and try again within a minute`,
  );
}
