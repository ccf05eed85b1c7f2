/**
 * The coordinator by zigbee-herdsman, of which this is the only importer. The library keeps its devices, its adapter and
 * its log in static variables: there is one coordinator per process, and a second one would silently work on the first.
 */
import { join } from 'node:path';
import {
  type AdapterTypes,
  Controller,
  type Models,
  setLogger,
  setOtaConfiguration,
  Zcl,
  ZSpec,
} from 'zigbee-herdsman';
import { AdapterBackup } from 'zigbee-herdsman/dist/adapter/z-stack/adapter/adapter-backup.js';
import { ZnpAdapterManager } from 'zigbee-herdsman/dist/adapter/z-stack/adapter/manager.js';
import { ZStackAdapter } from 'zigbee-herdsman/dist/adapter/z-stack/adapter/zStackAdapter.js';
import { Frame } from 'zigbee-herdsman/dist/adapter/z-stack/unpi/frame.js';
import { Parser } from 'zigbee-herdsman/dist/adapter/z-stack/unpi/parser.js';
import { Znp } from 'zigbee-herdsman/dist/adapter/z-stack/znp/znp.js';
import { Database } from 'zigbee-herdsman/dist/controller/database.js';
import { Endpoint } from 'zigbee-herdsman/dist/controller/model/index.js';
import { BackupUtils, Queue, Waitress } from 'zigbee-herdsman/dist/utils/index.js';
import { type Clock, DriverError } from '../../contract/driver.ts';
import { CLUSTER } from '../configure.ts';
import { keptFile } from '../kept-files.ts';
import { LOCK_CLUSTER, type Radio, type RadioEvent } from '../radio.ts';
import type { BackupStore } from '../state-files.ts';
import { field, text } from '../values.ts';
import { boundAttributes } from './attribute-cache.ts';
import type { Connection } from './connection.ts';
import { lockCluster } from './custom-cluster.ts';
import { openDeviceMeta } from './device-meta.ts';
import { deviceOf, ieeeOf } from './device-of.ts';
import { doubt, doubtOthersAt, isDoubted } from './doubts.ts';
import { emberMake } from './ember.ts';
import { completeFoundation } from './foundation.ts';
import { filterFrames } from './frame-filter.ts';
import { guardHandlers } from './handlers.ts';
import { calmDatabase, type DatabaseOwner, keepDatabase } from './library-database.ts';
import { listen } from './listening.ts';
import type { Make } from './make.ts';
import { hearingRestart } from './ota-restart.ts';
import { openSending } from './sending.ts';
import { type Requests, spareWork, type Waits } from './spared-work.ts';
import { zStackMake } from './z-stack.ts';
import { bound, requestZdo } from './zdo.ts';

/** A block of 50 bytes fits one frame; a lock is given time between two. */
const OTA_SETTINGS = { requestTimeout: 150_000, responseDelay: 250, baseSize: 50 };
/** In the folder of the link: what the lock that is given firmware may have. */
const OTA_INDEX = 'firmware.json';

export interface RadioOptions {
  /** A device, or where the connection leads to. */
  path: string;
  connection: Connection | undefined;
  adapter: 'zstack' | 'ember';
  baudRate: number;
  /** Hardware flow control of a serial port. */
  rtscts: boolean;
  network: { panId: number; extPanId: string; networkKey: string };
  channel: number;
  manufacturerCode: number | undefined;
  databaseFile: string;
  backup: BackupStore;
  stateDirectory: string;
  /** What the library may do to a coordinator that is not on the network of the options. */
  mayForm: boolean;
  mayFormOver: string | null;
  mayRestore: boolean;
  /** Of a backup of a coordinator of the other make, the link keys of locks are left out. */
  withoutKeys: boolean;
  /** Shall a device that is not known be let in? Nothing it throws lets one in. */
  mayJoin(ieee: string): boolean;
  hear(event: RadioEvent): void;
  /** A line of the library's log, as it is: with secrets. */
  log(level: 'info' | 'warn' | 'error', line: string): void;
  clock: Clock;
  /** Fires: no one waits for the start any more. */
  signal: AbortSignal;
}

/** Rejects when the coordinator cannot be used. */
export async function openRadio(options: RadioOptions): Promise<Radio> {
  prepareLibrary(options);
  const make = await makeOf(options.adapter);
  make.permit(options);
  make.carry(options.connection);
  const asked = (address: string) => doubt(controller.getDeviceByIeeeAddr(address));
  const controller = new Controller(controllerOptions(options, asked));
  make.storeBackup(controller, options.backup, options.withoutKeys);
  guardHandlers(
    controller,
    (reason) => options.log('warn', reason),
    (place) => {
      // They are asked at once where they are.
      for (const { ieeeAddr } of doubtOthersAt(controller, place))
        options.hear({ kind: 'readdressed', ieee: ieeeOf(ieeeAddr) });
    },
  );
  const { begun } = listen(controller, options);
  const giveUp = () => void make.abandon();
  options.signal.addEventListener('abort', giveUp, { once: true });
  try {
    const result = await controller.start();
    make.begun();
    begun();
    calmDatabase(controller as unknown as DatabaseOwner);
    const parameters = await controller.getNetworkParameters();
    const version = await controller.getCoordinatorVersion();
    askAgain(controller);
    return radioOf(controller, options, {
      make,
      formed: result === 'reset',
      channel: parameters.channel,
      version,
    });
  } catch (error) {
    // The library leaves the port of a start that failed open, and locked against the next one.
    await make.abandon();
    await close(controller).catch(() => undefined);
    throw error;
  } finally {
    options.signal.removeEventListener('abort', giveUp);
  }
}

/**
 * A device that was being asked what it is when the last radio ended takes itself for joined, and does not ask to join again;
 * nor does the library ask it again.
 */
function askAgain(controller: Controller): void {
  const isUnknown = ({ interviewState }: Models.Device) =>
    interviewState === 'PENDING' || interviewState === 'FAILED';
  for (const device of controller.getDevicesIterator(isUnknown))
    void device
      .interview()
      .then(
        () => 'successful' as const,
        () => 'failed' as const,
      )
      .then((status) => controller.emit('deviceInterview', { status, device }));
}

const believe = filterFrames(Zcl);
boundAttributes(Endpoint.prototype);
keepDatabase(Database);
const utilities = { Queue, BackupUtils, hash: ZSpec.Utils.aes128MmoHash };
const zStack = zStackMake({
  AdapterBackup,
  ZnpAdapterManager,
  ZStackAdapter,
  Znp,
  Parser,
  Frame,
  utilities,
});
let ember: Make | undefined;
completeFoundation(Zcl.Foundation);
spareWork(
  Waitress.prototype as unknown as Waits,
  Endpoint.prototype as unknown as Requests,
  Zcl.Frame.prototype,
);

/** The library's part for EmberZNet is loaded where it is used: it is as large as the rest. */
async function makeOf(adapter: RadioOptions['adapter']): Promise<Make> {
  if (adapter === 'zstack') return zStack;
  if (ember) return ember;
  const [{ EmberAdapter }, { Ezsp }, { UartAsh }, { AshParser }] = await Promise.all([
    import('zigbee-herdsman/dist/adapter/ember/adapter/emberAdapter.js'),
    import('zigbee-herdsman/dist/adapter/ember/ezsp/ezsp.js'),
    import('zigbee-herdsman/dist/adapter/ember/uart/ash.js'),
    import('zigbee-herdsman/dist/adapter/ember/uart/parser.js'),
  ]);
  ember = emberMake({ EmberAdapter, Ezsp, UartAsh, AshParser, utilities });
  return ember;
}

function prepareLibrary({ manufacturerCode, stateDirectory, log }: RadioOptions): void {
  believe(manufacturerCode);
  const lineOf = (line: string | (() => string)) => (typeof line === 'function' ? line() : line);
  setLogger({
    // Every frame, keys and PINs among them: never read.
    debug: () => undefined,
    info: (line) => log('info', lineOf(line)),
    warning: (line) => log('warn', lineOf(line)),
    error: (line) => log('error', line),
  });
  setOtaConfiguration(stateDirectory, undefined);
  // Without an address of its own the library looks for firmware on the web; nothing in this process may.
  globalThis.fetch = () => Promise.reject(new Error('there is no internet here'));
}

/** `asked`: before the library believes where a device says to be that asks to join. */
function controllerOptions(
  { network, ...options }: RadioOptions,
  asked: (address: string) => void,
): ConstructorParameters<typeof Controller>[0] {
  return {
    network: {
      panID: network.panId,
      extendedPanID: [...Buffer.from(network.extPanId, 'hex')],
      networkKey: [...Buffer.from(network.networkKey, 'hex')],
      networkKeyDistribute: false,
      channelList: [options.channel],
    },
    serialPort: {
      path: options.path,
      baudRate: options.baudRate,
      rtscts: options.rtscts,
      adapter: options.adapter,
    },
    databasePath: options.databaseFile,
    databaseBackupPath: `${options.databaseFile}.before-reset`,
    backupPath: options.backup.file,
    adapter: { disableLED: false },
    acceptJoiningDeviceHandler: async (address) => {
      try {
        const isAllowed = options.mayJoin(ieeeOf(address));
        if (isAllowed) asked(address);
        return isAllowed;
      } catch {
        return false;
      }
    },
  };
}

type CustomCluster = Parameters<Models.Device['addCustomCluster']>[1];

interface Started {
  make: Make;
  formed: boolean;
  channel: number;
  version: AdapterTypes.CoordinatorVersion;
}

function stackOf({ type, meta }: AdapterTypes.CoordinatorVersion, { versionParts }: Make): Radio['stack'] {
  const parts = versionParts.map((name) => String(field(meta, name) ?? '').trim());
  const version = text(parts.join('.'));
  return parts.every((part) => /^\d+$/.test(part)) && version !== undefined
    ? { name: type, version }
    : undefined;
}

function radioOf(
  controller: Controller,
  options: RadioOptions,
  { make, formed, channel, version }: Started,
): Radio {
  const [coordinator] = controller.getDevicesByType('Coordinator');
  if (!coordinator) throw new Error('the coordinator does not say who it is');
  const find = (ieee: string) => {
    const device = controller.getDeviceByIeeeAddr(`0x${ieee}`);
    if (device) return device;
    throw new DriverError('DEVICE_OFFLINE', `device ${ieee} has left this network, or has not joined it yet`);
  };
  const endpointOf = (ieee: string, id: number) => {
    const endpoint = find(ieee).getEndpoint(id);
    if (endpoint) return endpoint;
    throw new DriverError('INVALID_COMMAND', `device ${ieee} has no endpoint ${id}`);
  };
  const zdo = requestZdo(controller, find);
  return {
    hwId: ieeeOf(coordinator.ieeeAddr),
    version: text(String(field(version.meta, 'revision') ?? '')) ?? version.type,
    stack: stackOf(version, make),
    channel,
    formed,
    lqiIsLinear: version.type === 'ZStack3x0',
    devices: () => controller.getDevicesIterator().map(deviceOf).toArray(),
    device(ieee) {
      const device = controller.getDeviceByIeeeAddr(`0x${ieee}`);
      return device && deviceOf(device);
    },
    isDoubted(ieee) {
      const device = controller.getDeviceByIeeeAddr(`0x${ieee}`);
      return device !== undefined && isDoubted(device);
    },
    async probe() {
      await zdo.neighbours(ieeeOf(coordinator.ieeeAddr), 0);
    },
    send: openSending(endpointOf, make, Zcl.FrameType, options),
    async bind(ieee, endpoint, cluster) {
      const [target] = coordinator.endpoints;
      if (target) await bound(endpointOf(ieee, endpoint).bind(cluster, target));
    },
    addCluster(ieee) {
      if (options.manufacturerCode !== undefined)
        find(ieee).addCustomCluster(LOCK_CLUSTER, lockCluster(options.manufacturerCode) as CustomCluster);
    },
    attribute: (ieee, endpoint, cluster, name) =>
      endpointOf(ieee, endpoint).getClusterAttributeValue(cluster, name),
    doubt(ieee, endpoint, names) {
      const unknown = Object.fromEntries(names.map((name) => [name, undefined]));
      endpointOf(ieee, endpoint).saveClusterAttributeKeyValue(CLUSTER.doorLock, unknown);
      find(ieee).save();
    },
    ...openDeviceMeta(find, coordinator, keptFile(options.databaseFile).unstored),
    // With `clearCache`: the library would take it back without asking.
    forget: (ieee) => controller.getDeviceByIeeeAddr(`0x${ieee}`)?.removeFromDatabase(true),
    permitJoin: (seconds) => controller.permitJoin(seconds),
    addInstallCode: (ieee, code) => make.addInstallCode(controller, ieee, code),
    removeInstallCode: (ieee) => make.removeInstallCode(controller, ieee),
    save: () => controller.backup(),
    ...zdo,
    ...make.addressing(controller, find, options.stateDirectory),
    async update(ieee, { file, ...image }, progress) {
      // For a bare file the library checks the version only. With an index it also checks which device the file is for.
      const url = join(options.stateDirectory, OTA_INDEX);
      keptFile(url).store(JSON.stringify([{ url: file, ...image }]));
      const device = find(ieee);
      const [present, to] = await hearingRestart(device, progress, (onProgress) =>
        device.updateOta({ url }, undefined, undefined, {}, onProgress, OTA_SETTINGS),
      );
      return { updated: to !== undefined, present };
    },
    abortUpdate: (ieee) => find(ieee).abortOta(),
    close: () => close(controller),
  };
}

/** The library's own way reads the whole backup from the coordinator first, which takes seconds: it is kept as we go. */
async function close(controller: Controller): Promise<void> {
  const saving = controller as unknown as { backup(): Promise<void>; databaseSave(): void };
  saving.backup = async () => saving.databaseSave();
  await controller.stop();
  controller.removeAllListeners();
}
