/** Which device is expected at which address, while daemon and bus each learn of a new one. */
import { expect, it } from 'vitest';
import { openAddressTable } from './address-table.ts';

const key = new Uint8Array(16).fill(1);
const other = new Uint8Array(16).fill(2);
const device = { address: 3, hwId: '0a4748-1-4711' };

it('keeps a device that was just paired over lists from before, and then follows the daemon', () => {
  const table = openAddressTable([]);
  table.watch({ devices: [] });
  table.assign(3, device.hwId, key);
  for (const late of [{ devices: [] }, { devices: [device], keys: [] }]) {
    table.watch(late);
    expect([...table.addresses()]).toEqual([3]);
    expect(table.expectedAt(3)).toBe(device.hwId);
    expect(table.policyAt(3)).toEqual({ kind: 'required', key });
  }
  table.watch({ devices: [device], keys: [{ address: 3, key: other }] });
  expect(table.policyAt(3)).toEqual({ kind: 'required', key: other });
  table.watch({ devices: [], keys: [] });
  expect([...table.addresses()]).toEqual([]);
  expect(table.policyAt(3)).toEqual({ kind: 'unpaired' });
});

it('keeps the key that a device has just taken over a list from before, which has the one it had', () => {
  const table = openAddressTable([]);
  const before = { devices: [device], keys: [{ address: 3, key }] };
  const after = { devices: [device], keys: [{ address: 3, key: other }] };
  table.watch(before);
  table.assign(3, device.hwId, other);
  for (const list of [before, after]) {
    table.watch(list);
    expect(table.policyAt(3)).toEqual({ kind: 'required', key: other });
  }
  table.watch(before);
  expect(table.policyAt(3)).toEqual({ kind: 'required', key });
});

it('expects a device that moved twice where it came to last', () => {
  const table = openAddressTable([]);
  table.assign(3, device.hwId, key);
  table.assign(5, device.hwId, key);
  table.watch({ devices: [{ ...device, address: 5 }], keys: [{ address: 5, key }] });
  expect([...table.addresses()]).toEqual([5]);
});

it('polls an address also where only its key is listed: the device may have moved there unseen', () => {
  const table = openAddressTable([]);
  const keys = [3, 9].map((address) => ({ address, key }));
  table.watch({ devices: [device], keys });
  expect([...table.addresses()].sort()).toEqual([3, 9]);
  expect(table.policyAt(9)).toEqual({ kind: 'required', key });
  table.watch({ devices: [{ ...device, address: 9 }], keys: keys.slice(1) });
  expect([...table.addresses()]).toEqual([9]);
});
