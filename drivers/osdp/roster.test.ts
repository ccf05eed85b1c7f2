/** Who is expected where, while the daemon and the bus each learn of a new device. */
import { expect, it } from 'vitest';
import { openRoster } from './roster.ts';

const key = new Uint8Array(16).fill(1);
const other = new Uint8Array(16).fill(2);
const device = { address: 3, hwId: '0a4748-1-4711' };

it('keeps a device that was just paired over lists from before, and then does as the daemon says', () => {
  const roster = openRoster([]);
  roster.watch({ devices: [] });
  roster.settle(3, device.hwId, key);
  for (const late of [{ devices: [] }, { devices: [device], keys: [] }]) {
    roster.watch(late);
    expect([...roster.addresses()]).toEqual([3]);
    expect(roster.awaited(3)).toBe(device.hwId);
    expect(roster.policyFor(3)).toEqual({ kind: 'required', key });
  }
  roster.watch({ devices: [device], keys: [{ address: 3, key: other }] });
  expect(roster.policyFor(3)).toEqual({ kind: 'required', key: other });
  roster.watch({ devices: [], keys: [] });
  expect([...roster.addresses()]).toEqual([]);
  expect(roster.policyFor(3)).toEqual({ kind: 'unpaired' });
});

it('keeps the key that a device has just taken over a list from before, which has the one it had', () => {
  const roster = openRoster([]);
  const before = { devices: [device], keys: [{ address: 3, key }] };
  const after = { devices: [device], keys: [{ address: 3, key: other }] };
  roster.watch(before);
  roster.settle(3, device.hwId, other);
  for (const list of [before, after]) {
    roster.watch(list);
    expect(roster.policyFor(3)).toEqual({ kind: 'required', key: other });
  }
  roster.watch(before);
  expect(roster.policyFor(3)).toEqual({ kind: 'required', key });
});

it('expects a device that moved twice where it came to last', () => {
  const roster = openRoster([]);
  roster.settle(3, device.hwId, key);
  roster.settle(5, device.hwId, key);
  roster.watch({ devices: [{ ...device, address: 5 }], keys: [{ address: 5, key }] });
  expect([...roster.addresses()]).toEqual([5]);
});

it('asks also where only a key is listed: the device may have gone there while no one could see it', () => {
  const roster = openRoster([]);
  const keys = [3, 9].map((address) => ({ address, key }));
  roster.watch({ devices: [device], keys });
  expect([...roster.addresses()].sort()).toEqual([3, 9]);
  expect(roster.policyFor(9)).toEqual({ kind: 'required', key });
  roster.watch({ devices: [{ ...device, address: 9 }], keys: keys.slice(1) });
  expect([...roster.addresses()]).toEqual([9]);
});
