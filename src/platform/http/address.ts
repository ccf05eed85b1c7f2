/** Where a request comes from, as limits per address count it and the audit names it. */
import { BlockList, isIP } from 'node:net';

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

/** Proxies by their address or their network, such as 10.0.0.0/24. */
export type Proxies = (address: string) => boolean;

/** Whether this names an address or a network. */
export function isAddressOrNetwork(text: string): boolean {
  const [address = '', prefix, ...more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || more.length > 0) return false;
  return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128));
}

export function openProxies(addresses: readonly string[]): Proxies {
  const list = new BlockList();
  for (const text of addresses) {
    const [address = '', prefix] = text.split('/');
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return (address) => {
    const family = isIP(address);
    return family !== 0 && list.check(address, family === 4 ? 'ipv4' : 'ipv6');
  };
}

/**
 * Of a request: the address of the connection, unless a trusted proxy holds it. That proxy has added its client to
 * X-Forwarded-For, behind whatever its client wrote there: so the list is read from its end, and up to the first address
 * that is no trusted proxy. What is no address was not added by a proxy, and ends the list.
 */
export function clientAddress(
  remoteAddress: string | undefined,
  forwardedFor: string | undefined,
  isProxy: Proxies,
): string {
  let client = addressKey(remoteAddress);
  for (const hop of forwardedFor?.split(',').toReversed() ?? []) {
    if (!isProxy(client)) break;
    const address = addressIn(hop.trim());
    if (address === undefined) break;
    client = address;
  }
  return client;
}

/** Some proxies add the port: 192.0.2.1:4711, [2001:db8::1]:4711. */
function addressIn(hop: string): string | undefined {
  const text = /^\[([^\]]+)\](:\d+)?$/.exec(hop)?.[1] ?? /^(\d+(?:\.\d+){3}):\d+$/.exec(hop)?.[1] ?? hop;
  const key = addressKey(text.toLowerCase());
  return isIP(key) === 0 ? undefined : key;
}
