import { expect, it } from 'vitest';
import { addressKey, isThisHost } from './address.ts';

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
