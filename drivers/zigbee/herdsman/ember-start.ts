/**
 * What the library may do at its start to the EmberZNet coordinator that it finds: it leaves whatever network is there and
 * forms that of the backup or of the configuration (emberAdapter.js, initTrustCenter).
 */
import { DriverError } from '../../contract/driver.ts';
import {
  ANOTHER_COORDINATOR,
  carriesAnother,
  keysNotTaken,
  NO_KEYS,
  NOT_OF_THIS_NETWORK,
  NOT_ON_NETWORK,
  networkNameOf,
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
/** EZSP_CONFIG_KEY_TABLE_SIZE. */
const KEY_TABLE_SIZE = 0x1e;
/** Of EmberZNet 7.4. */
const OLDEST_EZSP = 13;
/** As the library adds to each counter that it restores on Z-Stack. */
const APS_SPARE = 2_500;

interface Backup {
  coordinatorIeeeAddress: Buffer;
  devices: { linkKey?: { txCounter: number } }[];
  ezsp?: { hashed_tclk?: Buffer | undefined };
}

/** Of the library's EmberAdapter. */
export interface EmberStart {
  initTrustCenter(): Promise<unknown>;
  importLinkKeys(keys: readonly unknown[]): Promise<void>;
  formNetwork(
    fromBackup: boolean,
    key: Buffer,
    keySequence: number,
    frameCounter: number,
    ...rest: unknown[]
  ): Promise<void>;
  getStoredBackup(): Backup | undefined;
  ezsp: Ezsp;
  oneWaitress: {
    startWaitingForEvent(event: { eventName: string }, timeout: number): Promise<unknown>;
  };
}
/** Of the library's Ezsp. */
export interface Versioned {
  ezspVersion(wanted: number): Promise<[version: number, ...rest: number[]]>;
}
interface Ezsp {
  ezspNetworkInit(init: object): Promise<number>;
  ezspLeaveNetwork(): Promise<number>;
  ezspGetNetworkParameters(): Promise<
    [status: number, type: number, network: { panId: number; extendedPanId: readonly number[] }]
  >;
  ezspClearKeyTable(): Promise<number>;
  ezspGetConfigurationValue(id: number): Promise<[status: number, value: number]>;
  ezspSetAPSFrameCounter(counter: number): Promise<number>;
  /** With 0x. */
  ezspGetEui64(): Promise<string>;
  ezspGetTokenData(token: number, index: number): Promise<[status: number, token: { data: Buffer }]>;
  ezspSetTokenData(token: number, index: number, data: { size: number; data: Buffer }): Promise<number>;
}

/** Returns what says what the next start may do. */
export function guardEmberStart(adapter: EmberStart, ezsp: Versioned): (permitted: Permitted) => void {
  const { initTrustCenter, importLinkKeys, formNetwork } = adapter;
  guardVersion(ezsp);
  let permitted: Permitted = { mayForm: false, mayFormOver: null, mayRestore: false, withoutKeys: false };

  adapter.initTrustCenter = async function (this: EmberStart) {
    if (permitted.mayRestore) await readyToRestore(this);
    else guardLeaving(this.ezsp, permitted);
    return initTrustCenter.call(this);
  };
  // Before it forms the network of the backup.
  adapter.importLinkKeys = async function (this: EmberStart, keys) {
    if (!permitted.mayRestore) throw refused(ANOTHER_COORDINATOR);
    // The library leaves those of an earlier network there when there are none.
    await this.ezsp.ezspClearKeyTable();
    return importLinkKeys.call(this, keys);
  };
  adapter.formNetwork = async function (this: EmberStart, fromBackup, ...rest) {
    if (!fromBackup && permitted.mayRestore) throw refused(NOT_OF_THIS_NETWORK);
    if (!fromBackup && !permitted.mayForm) throw refused(NOT_ON_NETWORK);
    if (fromBackup) await raiseApsCounter(this, rest[2]);
    return formNetwork.call(this, fromBackup, ...rest);
  };
  return (next) => {
    permitted = next;
  };
}

/** It leaves no network but the one that it may form another one over. */
function guardLeaving(ezsp: Ezsp, { mayForm, mayFormOver }: Permitted): void {
  const leave = ezsp.ezspLeaveNetwork;
  ezsp.ezspLeaveNetwork = async () => {
    if (!mayForm) throw refused(NOT_ON_NETWORK);
    const [status, , { panId, extendedPanId }] = await ezsp.ezspGetNetworkParameters();
    if (status !== STATUS_OK)
      throw new DriverError(
        'LINK_LOST',
        'the coordinator does not say which network it is on; where that goes on, plug its stick in again',
      );
    const other = networkNameOf(panId, extendedPanId);
    if (other !== mayFormOver) throw refused(carriesAnother(other));
    return leave.call(ezsp);
  };
}

/** The library would say the same as of a coordinator that is broken. */
function guardVersion(ezsp: Versioned): void {
  const { ezspVersion } = ezsp;
  ezsp.ezspVersion = async function (this: Versioned, wanted) {
    const answer = await ezspVersion.call(this, wanted);
    const [version] = answer;
    if (version < OLDEST_EZSP)
      throw refused(
        `the coordinator speaks EZSP ${version}, and versions from ${OLDEST_EZSP} on are known here: give it EmberZNet 7.4 or newer`,
      );
    // The library asks for the newest that it knows first.
    if (version > wanted)
      throw refused(
        `the coordinator speaks EZSP ${version}, and versions to ${wanted} are known here: give it an older EmberZNet, or update Gatehouse`,
      );
    return answer;
  };
}

/** The coordinator has the address of the one before, and no network, so that the library forms that of the snapshot. */
async function readyToRestore(adapter: EmberStart): Promise<void> {
  const backup = adapter.getStoredBackup();
  if (!backup?.ezsp?.hashed_tclk) throw refused(NO_KEYS);
  const keys = backup.devices.filter(({ linkKey }) => linkKey).length;
  const [, room] = await adapter.ezsp.ezspGetConfigurationValue(KEY_TABLE_SIZE);
  if (keys > room)
    throw refused(
      keysNotTaken(`the snapshot has link keys of ${keys} locks, and this coordinator takes ${room}`),
    );
  await takeAddress(adapter.ezsp, backup.coordinatorIeeeAddress);
  if ((await adapter.ezsp.ezspNetworkInit(INIT)) !== STATUS_OK) return;
  const until = (eventName: string) => adapter.oneWaitress.startWaitingForEvent({ eventName }, NETWORK_MS);
  await until('STACK_STATUS_NETWORK_UP');
  if ((await adapter.ezsp.ezspLeaveNetwork()) !== STATUS_OK)
    throw new DriverError('LINK_LOST', 'the coordinator does not leave the network that it is on');
  await until('STACK_STATUS_NETWORK_DOWN');
}

/**
 * One counter of EmberZNet serves all link keys, and a lock drops what is not above the last one it took with its key
 * (Zigbee specification R22, 4.4.1.1). The backup has none for EmberZNet: what is sent with link keys is far less than what
 * is sent with the network key, so that the raised counter of that is above it.
 */
async function raiseApsCounter(adapter: EmberStart, frameCounter: number): Promise<void> {
  const sent = (adapter.getStoredBackup()?.devices ?? []).map(({ linkKey }) => linkKey?.txCounter ?? 0);
  const counter = Math.max(frameCounter, ...sent.map((one) => one + APS_SPARE));
  if ((await adapter.ezsp.ezspSetAPSFrameCounter(counter)) !== STATUS_OK)
    throw new DriverError('LINK_LOST', 'the coordinator does not take the frame counter of link keys');
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
