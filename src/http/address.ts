/** Whence a connection comes, as limits per address count it. */

/** Of a connection without an address: the unix socket, or a peer that left already. */
export const NO_ADDRESS = 'local';

/**
 * IPv4 as it is, also when it comes mapped into IPv6. An IPv6 address stands for itself: all hosts of a site share one
 * /64, so counting by network would make one of them stand for all. What a host could do with as many addresses as it
 * likes is bounded elsewhere, for all together.
 */
export function addressKey(remoteAddress: string | undefined): string {
  return remoteAddress?.replace(/^::ffff:(?=\d+\.)/i, '') ?? NO_ADDRESS;
}

/** This host itself: its command line, or the proxy in front of the interface. */
export function isThisHost(key: string): boolean {
  return key === '127.0.0.1' || key === '::1' || key === NO_ADDRESS;
}
