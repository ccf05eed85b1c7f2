/**
 * What the library may do at its start to the EmberZNet coordinator that it finds: it leaves whatever network is there and
 * forms that of the backup or of the configuration (emberAdapter.js, initTrustCenter).
 */
import { DriverError } from '../../contract/driver.ts';
import {
  ANOTHER_COORDINATOR,
  NOT_OF_THIS_NETWORK,
  NOT_ON_NETWORK,
  OTHER_MAKE,
  type Permitted,
} from './strategy.ts';

/** As the library gives them (its SLStatus). */
const STATUS_OK = 0;
/** EMBER_NETWORK_INIT_PARENT_INFO_IN_TOKEN and _END_DEVICE_REJOIN_ON_REBOOT, as the library has them. */
const INIT = { bitmask: 3 };
const NETWORK_MS = 10_000;
/**
 * NVM3KEY_STACK_RESTORED_EUI64 of the Gecko SDK: an IEEE address in the place of that of the chip, from the next start on.
 * zigpy's bellows restores by it as well.
 */
const RESTORED_IEEE = 0xe1_2a;
const IEEE_BYTES = 8;

interface Backup {
  coordinatorIeeeAddress: Buffer;
  ezsp?: { hashed_tclk?: Buffer | undefined };
}

/** Of the library's EmberAdapter. */
export interface EmberStart {
  initTrustCenter(): Promise<unknown>;
  importLinkKeys(keys: readonly unknown[]): Promise<void>;
  formNetwork(fromBackup: boolean, ...rest: unknown[]): Promise<void>;
  getStoredBackup(): Backup | undefined;
  ezsp: Ezsp;
  oneWaitress: {
    startWaitingForEvent(event: { eventName: string }, timeout: number): Promise<unknown>;
  };
}
interface Ezsp {
  ezspNetworkInit(init: object): Promise<number>;
  ezspLeaveNetwork(): Promise<number>;
  /** With 0x. */
  ezspGetEui64(): Promise<string>;
  ezspGetTokenData(token: number, index: number): Promise<[status: number, token: { data: Buffer }]>;
  ezspSetTokenData(token: number, index: number, data: { size: number; data: Buffer }): Promise<number>;
}

/** Returns what says what the next start may do. */
export function guardEmberStart(adapter: EmberStart): (permitted: Permitted) => void {
  const { initTrustCenter, importLinkKeys, formNetwork } = adapter;
  let permitted: Permitted = { mayForm: false, mayRestore: false };

  adapter.initTrustCenter = async function (this: EmberStart) {
    if (permitted.mayRestore) await readyToRestore(this);
    else if (!permitted.mayForm) this.ezsp.ezspLeaveNetwork = () => Promise.reject(refused(NOT_ON_NETWORK));
    return initTrustCenter.call(this);
  };
  // Before it forms the network of the backup.
  adapter.importLinkKeys = async function (this: EmberStart, keys) {
    if (!permitted.mayRestore) throw refused(ANOTHER_COORDINATOR);
    return importLinkKeys.call(this, keys);
  };
  adapter.formNetwork = async function (this: EmberStart, fromBackup, ...rest) {
    if (!fromBackup && permitted.mayRestore) throw refused(NOT_OF_THIS_NETWORK);
    if (!fromBackup && !permitted.mayForm) throw refused(NOT_ON_NETWORK);
    return formNetwork.call(this, fromBackup, ...rest);
  };
  return (next) => {
    permitted = next;
  };
}

/** The coordinator has the address of the one before, and no network, so that the library forms that of the snapshot. */
async function readyToRestore(adapter: EmberStart): Promise<void> {
  const backup = adapter.getStoredBackup();
  if (!backup?.ezsp?.hashed_tclk) throw refused(OTHER_MAKE);
  await takeAddress(adapter.ezsp, backup.coordinatorIeeeAddress);
  if ((await adapter.ezsp.ezspNetworkInit(INIT)) !== STATUS_OK) return;
  const until = (eventName: string) => adapter.oneWaitress.startWaitingForEvent({ eventName }, NETWORK_MS);
  await until('STACK_STATUS_NETWORK_UP');
  if ((await adapter.ezsp.ezspLeaveNetwork()) !== STATUS_OK)
    throw new DriverError('LINK_LOST', 'the coordinator does not leave the network that it is on');
  await until('STACK_STATUS_NETWORK_DOWN');
}

/**
 * Locks send their reports to the IEEE address that they were bound to. `bytes`: of the backup, lowest byte first, as the
 * library keeps it for this make.
 */
async function takeAddress(ezsp: Ezsp, bytes: Buffer): Promise<void> {
  const wanted = `0x${Buffer.from(bytes).reverse().toString('hex')}`;
  if ((await ezsp.ezspGetEui64()) === wanted) return;
  const [status, token] = await ezsp
    .ezspGetTokenData(RESTORED_IEEE, 0)
    .catch(() => [undefined, undefined] as const);
  // It was written by a start before this one, and a coordinator takes it over at its start.
  if (status === STATUS_OK && token?.data.equals(bytes))
    throw refused(
      'the coordinator keeps its own IEEE address, though it has stored that of the one before, to which its locks send their reports: restore onto another coordinator, or give this one other firmware first',
    );
  const data = { size: IEEE_BYTES, data: Buffer.from(bytes) };
  if (status !== STATUS_OK || (await ezsp.ezspSetTokenData(RESTORED_IEEE, 0, data)) !== STATUS_OK)
    throw refused(
      'the coordinator cannot take the IEEE address of the one before, to which its locks send their reports: give it EmberZNet 7.4 or newer',
    );
  throw new DriverError(
    'LINK_LOST',
    'the coordinator has taken the IEEE address of the one before, and has to be started again',
  );
}

const refused = (reason: string) => new DriverError('REFUSED', reason);
