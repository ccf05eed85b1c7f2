/** The keys (SCBK) of OSDP devices: one for each, drawn here, sealed on the disk, told to the driver of their bus. */
import { randomBytes } from 'node:crypto';
import type { Watch } from '../../drivers/rs485.ts';
import type { Database } from '../database/database.ts';
import type { Log } from '../log.ts';
import type { Vault } from '../vault.ts';
import type { Rs485Table } from './table.ts';

/** AES-128. */
const KEY_BYTES = 16;

export interface KeysOptions {
  database: Database;
  table: Rs485Table;
  vault: Pick<Vault, 'seal' | 'open'>;
  log: Log;
}

export interface Place {
  bus: string;
  address: number;
}

export interface Keys {
  of(bus: string): NonNullable<Watch['keys']>;
  /**
   * Inside a commit job: the key to give to the device. One that a device was given before, and did not prove, is given
   * again: it may have it.
   */
  draw(place: Place, by: { now: number; principalId: string }): Uint8Array<ArrayBuffer>;
  /** Inside a commit job: the device has proved that it has the key drawn last. */
  proved(place: Place, by: { now: number; principalId: string }): void;
  /** Inside a commit job: the key of a device is that of another address too, where it may go. */
  copy(from: Place, to: number, by: { now: number; principalId: string }): void;
  /** Inside a commit job. */
  forget(bus: string, address: number): void;
}

export function openKeys({ table, vault, log }: KeysOptions): Keys {
  function opened(sealed: Uint8Array, place: Place): Uint8Array<ArrayBuffer> | undefined {
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

  return {
    of: (bus) =>
      table.osdpKeys.all(bus).flatMap(({ address, sealed }) => {
        const key = sealed && opened(sealed, { bus, address });
        return key ? [{ address, key }] : [];
      }),
    draw(place, { now, principalId }) {
      const pending = table.osdpKey.get(place.bus, place.address)?.pending;
      const known = pending && opened(pending, place);
      if (known) return known;
      const key = Uint8Array.from(randomBytes(KEY_BYTES));
      const sealed = vault.seal(key, contextOf(place));
      table.setPendingOsdpKey.run(place.bus, place.address, sealed, now, principalId);
      return key;
    },
    proved({ bus, address }, { now, principalId }) {
      table.promoteOsdpKey.run(now, principalId, bus, address);
    },
    copy(from, to, { now, principalId }) {
      const { sealed } = table.osdpKeys.all(from.bus).find(({ address }) => address === from.address) ?? {};
      const key = sealed && opened(sealed, from);
      if (!key) return;
      const place = { bus: from.bus, address: to };
      table.copyOsdpKey.run(from.bus, to, vault.seal(key, contextOf(place)), now, principalId);
    },
    forget: (bus, address) => void table.deleteOsdpKey.run(bus, address),
  };
}

function contextOf({ bus, address }: Place): string {
  return `osdp key ${bus} ${address}`;
}
