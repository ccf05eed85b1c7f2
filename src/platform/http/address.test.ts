import { expect, it } from 'vitest';
import { addressKey, clientAddress, isAddressOrNetwork, isThisHost, openProxies } from './address.ts';

it.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:192.0.2.1', '192.0.2.1'],
  ['2001:db8::1', '2001:db8::1'],
  ['fe80::1%eth0', 'fe80::1%eth0'],
  [undefined, 'local'],
])('%s counts as %s', (address, key) => {
  expect(addressKey(address)).toBe(key);
});

it('knows this host', () => {
  expect(['127.0.0.1', '::ffff:127.0.0.1', '::1', undefined].map(addressKey).every(isThisHost)).toBe(true);
  expect(['192.0.2.1', 'fe80::1'].map(addressKey).some(isThisHost)).toBe(false);
});

it.each([
  ['no proxy', '192.0.2.1', '198.51.100.7', '192.0.2.1'],
  ['a proxy', '10.0.0.7', '198.51.100.7', '198.51.100.7'],
  ['a proxy, with what its client wrote itself', '10.0.0.7', '203.0.113.9, 198.51.100.7', '198.51.100.7'],
  ['two proxies', '::ffff:10.0.0.7', '198.51.100.7, 10.0.0.8', '198.51.100.7'],
  ['a proxy that adds the port', '10.0.0.7', '198.51.100.7:4711', '198.51.100.7'],
  ['a proxy that speaks IPv6', 'fd00::7', '[2001:DB8::1]:4711', '2001:db8::1'],
  ['a proxy that adds nothing', '10.0.0.7', undefined, '10.0.0.7'],
  ['a proxy that adds no address', '10.0.0.7', '198.51.100.7, unknown', '10.0.0.7'],
  ['a proxy whose own request it is', '10.0.0.7', '10.0.0.8', '10.0.0.8'],
])('distinguishes the callers behind %s', (_title, remote, forwarded, client) => {
  expect(clientAddress(remote, forwarded, openProxies(['10.0.0.0/24', 'fd00::7']))).toBe(client);
});

it('knows an address or a network from anything else', () => {
  const right = ['10.0.0.7', '10.0.0.0/8', '::1', 'fd00::/8'];
  const wrong = ['', 'proxy', '10.0.0.0/33', 'fd00::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0'];
  expect([...right, ...wrong].filter(isAddressOrNetwork)).toEqual(right);
});
