/**
 * The non-volatile memory of a stick: items of the old interface (SYS_OSAL_NV_*) and of the SimpleLink one (SYS_NV_*),
 * which are the same memory on a CC2652. Rows and their empty values are those of a CC2652 with Z-Stack 3.x.0 (the memory
 * dumps in the tests of zigpy-znp, 2023-12).
 */
import { randomBytes } from 'node:crypto';
import { bytes, ieee, ieeeText, openReader, u16, u32 } from '../bytes.ts';
import { factoryItems } from './factory.ts';
import { decodeNib, encodeNib, type Network } from './nib.ts';
import { EX_NV, NV, ZSTACK } from './nv-items.ts';

const ADDRESSES = 257;
const TRUST_CENTER_KEYS = 200;
const APS_KEYS = 3;
const SECURITY_MATERIALS = 5;
const CLEAR_CONFIGURATION = 0x01;
const CLEAR_STATE = 0x02;

const EMPTY_ADDRESS = Buffer.alloc(12, 0xff);
/** Its attributes are DEFAULT_KEY. */
const EMPTY_TRUST_CENTER_KEY = Buffer.alloc(20).fill(0xff, 16, 17);
/** The extended PAN ID of a row for every network that has none of its own. */
const ANY_NETWORK = Buffer.alloc(8, 0xff);
const NO_IEEE = ['0000000000000000', 'ffffffffffffffff'];
/** Of the whole item of the network key: sequence, key, padding, frame counter. */
const NETWORK_KEY_COUNTER = 20;
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
  /** Of outgoing frames of the network layer, as it was last written. Undefined: none is known of this network. */
  frameCounter(network: Network): number | undefined;
  keepFrameCounter(network: Network, counter: number): void;
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
    for (let row = 0; row < TRUST_CENTER_KEYS; row += 1) {
      const entry = items.get(exKey(ZSTACK, EX_NV.trustCenterKeys, row));
      if (entry?.subarray(8, 16).equals(ieee(device)))
        items.set(exKey(ZSTACK, EX_NV.trustCenterKeys, row), Buffer.from(EMPTY_TRUST_CENTER_KEY));
    }
  }

  const materialOf = (extendedPanId: Buffer) =>
    [...Array(SECURITY_MATERIALS).keys()]
      .map((row) => exKey(ZSTACK, EX_NV.securityMaterial, row))
      .find((name) => items.get(name)?.subarray(4).equals(extendedPanId));
  function frameCounter({ extendedPanId }: Network): number | undefined {
    const name = materialOf(extendedPanId) ?? materialOf(ANY_NETWORK);
    return name === undefined ? undefined : items.get(name)?.readUInt32LE();
  }
  function keepFrameCounter({ extendedPanId }: Network, counter: number): void {
    const name = materialOf(extendedPanId) ?? materialOf(Buffer.alloc(8));
    if (name !== undefined) items.set(name, bytes(u32(counter), extendedPanId));
    get(NV.networkKey)?.writeUInt32LE(counter, NETWORK_KEY_COUNTER);
  }

  set(NV.extendedAddress, ieee(ownIeee));
  set(NV.startupOption, Buffer.of(0));
  const clearConfiguration = () => {
    for (const [id, value] of factoryItems(ieee(ownIeee))) set(id, value);
  };
  clearConfiguration();
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
      set(NV.isOnNetwork, Buffer.of(1));
      keepFrameCounter(network, frameCounter(network) ?? 0);
    },
    frameCounter,
    keepFrameCounter,
    remember({ ieee: device, nwk, isChild }) {
      forget(device);
      const row = addresses().find(({ ieee: known }) => NO_IEEE.includes(known))?.row;
      if (row === undefined) return;
      const user = USER_SECURITY | (isChild ? USER_CHILD : 0);
      items.set(exKey(ZSTACK, EX_NV.addressManager, row), bytes(user, 0xff, u16(nwk), ieee(device)));
      // Counters, address, attributes (2: verified), type, shift of the seed.
      const entry = bytes(u32(1), u32(1), ieee(device), 2, 0, 0, 0);
      const free = [...Array(TRUST_CENTER_KEYS).keys()]
        .map((index) => exKey(ZSTACK, EX_NV.trustCenterKeys, index))
        .find((name) => items.get(name)?.subarray(8, 16).equals(Buffer.alloc(8)));
      if (free !== undefined) items.set(free, entry);
    },
    forget,
    ...linkKeys(items),
    known: () =>
      addresses()
        .filter(({ ieee: device }) => !NO_IEEE.includes(device))
        .map(({ ieee: device, nwk, user }) => ({ ieee: device, nwk, isChild: (user & USER_CHILD) !== 0 })),
    startUp() {
      const [option = 0] = get(NV.startupOption) ?? [];
      if (option & CLEAR_CONFIGURATION) clearConfiguration();
      if (option & CLEAR_STATE) clearState(items, set);
      set(NV.startupOption, Buffer.of(0));
      // That of the chip, when it was deleted or never written.
      const own = get(NV.extendedAddress);
      if (own?.length !== 8 || NO_IEEE.includes(ieeeText(own))) set(NV.extendedAddress, ieee(ownIeee));
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
      for (const name of keys) items.set(name, Buffer.from(EMPTY_TRUST_CENTER_KEY));
      return row !== undefined || keys.length > 0;
    },
  };
}

type SetItem = (id: number, value: Buffer) => void;

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
  set(NV.isOnNetwork, Buffer.of(0));
  set(NV.trustCenterSeed, randomBytes(16));
  rowsOf(EX_NV.addressManager, ADDRESSES, EMPTY_ADDRESS);
  rowsOf(EX_NV.trustCenterKeys, TRUST_CENTER_KEYS, EMPTY_TRUST_CENTER_KEY);
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
