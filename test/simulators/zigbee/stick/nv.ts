/**
 * The non-volatile memory of a stick: items of the old interface (SYS_OSAL_NV_*) and of the SimpleLink one (SYS_NV_*),
 * which are the same memory on a CC2652. Its tables are in tables.ts.
 */
import { randomBytes } from 'node:crypto';
import { bytes, ieee, ieeeText } from '../bytes.ts';
import { factoryItems } from './factory.ts';
import { decodeNib, encodeNib, type Network } from './nib.ts';
import { exKey, NV } from './nv-items.ts';
import { emptyTables, NO_IEEE, openTables, type Tables } from './tables.ts';

const CLEAR_CONFIGURATION = 0x01;
const CLEAR_STATE = 0x02;

export interface Nv extends Tables {
  get(id: number): Buffer | undefined;
  set(id: number, value: Buffer): void;
  delete(id: number): boolean;
  getEx(system: number, id: number, row: number): Buffer | undefined;
  setEx(system: number, id: number, row: number, value: Buffer): void;
  deleteEx(system: number, id: number, row: number): boolean;
  /** The network that was left, or was restored from a backup. */
  network(): Network | undefined;
  keep(network: Network): void;
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
  const tables = openTables(items);
  const get = (id: number) => items.get(key(id));
  const set = (id: number, value: Buffer) => void items.set(key(id), Buffer.from(value));

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
      tables.keepFrameCounter(network, tables.frameCounter(network) ?? 0);
    },
    ...tables,
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

type SetItem = (id: number, value: Buffer) => void;

function clearState(items: Map<string, Buffer>, set: SetItem): void {
  items.delete(`${NV.nib}`);
  set(NV.activeKey, Buffer.alloc(17));
  set(NV.alternateKey, Buffer.alloc(17));
  // Sequence, key, and a frame counter at an even offset: 24 bytes, by which hosts know an aligned memory.
  set(NV.networkKey, Buffer.alloc(24));
  set(NV.apsLinkKeyTable, Buffer.alloc(20));
  set(NV.isOnNetwork, Buffer.of(0));
  set(NV.trustCenterSeed, randomBytes(16));
  emptyTables(items);
}
