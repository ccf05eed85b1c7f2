/** The non-volatile memory of a network co-processor: its tokens, and what is kept with them. */
import type { Network } from '../stick/nib.ts';
import type { NvDump } from '../stick/nv.ts';

/** The outgoing frame counter is written after so many frames, and goes on beyond them at a start. */
const WRITTEN_EVERY = 4_096;

export interface LinkKey {
  ieee: string;
  key: Buffer;
}

export interface KeptNetwork extends Network {
  trustCenterKey: Buffer;
}

export interface Tokens {
  /** Of the chip, or the one that was written over it. */
  ieee(): string;
  /** NVM3 key 0xE12A, STACK_RESTORED_EUI64; that of the chip, until it is written. */
  restoredIeee(): string;
  restoreIeee(ieee: string): void;
  network(): KeptNetwork | undefined;
  keep(network: KeptNetwork): void;
  forget(): void;
  /** Of the network, where it goes on after a start. */
  frameCounter(): number;
  setFrameCounter(counter: number): void;
  /** It was sent: written now and then. */
  count(counter: number): void;
  /** Of the next frame with a link key. */
  nextApsCounter(): number;
  setApsCounter(counter: number): void;
  children(): Map<string, number>;
  /** Link keys by index. */
  readonly linkKeys: Map<number, LinkKey>;
  dump(): NvDump;
}

interface Kept {
  ieee: string;
  restored: string;
  network: KeptNetwork | undefined;
  frameCounter: number;
  apsCounter: number;
  children: Map<string, number>;
}

const KEPT = 'tokens';

/** `keepsIeee`: it stores another address, and goes on with its own. */
export function openTokens(chipIeee: string, dump?: NvDump, keepsIeee = false): Tokens {
  const linkKeys = new Map<number, LinkKey>();
  const state: Kept = dump?.[KEPT] === undefined ? fresh(chipIeee) : read(dump[KEPT], linkKeys);
  return {
    linkKeys,
    ieee: () => state.ieee,
    restoredIeee: () => state.restored,
    restoreIeee(ieee) {
      state.restored = ieee;
      if (!keepsIeee) state.ieee = ieee;
    },
    network: () => state.network,
    keep(network) {
      state.network = { ...network };
    },
    forget() {
      state.network = undefined;
      state.frameCounter = 0;
      state.children.clear();
    },
    frameCounter: () => state.frameCounter,
    setFrameCounter(counter) {
      state.frameCounter = counter;
    },
    count(counter) {
      if (counter >= state.frameCounter) state.frameCounter = counter + WRITTEN_EVERY;
    },
    nextApsCounter() {
      state.apsCounter += 1;
      return state.apsCounter;
    },
    setApsCounter(counter) {
      state.apsCounter = counter;
    },
    children: () => state.children,
    dump: () => ({ [KEPT]: write(state, linkKeys) }),
  };
}

function fresh(ieee: string): Kept {
  return { ieee, restored: ieee, network: undefined, frameCounter: 0, apsCounter: 0, children: new Map() };
}

function write({ children, ...state }: Kept, linkKeys: ReadonlyMap<number, LinkKey>): string {
  const plain = JSON.stringify({ ...state, children: [...children], linkKeys: [...linkKeys] }, (_, value) =>
    value?.type === 'Buffer' ? { hex: Buffer.from(value.data).toString('hex') } : value,
  );
  return Buffer.from(plain).toString('base64');
}

function read(text: string, linkKeys: Map<number, LinkKey>): Kept {
  const found = JSON.parse(Buffer.from(text, 'base64').toString(), (_, value) =>
    typeof value?.hex === 'string' ? Buffer.from(value.hex, 'hex') : value,
  );
  for (const [index, key] of found.linkKeys) linkKeys.set(index, key);
  const { ieee, restored, network, frameCounter, apsCounter } = found;
  return { ieee, restored, network, frameCounter, apsCounter, children: new Map(found.children) };
}
