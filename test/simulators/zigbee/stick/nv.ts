/**
 * The non-volatile memory of a stick: items of the old interface (SYS_OSAL_NV_*) and of the SimpleLink one (SYS_NV_*),
 * which are the same memory on a CC2652. Ids are those of ZComDef.h.
 */
import { randomBytes } from 'node:crypto';
import { bytes, ieee, openReader, u16, u32 } from '../bytes.ts';
import { decodeNib, encodeNib, type Network } from './nib.ts';

export const NV = {
  extendedAddress: 0x0001,
  startupOption: 0x0003,
  nib: 0x0021,
  extendedPanId: 0x002d,
  activeKey: 0x003a,
  alternateKey: 0x003b,
  apsUseExtendedPanId: 0x0047,
  apsLinkKeyTable: 0x004c,
  preconfiguredKey: 0x0062,
  networkKey: 0x0082,
  panId: 0x0083,
  channels: 0x0084,
  preconfiguredKeysEnabled: 0x0063,
  logicalType: 0x0087,
  directCallbacks: 0x008f,
  trustCenterSeed: 0x0101,
} as const;
/** Tables of sysid 1 (NVINTF_SYSID_ZSTACK): an item for each row. */
const EX_NV = {
  addressManager: 1,
  trustCenterKeys: 4,
  installKeys: 5,
  apsKeys: 6,
  securityMaterial: 7,
} as const;
const ZSTACK = 1;

/** Rows; as many as locks here may be, so that a backup of all of them can be restored. */
const ADDRESSES = 128;
const APS_KEYS = 8;
const SECURITY_MATERIALS = 12;
const CLEAR_CONFIGURATION = 0x01;
const CLEAR_STATE = 0x02;

const EMPTY_ADDRESS = Buffer.alloc(12, 0xff).fill(0, 0, 1);
/** ADDRMGR_USER_ASSOC and _SECURITY. */
const USER_CHILD = 1;
const USER_SECURITY = 2;

export interface Nv {
  get(id: number): Buffer | undefined;
  set(id: number, value: Buffer): void;
  delete(id: number): boolean;
  getEx(system: number, id: number, row: number): Buffer | undefined;
  setEx(system: number, id: number, row: number, value: Buffer): void;
  deleteEx(system: number, id: number, row: number): boolean;
  /** The network that was left, or was restored from a backup. */
  network(): Network | undefined;
  keep(network: Network): void;
  remember(device: { ieee: string; nwk: number; isChild: boolean }): void;
  forget(device: string): void;
  /** Keys of install codes, by the device each is for. They outlast a reset, and the join. */
  installKeys(): ReadonlyMap<string, Buffer>;
  setInstallKey(device: string, key: Buffer): void;
  /** False: there is none of this device. */
  removeLinkKey(device: string): boolean;
  /** What the trust center knows: who joined, and where it was then. */
  known(): { ieee: string; nwk: number; isChild: boolean }[];
  /** What ZCD_NV_STARTUP_OPTION asks for at a reset. */
  startUp(): void;
  /** All of it, for `openNv` after a power cut. */
  dump(): NvDump;
}

/** Items in base64. */
export type NvDump = Record<string, string>;

/** `kept`: what it held when its power was cut; else it comes from the factory. */
export function openNv(ownIeee: string, kept?: NvDump): Nv {
  const items = new Map<string, Buffer>();
  const key = (id: number) => `${id}`;
  const exKey = (system: number, id: number, row: number) => `${system}/${id}/${row}`;
  const get = (id: number) => items.get(key(id));
  const set = (id: number, value: Buffer) => void items.set(key(id), Buffer.from(value));

  const addresses = () => addressRows(items);
  function forget(device: string): void {
    for (const { row, ieee: known } of addresses()) {
      if (known !== device) continue;
      items.set(exKey(ZSTACK, EX_NV.addressManager, row), Buffer.from(EMPTY_ADDRESS));
    }
    for (let row = 0; row < ADDRESSES; row += 1) {
      const entry = items.get(exKey(ZSTACK, EX_NV.trustCenterKeys, row));
      if (entry?.subarray(8, 16).equals(ieee(device)))
        items.set(exKey(ZSTACK, EX_NV.trustCenterKeys, row), Buffer.alloc(20));
    }
  }

  set(NV.extendedAddress, ieee(ownIeee));
  set(NV.startupOption, Buffer.of(0));
  clearConfiguration(set);
  clearState(items, set);
  for (const [name, value] of Object.entries(kept ?? {})) items.set(name, Buffer.from(value, 'base64'));

  return {
    get,
    set,
    delete: (id) => items.delete(key(id)),
    getEx: (system, id, row) => items.get(exKey(system, id, row)),
    setEx: (system, id, row, value) => void items.set(exKey(system, id, row), Buffer.from(value)),
    deleteEx: (system, id, row) => items.delete(exKey(system, id, row)),
    network() {
      const nib = decodeNib(get(NV.nib) ?? Buffer.alloc(0));
      const active = get(NV.activeKey);
      if (!nib || active?.length !== 17) return undefined;
      return { ...nib, keySequence: active.readUInt8(), key: Buffer.from(active.subarray(1)) };
    },
    keep(network) {
      const descriptor = bytes(network.keySequence, network.key);
      set(NV.nib, encodeNib(network));
      set(NV.activeKey, descriptor);
      set(NV.alternateKey, descriptor);
      set(NV.networkKey, bytes(descriptor, Buffer.alloc(7)));
      const material = bytes(u32(0), network.extendedPanId);
      items.set(exKey(ZSTACK, EX_NV.securityMaterial, 0), material);
    },
    remember({ ieee: device, nwk, isChild }) {
      forget(device);
      const row = addresses().find(({ user }) => user === 0)?.row;
      if (row === undefined) return;
      const user = USER_SECURITY | (isChild ? USER_CHILD : 0);
      items.set(exKey(ZSTACK, EX_NV.addressManager, row), bytes(user, 0, u16(nwk), ieee(device)));
      // Counters, address, attributes (2: verified), type, shift of the seed.
      const entry = bytes(u32(1), u32(1), ieee(device), 2, 0, 0, 0);
      items.set(exKey(ZSTACK, EX_NV.trustCenterKeys, row), entry);
    },
    forget,
    ...linkKeys(items),
    known: () =>
      addresses()
        .filter(({ user }) => user !== 0)
        .map(({ ieee: device, nwk, user }) => ({ ieee: device, nwk, isChild: (user & USER_CHILD) !== 0 })),
    startUp() {
      const [option = 0] = get(NV.startupOption) ?? [];
      if (option & CLEAR_CONFIGURATION) clearConfiguration(set);
      if (option & CLEAR_STATE) clearState(items, set);
      set(NV.startupOption, Buffer.of(0));
    },
    dump: () => Object.fromEntries([...items].map(([name, value]) => [name, value.toString('base64')])),
  };
}

/**
 * Rows of 24 bytes, the device before its key: a true stick has the device in the table of trust center keys, with the
 * number of the row.
 */
function linkKeys(items: Map<string, Buffer>): Pick<Nv, 'installKeys' | 'setInstallKey' | 'removeLinkKey'> {
  const prefix = `${ZSTACK}/${EX_NV.installKeys}/`;
  const rowOf = (device: string) =>
    [...items.keys()].find(
      (name) => name.startsWith(prefix) && items.get(name)?.subarray(0, 8).equals(ieee(device)),
    );
  const trustCenterKeys = (device: string) =>
    [...items.keys()].filter(
      (name) =>
        name.startsWith(`${ZSTACK}/${EX_NV.trustCenterKeys}/`) &&
        items.get(name)?.subarray(8, 16).equals(ieee(device)),
    );
  return {
    installKeys() {
      const rows = [...items].filter(([name]) => name.startsWith(prefix));
      return new Map(rows.map(([, row]) => [openReader(row).ieee(), row.subarray(8)]));
    },
    setInstallKey(device, key) {
      let free = 0;
      while (items.has(`${prefix}${free}`)) free += 1;
      items.set(rowOf(device) ?? `${prefix}${free}`, bytes(ieee(device), key));
    },
    removeLinkKey(device) {
      const row = rowOf(device);
      const keys = trustCenterKeys(device);
      if (row !== undefined) items.delete(row);
      for (const name of keys) items.set(name, Buffer.alloc(20));
      return row !== undefined || keys.length > 0;
    },
  };
}

type SetItem = (id: number, value: Buffer) => void;

/** As it comes from the factory. */
function clearConfiguration(set: SetItem): void {
  set(NV.panId, u16(0xffff));
  set(NV.channels, u32(1 << 11));
  set(NV.extendedPanId, Buffer.alloc(8));
  set(NV.apsUseExtendedPanId, Buffer.alloc(8));
  set(NV.preconfiguredKey, Buffer.alloc(16));
  set(NV.preconfiguredKeysEnabled, Buffer.of(1));
  set(NV.logicalType, Buffer.of(0));
  set(NV.directCallbacks, Buffer.of(0));
}
function clearState(items: Map<string, Buffer>, set: SetItem): void {
  items.delete(`${NV.nib}`);
  for (const name of items.keys()) if (name.startsWith(`${ZSTACK}/${EX_NV.installKeys}/`)) items.delete(name);
  set(NV.activeKey, Buffer.alloc(17));
  set(NV.alternateKey, Buffer.alloc(17));
  const rowsOf = (table: number, count: number, row: Buffer) => {
    for (let index = 0; index < count; index += 1) items.set(`${ZSTACK}/${table}/${index}`, Buffer.from(row));
  };
  // Sequence, key, and a frame counter at an even offset: 24 bytes, by which hosts know an aligned memory.
  set(NV.networkKey, Buffer.alloc(24));
  set(NV.apsLinkKeyTable, Buffer.alloc(20));
  set(NV.trustCenterSeed, randomBytes(16));
  rowsOf(EX_NV.addressManager, ADDRESSES, EMPTY_ADDRESS);
  rowsOf(EX_NV.trustCenterKeys, ADDRESSES, Buffer.alloc(20));
  rowsOf(EX_NV.apsKeys, APS_KEYS, Buffer.alloc(24));
  rowsOf(EX_NV.securityMaterial, SECURITY_MATERIALS, Buffer.alloc(12));
}

/** The address manager: flags, a byte of padding, address, IEEE address. */
function addressRows(
  items: ReadonlyMap<string, Buffer>,
): { row: number; user: number; ieee: string; nwk: number }[] {
  return Array.from({ length: ADDRESSES }, (_, row) => {
    const reader = openReader(items.get(`${ZSTACK}/${EX_NV.addressManager}/${row}`) ?? EMPTY_ADDRESS);
    const user = reader.u8();
    reader.u8();
    const nwk = reader.u16();
    return { row, user, nwk, ieee: reader.ieee() };
  });
}
