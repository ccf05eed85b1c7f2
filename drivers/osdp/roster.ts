/** Which addresses of a bus are polled, who is expected there, and how they are spoken to. */
import { DriverError } from '../contract/driver.ts';
import type { Watch } from '../contract/rs485.ts';
import type { OsdpOptions } from './options.ts';
import { isSameKey, type Policy } from './policy.ts';

export interface Roster {
  /** As the daemon has it; replaces what it said before. */
  watch(list: Watch): void;
  addresses(): ReadonlySet<number>;
  /** The name that is expected there. */
  awaited(address: number): string | undefined;
  policyFor(address: number): Policy;
  /** From now on this one is expected there, under this key. */
  settle(address: number, hwId: string, key: Uint8Array | undefined): void;
  keyOf(address: number): Uint8Array | undefined;
  /** A KEYSET with this key may have reached the device there, and nothing has proved it yet. */
  pend(address: number, key: Uint8Array): void;
  /** Somebody may be there for some time, and is spoken to so. */
  shelter(address: number, policy: Policy): void;
  leave(address: number): void;
  /** The configuration says that it is spoken to in clear text. */
  isClear(address: number): boolean;
}

export function openRoster(devices: OsdpOptions['devices']): Roster {
  const configured = new Map(devices.map(({ address, secure }) => [address, secure]));
  const shelters = new Map<number, Policy>();
  let expected: ReadonlyMap<number, string> = new Map();
  let keys: ReadonlyMap<number, Uint8Array> = new Map();
  let pendings: ReadonlyMap<number, Uint8Array> = new Map();
  /** Not in a list of the daemon yet: one that was on its way must not take a device away that has just been paired. */
  const settled = new Map<number, Settled>();

  function expect(address: number, hwId: string, key: Uint8Array | undefined): void {
    expected = new Map([...expected, [address, hwId]]);
    if (key) keys = new Map([...keys, [address, key]]);
  }

  /** It came to be before that. */
  function isLate(address: number, { key, before }: Settled): boolean {
    if (!expected.has(address)) return true;
    const listed = keys.get(address);
    return key !== undefined && !isSameKey(key, listed) && isSameKey(before, listed);
  }

  const isClear = (address: number) => configured.get(address) === 'off';

  return {
    isClear,
    watch({ devices, keys: given = [] }) {
      expected = new Map(devices.map(({ address, hwId }) => [address, hwId]));
      keys = new Map(given.flatMap(({ address, key }) => (key ? [[address, key]] : [])));
      pendings = new Map(given.flatMap(({ address, pending }) => (pending ? [[address, pending]] : [])));
      for (const [address, device] of settled) {
        if (isLate(address, device)) expect(address, device.hwId, device.key);
        else settled.delete(address);
      }
    },
    // Also where only a key is listed: the device may have gone there while no one could see it.
    addresses: () =>
      new Set([
        ...configured.keys(),
        ...expected.keys(),
        ...shelters.keys(),
        ...pendings.keys(),
        ...keys.keys(),
      ]),
    awaited: (address) => expected.get(address),
    policyFor(address) {
      const sheltered = shelters.get(address);
      if (sheltered) return sheltered;
      if (isClear(address)) return { kind: 'off' };
      const key = keys.get(address);
      const drawn = pendings.get(address);
      const pending = drawn && !isSameKey(drawn, key) ? { pending: drawn } : {};
      return key ? { kind: 'required', key, ...pending } : { kind: 'unpaired', ...pending };
    },
    settle(address, hwId, key) {
      for (const [place, device] of settled) if (device.hwId === hwId) settled.delete(place);
      settled.set(address, { hwId, key, before: keys.get(address) });
      expect(address, hwId, key);
    },
    keyOf: (address) => keys.get(address),
    pend(address, key) {
      pendings = new Map([...pendings, [address, key]]);
    },
    shelter: (address, policy) => void shelters.set(address, policy),
    leave: (address) => void shelters.delete(address),
  };
}

interface Settled {
  hwId: string;
  key: Uint8Array | undefined;
  /** The key that was listed for this address. */
  before: Uint8Array | undefined;
}

/** Throws INVALID_COMMAND: at its new address the configuration would have a device spoken to in another way. */
export function assertSameSecurity({ isClear }: Roster, from: number, to: number): void {
  if (from === to || isClear(from) === isClear(to)) return;
  const wish = isClear(from) ? 'is spoken to in clear text' : 'has a key';
  throw new DriverError(
    'INVALID_COMMAND',
    `the device ${wish}: let the configuration say so of address ${to} first (devices: {address, secure})`,
  );
}
