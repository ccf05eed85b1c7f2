/** The clusters of a lock, and what ties them to each other. */
import type { ActiveFaults } from '../active-faults.ts';
import type { OpenNode } from '../air/node.ts';
import type { LockPlan } from '../plan.ts';
import type { Time } from '../time.ts';
import type { Device } from '../zcl/device.ts';
import { DOOR_LOCK, type DoorLock, openDoorLock } from './door-lock/cluster.ts';
import {
  ALARMS,
  type Alarms,
  type Battery,
  diagnosticsCluster,
  type Firmware,
  identifyCluster,
  LOW_BATTERY_ALARM,
  lockBasic,
  openAlarms,
  openPower,
  POWER,
  type Power,
} from './general.ts';
import { OTA, type OtaClient, openOta } from './ota.ts';
import { openPollControl, POLL_CONTROL, type PollControl } from './poll-control.ts';
import { openVendor, type Vendor } from './vendor.ts';

export interface LockClusters {
  alarms: Alarms;
  door: DoorLock;
  ota: OtaClient;
  power: Power;
  /** Undefined: it listens all the time. */
  poll: PollControl | undefined;
  /** Undefined: it has nothing of its manufacturer's. */
  vendor: Vendor | undefined;
}

export interface LockClustersOptions {
  time: Time;
  plan: LockPlan;
  device: Device;
  node: OpenNode;
  activeFaults: ActiveFaults;
  /** What it measures and runs, as it is at the time. */
  battery: Battery;
  link: { lqi: number; rssi: number };
  firmware: Firmware;
}

/** Adds them to its device. */
export function addLockClusters(options: LockClustersOptions): LockClusters {
  const { time, plan, device, node, activeFaults, battery, link, firmware } = options;
  const alarms = openAlarms((command, payload) => device.notify(ALARMS, command, payload));
  const door = openDoorLock({
    time,
    plan,
    activeFaults,
    changed: () => device.notice(),
    notify: (command, payload) => device.notify(DOOR_LOCK, command, payload),
    raise: (code, cluster = DOOR_LOCK) => alarms.raise(code, cluster),
    reportUnasked: (records) => device.reportUnasked(DOOR_LOCK, records),
  });
  const power = openPower(battery, plan.wholePercent, () => alarms.raise(LOW_BATTERY_ALARM, POWER));
  const ota = openOta({
    time,
    plan,
    firmware,
    restarted: () => node.announce(),
    ask: (endpoint, command, payload) => device.ask(OTA, endpoint, command, payload),
  });
  const poll =
    plan.checkInSeconds === undefined
      ? undefined
      : openPollControl(time, plan.checkInSeconds, {
          notify: (command, payload) => device.notify(POLL_CONTROL, command, payload),
          stayAwake: node.stayAwake,
        });
  const vendor = plan.vendorCluster ? openVendor(time, plan, battery) : undefined;
  device.add(
    lockBasic(plan, firmware),
    power.cluster,
    identifyCluster(),
    alarms.cluster,
    door.cluster,
    diagnosticsCluster(link),
    ota.cluster,
  );
  if (poll) device.add(poll.cluster);
  if (vendor) device.add(vendor.cluster);
  return { alarms, door, ota, power, poll, vendor };
}
