/** A simulated lock: a node with the clusters of one, and what a person does to it. */
import { type ActiveFaults, openActiveFaults } from './active-faults.ts';
import type { Air } from './air/frames.ts';
import { type OpenNode, openNode, type Routers } from './air/node.ts';
import type { Executed } from './clusters/door-lock/bolt.ts';
import type { Battery, Firmware } from './clusters/general.ts';
import { addLockClusters, type LockClusters } from './clusters/lock.ts';
import type { Faults, LockChange, LockPlan } from './plan.ts';
import { installKey } from './stick/security.ts';
import type { Stick } from './stick/stick.ts';
import type { Time } from './time.ts';
import { type Device, openDevice, type Received } from './zcl/device.ts';

/** What a test or a person may know about a lock. Times are milliseconds of CLOCK_MONOTONIC. */
export interface LockState {
  ieee: string;
  isJoined: boolean;
  /** Has the network of the stick, and can be reached by it now. */
  isReachable: boolean;
  nwk: number;
  channel: number | null;
  parent: string | null;
  /** LockState of ZCL: 0 not fully locked, 1 locked, 2 unlocked. */
  lockState: number;
  /** DoorState of ZCL: 0 open, 1 closed, 2 jammed, 3 forced open. */
  doorState: number;
  operatingMode: number;
  autoRelockSeconds: number;
  /** Every movement of the bolt, the latest 2000. */
  executed: Executed[];
  /** Every frame that it heard, whatever came of it, the latest 2000. */
  received: Received[];
  pins: { user: number; status: number; type: number; code: string }[];
  rfids: { user: number; status: number; type: number; code: string }[];
  schedules: unknown;
  alarms: number;
  battery: { percent: number; withoutLoadMv: number; underLoadMv: number };
  bindings: unknown[];
  reporting: unknown[];
  firmware: { version: number; build: string; download: unknown };
  /** Of the vendor cluster; null: it has none. */
  vendor: { versions: unknown; applied: unknown[]; lastRefusal: string | null } | null;
  faults: Faults;
}

export interface Lock {
  node: OpenNode;
  change(change: LockChange): void;
  state(): LockState;
}

export interface LockOptions {
  time: Time;
  air: () => Air;
  stick: Stick;
  random: () => number;
  routers: Routers;
}

/** Of a child that sleeps: some polls without an answer, an orphan notification, and a scan of all channels. */
const REJOIN_MS = 60_000;
/** Device type of ZCL 7.3 in the home automation profile. */
const DEVICE_ID = 0x000a;

export function openLock(plan: LockPlan, { time, air, stick, random, routers }: LockOptions): Lock {
  const activeFaults = openActiveFaults(plan.faults);
  const battery = { ...plan.battery };
  const link = { lqi: plan.lqi, rssi: plan.rssi };
  const firmware = { ...plan.firmware };
  const device = openDevice({
    time,
    deviceId: DEVICE_ID,
    endpoint: plan.endpoint,
    unlisted: plan.unlisted,
    asksDefaultResponse: plan.asksDefaultResponse ?? Number.parseInt(plan.ieee.slice(-1), 16) % 2 === 1,
    node: () => node,
    faults: activeFaults,
  });
  const node = openNode({
    time,
    air,
    stick,
    random,
    routers,
    isRouter: plan.mains,
    ieee: plan.ieee,
    nwk: plan.nwk,
    parent: plan.parent,
    lqi: plan.lqi,
    pollMs: plan.sleepy?.pollMs,
    awakeMs: plan.sleepy?.awakeMs ?? 0,
    manufacturerCode: plan.manufacturerCode,
    followsChannel: plan.followsChannel,
    rejoinMs: plan.rejoinMs ?? (plan.sleepy && REJOIN_MS),
    bindingsMax: plan.bindingsMax,
    installKey: plan.installCode === undefined ? undefined : installKeyOf(plan.installCode),
    exchangesKey: plan.keyExchange,
    fragments: () => activeFaults.oversizedStrings() !== undefined,
    isOnline: () => !activeFaults.isOffline(),
    losesResponse: activeFaults.losesResponse,
    misses: activeFaults.misses,
    confirmFault: activeFaults.confirmFault,
    duplicates: activeFaults.duplicates,
    lagMs: activeFaults.lagMs,
    replaysAfter: activeFaults.replaysAfter,
    holdMs: undefined,
    application: device.application,
  });
  const clusters = addLockClusters({ time, plan, device, node, activeFaults, battery, link, firmware });
  const { door, ota, poll, power } = clusters;

  /** What a person or the surroundings do. */
  function happen(change: LockChange): void {
    if (change.card !== undefined) door.present('rfid', Buffer.from(change.card, 'hex'));
    if (change.pin !== undefined) door.present('pin', Buffer.from(change.pin));
    if (change.program) door.users.program(change.program);
    if (change.schedule) door.schedules.change(change.schedule);
    if (change.manual) door.manual(change.manual);
    if (change.autoRelockSeconds !== undefined) door.bolt.state.relockSeconds = change.autoRelockSeconds;
    if (change.repeatOperation) door.events.sayAgain();
    if (change.door) door.setDoor(change.door);
    if (change.alarm !== undefined) door.alarm(change.alarm);
    if (change.checkIn) poll?.checkIn();
    if (change.queryFirmware) ota.query();
    power.notice();
    device.notice();
  }

  return {
    node,
    change(change) {
      if (change.faults !== undefined) activeFaults.change(change.faults);
      Object.assign(battery, change.battery);
      Object.assign(link, change.lqi !== undefined && { lqi: change.lqi });
      Object.assign(link, change.rssi !== undefined && { rssi: change.rssi });
      if (change.clearLog) {
        device.clearLog();
        door.bolt.clearLog();
      }
      changeNode(node, change);
      happen(change);
    },
    state: () => describe({ plan, air, node, device, battery, firmware, activeFaults, clusters }),
  };
}

/** Where it is, and of what network. */
function changeNode(node: OpenNode, change: LockChange): void {
  const { lqi, followsChannel, sleepy, parent, missedParent } = change;
  node.change({
    ...(lqi !== undefined && { lqi }),
    ...(followsChannel !== undefined && { followsChannel }),
    ...(sleepy !== undefined && { pollMs: sleepy?.pollMs }),
    ...(sleepy?.awakeMs !== undefined && { awakeMs: sleepy.awakeMs }),
  });
  if (parent !== undefined) node.moveTo(parent ?? undefined, true);
  if (missedParent !== undefined) node.moveTo(missedParent, false);
  if (change.rejoin === 'withoutKey') node.askForKey();
  else if (change.rejoin) node.rejoin();
  if (change.readdress) node.readdress(change.readdress === 'announced');
  if (change.announce || change.restart) node.announce();
  if (change.announceAs !== undefined) node.announce(change.announceAs);
  if (change.leave) node.leave(false);
}

interface Parts {
  plan: LockPlan;
  air: () => Air;
  node: OpenNode;
  device: Device;
  battery: Battery;
  firmware: Firmware;
  activeFaults: ActiveFaults;
  clusters: LockClusters;
}

function describe(parts: Parts): LockState {
  const { plan, air, node, device, battery, firmware, activeFaults, clusters } = parts;
  const { door, alarms, ota, vendor } = clusters;
  return {
    ieee: plan.ieee,
    isJoined: node.network !== undefined,
    isReachable: air().reaches(node),
    nwk: node.nwk,
    channel: node.network?.channel ?? null,
    parent: node.parent ?? null,
    lockState: door.bolt.state.lock,
    doorState: door.bolt.state.door,
    operatingMode: door.bolt.state.mode,
    autoRelockSeconds: door.bolt.state.relockSeconds,
    executed: door.bolt.executed(),
    received: device.received(),
    pins: door.users.list('pin').map((one) => ({ ...one, code: one.code.toString() })),
    rfids: door.users.list('rfid').map((one) => ({ ...one, code: one.code.toString('hex') })),
    schedules: door.schedules.describe(),
    alarms: alarms.count(),
    battery: { ...battery },
    bindings: [...node.bindings],
    reporting: device.reporting(),
    firmware: { version: firmware.version, build: firmware.build, download: ota.describe() },
    vendor: vendor
      ? { versions: { ...vendor.versions }, applied: vendor.applied(), lastRefusal: vendor.lastRefusal() }
      : null,
    faults: activeFaults.faults(),
  };
}

function installKeyOf(code: string): Buffer {
  const key = installKey(Buffer.from(code, 'hex'));
  if (!key) throw new Error(`the CRC of the install code ${code} is wrong`);
  return key;
}
