/** What the library may do at its start to the coordinator that it finds, which is where a network can be lost. */
import { DriverError } from '../../contract/driver.ts';
import { channel } from '../../contract/settings.ts';
import { field, integer } from '../values.ts';

/** 'startup': the coordinator is on this network. Both others overwrite whatever it holds. */
type Strategy = 'startup' | 'restoreBackup' | 'startCommissioning';

/** Of the library's ZnpAdapterManager. */
interface Manager {
  determineStrategy(): Promise<Strategy>;
  backup: {
    getStoredBackup():
      | { znp?: { trustCenterLinkKeySeed?: unknown }; ezsp?: { hashed_tclk?: unknown } }
      | undefined;
  };
  options: { version: number };
  nwkOptions: { panId: number };
  nv: { readItem(id: number, ...rest: unknown[]): Promise<unknown> };
}
/**
 * Of the library's ZnpVersion, also of a coordinator that does not answer SYS_VERSION. It takes no frame counter, and the
 * library puts no backup on it but forms the network again, so that all locks would drop what it sends; nor does it take
 * install codes.
 */
const Z_STACK_12 = 0;

/** Why a start is refused, for coordinators of every make. */
export const NOT_OF_THIS_NETWORK =
  'the snapshot is not of the network of this gateway: choose another one with `gatehouse zgate restore --snapshot`';
export const NOT_ON_NETWORK =
  'the coordinator is not on the network of this gateway, and its locks would be lost on a new one: connect the coordinator that was here, or put the network on this one with `gatehouse zgate restore`';
/** In the words of carriedNetwork (drivers/contract/zgate.ts). */
export const carriesAnother = (name: string) =>
  `the coordinator carries the network ${name} that is not of this gateway, which has none yet, and the locks of that network would be lost: correct the deviceId of the gateway or the port of its link in the configuration, connect another coordinator, or give this one up for a new network with \`gatehouse zgate restore --new-network\``;
export const networkNameOf = (panId: number, extPanId: Uint8Array | readonly number[]) =>
  `${panId.toString(16).padStart(4, '0')}-${Buffer.from(extPanId).toString('hex')}`;
export const ANOTHER_COORDINATOR =
  'another coordinator is connected than before: connect the one that was here, or put the network on this one with `gatehouse zgate restore`';

/** `why`: of the link keys of locks in a snapshot. */
export const keysNotTaken = (why: string) =>
  `${why}: connect a coordinator of the make before, choose another snapshot with \`gatehouse zgate restore --snapshot\`, or leave the keys out with \`--without-keys\`, after which a lock that asks for the network key again has to join again`;
/** There is nothing that the keys of locks could be made of. */
export const NO_KEYS =
  'the snapshot does not say what the link keys of its locks are made of: choose another one with `gatehouse zgate restore --snapshot`';

/** Nor is there room: the table for keys that are not made of its seed has three rows on a CC2652 (memory dumps in the tests of zigpy-znp, 2023-12). */
const EMBER_KEYS =
  'the snapshot was made with EmberZNet, and Z-Stack takes no link keys of locks but those that are made of its own seed';

export interface Permitted {
  mayForm: boolean;
  /** Only ever because a person asked: also where the coordinator carries this network of another gateway. */
  mayFormOver: string | null;
  /** Only ever because a person asked: the snapshot goes on whatever is there. */
  mayRestore: boolean;
  withoutKeys: boolean;
}

/** Returns what says what the next start may do. */
export function guardStrategy(prototypeOfManager: object): (permitted: Permitted) => void {
  const manager = prototypeOfManager as Manager;
  const { determineStrategy } = manager;
  let permitted: Permitted = { mayForm: false, mayFormOver: null, mayRestore: false, withoutKeys: false };
  // The library would rather found a new network than fail; the locks of the old one are then lost.
  manager.determineStrategy = async function (this: Manager) {
    if (this.options.version === Z_STACK_12)
      throw new DriverError(
        'REFUSED',
        'the coordinator has Z-Stack 1.2 or did not say what it has, and on 1.2 no network can be restored: give it Z-Stack 3 firmware, or connect one that has it',
      );
    const nib = followNib(this);
    const strategy = await determineStrategy.call(this);
    const backup = permitted.mayRestore ? this.backup.getStoredBackup() : undefined;
    if (backup && !backup.znp?.trustCenterLinkKeySeed) {
      if (!backup.ezsp?.hashed_tclk) throw new DriverError('REFUSED', NO_KEYS);
      if (!permitted.withoutKeys) throw new DriverError('REFUSED', keysNotTaken(EMBER_KEYS));
    }
    if (strategy === 'startup' && backup) return 'restoreBackup';
    if (strategy === 'startCommissioning' && permitted.mayRestore)
      throw new DriverError('REFUSED', NOT_OF_THIS_NETWORK);
    if (strategy === 'startCommissioning' && !permitted.mayForm)
      throw new DriverError('REFUSED', NOT_ON_NETWORK);
    const other = otherNetwork(nib(), this.nwkOptions.panId);
    if (strategy === 'startCommissioning' && other !== undefined && other !== permitted.mayFormOver)
      throw new DriverError('REFUSED', carriesAnother(other));
    if (strategy === 'restoreBackup' && !permitted.mayRestore)
      throw new DriverError('REFUSED', ANOTHER_COORDINATOR);
    return strategy;
  };
  return (next) => {
    permitted = next;
  };
}

/** The network information base, among the items of the memory of Z-Stack. */
const NIB = 0x21;
const PAN_ID_LAST = 0xff_fd;
const EXT_PAN_ID_BYTES = 8;

/** Returns what was read of it last. */
function followNib({ nv }: Manager): () => unknown {
  const { readItem } = nv;
  let nib: unknown;
  nv.readItem = async (id, ...rest) => {
    const item = await readItem.call(nv, id, ...rest);
    if (id === NIB) nib = item;
    return item;
  };
  return () => nib;
}

/**
 * Undefined: it carries none. Whatever has formed it: a coordinator that never had one has no item, or one without a PAN id and a channel. One that was cut
 * short while it formed our own has that of ours.
 */
function otherNetwork(nib: unknown, ownPanId: number): string | undefined {
  const panId = integer(field(nib, 'nwkPanId'), 0, PAN_ID_LAST);
  if (panId === undefined || panId === ownPanId) return undefined;
  if (!channel.safeParse(field(nib, 'nwkLogicalChannel')).success) return undefined;
  const extPanId = field(nib, 'extendedPANID');
  return networkNameOf(panId, extPanId instanceof Uint8Array ? extPanId : Buffer.alloc(EXT_PAN_ID_BYTES));
}
