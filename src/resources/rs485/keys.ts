/** The keys (SCBK) of OSDP devices: one for each, drawn here, sealed on the disk, handed to the driver of their bus. */

import { randomBytes, timingSafeEqual } from 'node:crypto';
import { keyFingerprint } from '../../../drivers/contract/osdp.ts';
import type { Watch } from '../../../drivers/contract/rs485.ts';
import type { Rs485Context } from './context.ts';

/** AES-128. */
const KEY_BYTES = 16;

export interface BusAddress {
  bus: string;
  address: number;
}

interface By {
  now: number;
  principalId: string;
}

export interface Drawn {
  key: Uint8Array<ArrayBuffer>;
  /** false: a KEYSET with it may have reached the device before. */
  isNew: boolean;
}

export interface Keys {
  /** What the driver gets: also of a device that may have a key which it has not proved. */
  of(bus: string): NonNullable<Watch['keys']>;
  /**
   * Inside a commit job: the key to give to the device. One that a device was given before, and did not prove, is given
   * again: it may have it.
   */
  draw(place: BusAddress, by: By): Drawn;
  /** Inside a commit job: the device has proved that it has the key drawn last. */
  proved(place: BusAddress, by: By): void;
  /** The key drawn last has this fingerprint. */
  isPending(place: BusAddress, fingerprint: string): boolean;
  /** While a pairing is under way its end says what the device has proved, and nothing else does (isPending). */
  pairing(place: BusAddress, isUnderWay: boolean): void;
  /** Inside a commit job: the key drawn last was not sent to the device. */
  discard(place: BusAddress): void;
  /** Inside a commit job: the key of a device is that of another address too, where it may go. */
  copy(from: BusAddress, to: number, by: By): void;
  /**
   * Inside a commit job: the device at `from.address` was named at `to`, in clear text, which anybody may say. Its key is
   * tried there too. True: a session under that key has to show it, and then the device is heard there (`moved`).
   */
  follow(from: BusAddress, to: number, by: By): boolean;
  /** Inside a commit job: the device was heard at `to`. A copy of its key at the address that it has left is forgotten. */
  moved(bus: string, from: number, to: number): void;
  /** Inside a commit job. */
  forget(bus: string, address: number): void;
  /** Inside a commit job: the key that is stored for this address, and its copies, for a device that is no more. */
  remove(bus: string, address: number): void;
}

export function openKeys({ table, vault, log }: Pick<Rs485Context, 'table' | 'vault' | 'log'>): Keys {
  const pairings = new Set<string>();
  function opened(sealed: Uint8Array, place: BusAddress): Uint8Array<ArrayBuffer> | undefined {
    try {
      // A plain one travels to the host.
      return Uint8Array.from(vault.open(sealed, contextOf(place)));
    } catch (error) {
      log.error(
        { link: place.bus, address: place.address, err: error },
        'the key of an OSDP device does not open with the key file of this gateway: restore that, or pair the device again',
      );
      return undefined;
    }
  }

  function pendingOf(place: BusAddress): Uint8Array<ArrayBuffer> | undefined {
    const pending = table.osdpKey.get(place.bus, place.address)?.pending;
    return pending ? opened(pending, place) : undefined;
  }

  function keyAt({ bus, address }: BusAddress): Uint8Array<ArrayBuffer> | undefined {
    const { sealed, pending } = table.osdpKey.get(bus, address) ?? {};
    const one = sealed ?? pending;
    return one ? opened(one, { bus, address }) : undefined;
  }
  function isSame(one: BusAddress, other: BusAddress): boolean {
    const [left, right] = [keyAt(one), keyAt(other)];
    return left !== undefined && right !== undefined && timingSafeEqual(left, right);
  }
  function copy(from: BusAddress, to: number, { now, principalId }: By): void {
    const { sealed, pending } = table.osdpKey.get(from.bus, from.address) ?? {};
    const place = { bus: from.bus, address: to };
    const [own = null, drawn = null] = [sealed, pending].map((one) => {
      const key = one && opened(one, from);
      return key ? vault.seal(key, contextOf(place)) : null;
    });
    if (own || drawn) table.copyOsdpKey.run(from.bus, to, own, drawn, now, principalId);
  }

  return {
    of: (bus) =>
      table.osdpKeys.all(bus).flatMap(({ address, sealed, pending: drawn }) => {
        const key = sealed && opened(sealed, { bus, address });
        const pending = drawn && opened(drawn, { bus, address });
        return key || pending ? [{ address, ...(key && { key }), ...(pending && { pending }) }] : [];
      }),
    draw(place, { now, principalId }) {
      const known = pendingOf(place);
      if (known) return { key: known, isNew: false };
      const key = Uint8Array.from(randomBytes(KEY_BYTES));
      const sealed = vault.seal(key, contextOf(place));
      table.setPendingOsdpKey.run(place.bus, place.address, sealed, now, principalId);
      return { key, isNew: true };
    },
    pairing(place, isUnderWay) {
      if (isUnderWay) pairings.add(contextOf(place));
      else pairings.delete(contextOf(place));
    },
    isPending(place, fingerprint) {
      if (pairings.has(contextOf(place))) return false;
      const pending = pendingOf(place);
      return pending !== undefined && keyFingerprint(pending) === fingerprint;
    },
    discard: ({ bus, address }) => void table.clearPendingOsdpKey.run(bus, address),
    proved({ bus, address }, { now, principalId }) {
      table.promoteOsdpKey.run(now, principalId, bus, address);
    },
    copy,
    follow(from, to, by) {
      const place = { bus: from.bus, address: to };
      if (!table.osdpKey.get(from.bus, to)) copy(from, to, by);
      return isSame(from, place);
    },
    moved(bus, from, to) {
      if (isSame({ bus, address: from }, { bus, address: to })) table.deleteOsdpKey.run(bus, from);
    },
    forget: (bus, address) => void table.deleteOsdpKey.run(bus, address),
    remove(bus, address) {
      const place = { bus, address };
      for (const other of table.osdpKeys.all(bus))
        if (other.address !== address && isSame(place, { bus, address: other.address }))
          table.deleteOsdpKey.run(bus, other.address);
      table.deleteOsdpKey.run(bus, address);
    },
  };
}

function contextOf({ bus, address }: BusAddress): string {
  return `osdp key ${bus} ${address}`;
}
