/** Which addresses of a bus are polled, which device is expected at each, and under which policy and key. */
import { DriverError } from '../contract/driver.ts';
import type { Watch } from '../contract/rs485.ts';
import type { OsdpOptions } from './options.ts';
import { isSameKey, type Policy } from './policy.ts';

export interface AddressTable {
  /** Replaces the list that the daemon sent before. */
  watch(list: Watch): void;
  addresses(): ReadonlySet<number>;
  /** The hwId that is expected there. */
  expectedAt(address: number): string | undefined;
  policyAt(address: number): Policy;
  /** From now on this device is expected there, under this key. */
  assign(address: number, hwId: string, key: Uint8Array | undefined): void;
  keyAt(address: number): Uint8Array | undefined;
  /** A KEYSET with this key may have reached the device there; no handshake has proved it yet. */
  setPendingKey(address: number, key: Uint8Array): void;
  /** The address is polled under this policy, whatever the list says, until `release`. */
  hold(address: number, policy: Policy): void;
  release(address: number): void;
  /** The configuration has `secure: off` for it. */
  isClearText(address: number): boolean;
}

export function openAddressTable(devices: OsdpOptions['devices']): AddressTable {
  const configured = new Map(devices.map(({ address, secure }) => [address, secure]));
  const held = new Map<number, Policy>();
  let expected: ReadonlyMap<number, string> = new Map();
  let keys: ReadonlyMap<number, Uint8Array> = new Map();
  let pendings: ReadonlyMap<number, Uint8Array> = new Map();
  /** Newer than the list of the daemon: a list that was sent before must not remove a device that has just been paired. */
  const assigned = new Map<number, Assigned>();

  function expect(address: number, hwId: string, key: Uint8Array | undefined): void {
    expected = new Map([...expected, [address, hwId]]);
    if (key) keys = new Map([...keys, [address, key]]);
  }

  /** The list was made before the assignment. */
  function isLate(address: number, { key, before }: Assigned): boolean {
    if (!expected.has(address)) return true;
    const listed = keys.get(address);
    return key !== undefined && !isSameKey(key, listed) && isSameKey(before, listed);
  }

  const isClearText = (address: number) => configured.get(address) === 'off';

  return {
    isClearText,
    watch({ devices, keys: given = [] }) {
      expected = new Map(devices.map(({ address, hwId }) => [address, hwId]));
      keys = new Map(given.flatMap(({ address, key }) => (key ? [[address, key]] : [])));
      pendings = new Map(given.flatMap(({ address, pending }) => (pending ? [[address, pending]] : [])));
      for (const [address, device] of assigned) {
        if (isLate(address, device)) expect(address, device.hwId, device.key);
        else assigned.delete(address);
      }
    },
    // Also where only a key is listed: the device may have moved there while it was not seen.
    addresses: () =>
      new Set([...configured.keys(), ...expected.keys(), ...held.keys(), ...pendings.keys(), ...keys.keys()]),
    expectedAt: (address) => expected.get(address),
    policyAt(address) {
      const policy = held.get(address);
      if (policy) return policy;
      if (isClearText(address)) return { kind: 'off' };
      const key = keys.get(address);
      const drawn = pendings.get(address);
      const pending = drawn && !isSameKey(drawn, key) ? { pending: drawn } : {};
      return key ? { kind: 'required', key, ...pending } : { kind: 'unpaired', ...pending };
    },
    assign(address, hwId, key) {
      for (const [place, device] of assigned) if (device.hwId === hwId) assigned.delete(place);
      assigned.set(address, { hwId, key, before: keys.get(address) });
      expect(address, hwId, key);
    },
    keyAt: (address) => keys.get(address),
    setPendingKey(address, key) {
      pendings = new Map([...pendings, [address, key]]);
    },
    hold: (address, policy) => void held.set(address, policy),
    release: (address) => void held.delete(address),
  };
}

interface Assigned {
  hwId: string;
  key: Uint8Array | undefined;
  /** The key that was listed for this address. */
  before: Uint8Array | undefined;
}

/** Throws INVALID_COMMAND: the configuration has another `secure` for the new address. */
export function assertSameSecurity({ isClearText }: AddressTable, from: number, to: number): void {
  if (from === to || isClearText(from) === isClearText(to)) return;
  const wish = isClearText(from) ? 'is spoken to in clear text' : 'has a key';
  throw new DriverError(
    'INVALID_COMMAND',
    `the device ${wish}: let the configuration say so of address ${to} first (devices: {address, secure})`,
  );
}
