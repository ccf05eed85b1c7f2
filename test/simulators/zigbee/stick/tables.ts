/**
 * The tables of a stick that a backup is made of: addresses, keys, frame counters. Rows and their empty values are those of
 * a CC2652 with Z-Stack 3.x.0 (the memory dumps in the tests of zigpy-znp, 2023-12).
 */
import { bytes, ieee, openReader, u16, u32 } from '../bytes.ts';
import type { Network } from './nib.ts';
import { EX_NV, exKey, NV, ZSTACK } from './nv-items.ts';
import type { TransportKey } from './security.ts';

const ADDRESSES = 257;
const TRUST_CENTER_KEYS = 200;
const APS_KEYS = 3;
const SECURITY_MATERIALS = 5;

const EMPTY_ADDRESS = Buffer.alloc(12, 0xff);
/** Its attributes are DEFAULT_KEY. */
const EMPTY_TRUST_CENTER_KEY = Buffer.alloc(20).fill(0xff, 16, 17);
/** KeyAttributes of SSP: UNVERIFIED_KEY, VERIFIED_KEY; where they are in a row. */
const KEY = { unverified: 1, verified: 2 };
const KEY_ATTRIBUTES = 16;
const SEED_SHIFT = 18;
/** Of the whole item of the network key: sequence, key, padding, frame counter. */
const NETWORK_KEY_COUNTER = 20;
/** The extended PAN ID of a row for every network that has none of its own. */
const ANY_NETWORK = Buffer.alloc(8, 0xff);
export const NO_IEEE = ['0000000000000000', 'ffffffffffffffff'];
/** ADDRMGR_USER_ASSOC and _SECURITY. */
const USER_CHILD = 1;
const USER_SECURITY = 2;

export interface Tables {
  remember(device: { ieee: string; nwk: number; isChild: boolean }): void;
  forget(device: string): void;
  /** What the trust center knows: who joined, and where it was then. */
  known(): { ieee: string; nwk: number; isChild: boolean }[];
  /** Keys of install codes, by the device each is for. They outlast a reset, and the join. */
  installKeys(): ReadonlyMap<string, Buffer>;
  setInstallKey(device: string, key: Buffer): void;
  /** The link key of a device was exchanged and proven, or not yet. */
  setKeyVerified(device: string, isVerified: boolean): void;
  /** The proven one of a device, and the counter of the next frame with it. */
  takeTrustCenterKey(device: string): TransportKey | undefined;
  /** False: there is none of this device. */
  removeLinkKey(device: string): boolean;
  /** Of outgoing frames of the network layer, as it was last written. Undefined: none is known of this network. */
  frameCounter(network: Network): number | undefined;
  keepFrameCounter(network: Network, counter: number): void;
}

type Items = Map<string, Buffer>;

/** As after ZCD_STARTOPT_CLEAR_STATE. */
export function emptyTables(items: Items): void {
  const fill = (table: number, count: number, row: Buffer) => {
    for (let index = 0; index < count; index += 1) items.set(exKey(ZSTACK, table, index), Buffer.from(row));
  };
  for (const name of items.keys()) if (name.startsWith(exPrefix(EX_NV.installKeys))) items.delete(name);
  fill(EX_NV.addressManager, ADDRESSES, EMPTY_ADDRESS);
  fill(EX_NV.trustCenterKeys, TRUST_CENTER_KEYS, EMPTY_TRUST_CENTER_KEY);
  fill(EX_NV.apsKeys, APS_KEYS, Buffer.alloc(24));
  fill(EX_NV.securityMaterial, SECURITY_MATERIALS, Buffer.alloc(12));
}

export function openTables(items: Items): Tables {
  const addresses = () => addressRows(items);
  const keys = linkKeys(items);
  function forgetAddress(device: string): void {
    for (const { row, ieee: known } of addresses())
      if (known === device) items.set(exKey(ZSTACK, EX_NV.addressManager, row), Buffer.from(EMPTY_ADDRESS));
  }
  return {
    forget(device) {
      forgetAddress(device);
      keys.forgetTrustCenterKey(device);
    },
    remember({ ieee: device, nwk, isChild }) {
      forgetAddress(device);
      const row = addresses().find(({ ieee: known }) => NO_IEEE.includes(known))?.row;
      if (row === undefined) return;
      const user = USER_SECURITY | (isChild ? USER_CHILD : 0);
      items.set(exKey(ZSTACK, EX_NV.addressManager, row), bytes(user, 0xff, u16(nwk), ieee(device)));
    },
    known: () =>
      addresses()
        .filter(({ ieee: device }) => !NO_IEEE.includes(device))
        .map(({ ieee: device, nwk, user }) => ({ ieee: device, nwk, isChild: (user & USER_CHILD) !== 0 })),
    ...keys,
    ...frameCounters(items),
  };
}

/**
 * Rows of install codes have 24 bytes, the device before its key: a true stick has the device in the table of trust
 * center keys, with the number of the row.
 */
function linkKeys(items: Items) {
  const prefix = exPrefix(EX_NV.installKeys);
  const rowOf = (device: string) =>
    [...items.keys()].find(
      (name) => name.startsWith(prefix) && items.get(name)?.subarray(0, 8).equals(ieee(device)),
    );
  const trustCenterKeyOf = (device: Buffer) =>
    rows(EX_NV.trustCenterKeys, TRUST_CENTER_KEYS).find((name) =>
      items.get(name)?.subarray(8, 16).equals(device),
    );
  function forgetTrustCenterKey(device: string): boolean {
    const name = trustCenterKeyOf(ieee(device));
    if (name !== undefined) items.set(name, Buffer.from(EMPTY_TRUST_CENTER_KEY));
    return name !== undefined;
  }
  return {
    forgetTrustCenterKey,
    setKeyVerified(device: string, isVerified: boolean): void {
      const attributes = isVerified ? KEY.verified : KEY.unverified;
      const row = items.get(trustCenterKeyOf(ieee(device)) ?? '');
      if (row) return void row.writeUInt8(attributes, KEY_ATTRIBUTES);
      const free = trustCenterKeyOf(Buffer.alloc(8));
      // Counters, address, attributes, type, shift of the seed.
      if (free !== undefined) items.set(free, bytes(u32(1), u32(1), ieee(device), attributes, 0, 0, 0));
    },
    takeTrustCenterKey(device: string): TransportKey | undefined {
      const row = items.get(trustCenterKeyOf(ieee(device)) ?? '');
      const seed = items.get(`${NV.trustCenterSeed}`);
      if (!seed || row?.readUInt8(KEY_ATTRIBUTES) !== KEY.verified) return undefined;
      const counter = row.readUInt32LE() + 1;
      row.writeUInt32LE(counter);
      return { key: trustCenterKey(seed, row.readUInt8(SEED_SHIFT), device), counter };
    },
    installKeys(): ReadonlyMap<string, Buffer> {
      const found = [...items].filter(([name]) => name.startsWith(prefix));
      return new Map(found.map(([, row]) => [openReader(row).ieee(), row.subarray(8)]));
    },
    setInstallKey(device: string, key: Buffer): void {
      let free = 0;
      while (items.has(`${prefix}${free}`)) free += 1;
      items.set(rowOf(device) ?? `${prefix}${free}`, bytes(ieee(device), key));
    },
    removeLinkKey(device: string): boolean {
      const row = rowOf(device);
      if (row !== undefined) items.delete(row);
      return forgetTrustCenterKey(device) || row !== undefined;
    },
  };
}

function frameCounters(items: Items): Pick<Tables, 'frameCounter' | 'keepFrameCounter'> {
  const materialOf = (extendedPanId: Buffer) =>
    rows(EX_NV.securityMaterial, SECURITY_MATERIALS).find((name) =>
      items.get(name)?.subarray(4).equals(extendedPanId),
    );
  return {
    frameCounter({ extendedPanId }) {
      const name = materialOf(extendedPanId) ?? materialOf(ANY_NETWORK);
      return name === undefined ? undefined : items.get(name)?.readUInt32LE();
    },
    keepFrameCounter({ extendedPanId }, counter) {
      const name = materialOf(extendedPanId) ?? materialOf(Buffer.alloc(8));
      if (name !== undefined) items.set(name, bytes(u32(counter), extendedPanId));
      items.get(`${NV.networkKey}`)?.writeUInt32LE(counter, NETWORK_KEY_COUNTER);
    },
  };
}

/** compute_key of zigpy-znp 0.12 (znp/security.py): the seed, turned by so many bytes, and the address twice upon it. */
function trustCenterKey(seed: Buffer, shift: number, device: string): Buffer {
  const turned = bytes(seed.subarray(shift), seed.subarray(0, shift));
  const address = bytes(ieee(device), ieee(device));
  return Buffer.from(turned.map((byte, index) => byte ^ (address[index] ?? 0)));
}

const exPrefix = (table: number) => `${ZSTACK}/${table}/`;
const rows = (table: number, count: number) =>
  Array.from({ length: count }, (_, row) => exKey(ZSTACK, table, row));

/** The address manager: flags, a byte of padding, address, IEEE address. */
function addressRows(
  items: ReadonlyMap<string, Buffer>,
): { row: number; user: number; ieee: string; nwk: number }[] {
  return rows(EX_NV.addressManager, ADDRESSES).map((name, row) => {
    const reader = openReader(items.get(name) ?? EMPTY_ADDRESS);
    const user = reader.u8();
    reader.u8();
    const nwk = reader.u16();
    return { row, user, nwk, ieee: reader.ieee() };
  });
}
