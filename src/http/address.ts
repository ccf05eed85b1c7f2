/** Whence a connection comes, as limits per address count it. */
import { isIPv6 } from 'node:net';

/** Of a connection without an address: the unix socket, or a peer that left already. */
export const NO_ADDRESS = 'local';

/** Groups of an IPv6 address that name its network (RFC 4291, 2.5.4); a host draws the other four as it likes. */
const NETWORK_GROUPS = 4;

/**
 * IPv4 as it is, also when it comes mapped into IPv6; of IPv6 the /64 network, since one host has 2^64 addresses in
 * it; loopback as it is.
 */
export function addressKey(remoteAddress: string | undefined): string {
  if (remoteAddress === undefined) return NO_ADDRESS;
  const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  if (!isIPv6(address) || address === '::1') return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const last = tail === '' ? [] : tail.split(':');
    while (groups.length + last.length < 8) groups.push('0');
    groups.push(...last);
  }
  return `${groups.slice(0, NETWORK_GROUPS).join(':')}::/64`;
}

/** This host itself: its command line, or the proxy in front of the interface. */
export function isThisHost(key: string): boolean {
  return key === '127.0.0.1' || key === '::1' || key === NO_ADDRESS;
}
