/** Clusters that every device has, or that describe its radio and its batteries (ZCL chapter 3). */
import { bytes, u16 } from '../bytes.ts';
import type { LockPlan } from '../plan.ts';
import { type Cluster, constant, fieldOf, responded, succeeded } from '../zcl/cluster.ts';
import { TYPE } from '../zcl/types.ts';

export interface Firmware {
  /** As OTA has it. */
  version: number;
  build: string;
}

const BATTERY_SOURCE = 3;
const ZCL_VERSION = 8;

export function basicCluster(
  names: { manufacturer: string; model: string },
  firmware: Firmware,
  powerSource: number,
): Cluster {
  const described = { location: '' };
  return {
    id: 0x0000,
    attributes: {
      0: constant(TYPE.uint8, ZCL_VERSION),
      1: { type: TYPE.uint8, get: () => firmware.version >>> 24 },
      2: constant(TYPE.uint8, 2),
      3: constant(TYPE.uint8, 1),
      4: constant(TYPE.string, names.manufacturer),
      5: constant(TYPE.string, names.model),
      6: constant(TYPE.string, '20260105'),
      7: constant(TYPE.enum8, powerSource),
      16: fieldOf(described, 'location', TYPE.string, { isWritable: true }),
      16384: fieldOf(firmware, 'build' as const satisfies keyof Firmware, TYPE.string),
    },
    // Reset to factory defaults.
    commands: { 0: () => succeeded },
  };
}

export const lockBasic = (plan: LockPlan, firmware: Firmware) => basicCluster(plan, firmware, BATTERY_SOURCE);

export function identifyCluster(): Cluster {
  const state = { seconds: 0 };
  return {
    id: 0x0003,
    attributes: { 0: fieldOf(state, 'seconds', TYPE.uint16, { isWritable: true }) },
    commands: {
      0(input) {
        state.seconds = input.u16();
        return succeeded;
      },
      1: () => (state.seconds > 0 ? responded(0, u16(state.seconds)) : succeeded),
    },
  };
}

export interface Battery {
  percent: number;
  withoutLoadMv: number;
  underLoadMv: number;
}

/** Of its four cells: below this it warns. */
const LOW_PERCENT = 15;

export const POWER = 0x0001;
/** BatteryAlarmCode: the least voltage or percentage of battery 1 is reached. */
export const LOW_BATTERY_ALARM = 0x10;

export interface Power {
  cluster: Cluster;
  /** Warns once when the battery has become low, if its mask says so. */
  notice(): void;
}

export function openPower(battery: Battery, wholePercent: boolean, warn: () => void): Power {
  const settings = { minimum: 48, alarmMask: 0 };
  const isLow = () => battery.percent < LOW_PERCENT;
  let wasLow = isLow();
  return {
    cluster: powerCluster(battery, settings, wholePercent ? 1 : 2, isLow),
    notice() {
      if (isLow() && !wasLow && (settings.alarmMask & 1) === 1) warn();
      wasLow = isLow();
    },
  };
}

function powerCluster(
  battery: Battery,
  settings: { minimum: number; alarmMask: number },
  perPercent: number,
  isLow: () => boolean,
): Cluster {
  return {
    id: POWER,
    attributes: {
      32: { type: TYPE.uint8, get: () => Math.round(battery.withoutLoadMv / 100), isReportable: true },
      33: { type: TYPE.uint8, get: () => Math.round(battery.percent * perPercent), isReportable: true },
      49: constant(TYPE.enum8, 3),
      51: constant(TYPE.uint8, 4),
      53: fieldOf(settings, 'alarmMask', TYPE.bitmap8, { isWritable: true }),
      54: fieldOf(settings, 'minimum', TYPE.uint8, { isWritable: true }),
      62: { type: TYPE.bitmap32, get: () => (isLow() ? 1 : 0), isReportable: true },
    },
    commands: {},
  };
}

/** Diagnostics: how it hears its parent. */
export function diagnosticsCluster(link: { lqi: number; rssi: number }): Cluster {
  return {
    id: 0x0b05,
    attributes: {
      284: { type: TYPE.uint8, get: () => link.lqi },
      285: { type: TYPE.int8, get: () => link.rssi },
    },
    commands: {},
  };
}

export interface Alarms {
  cluster: Cluster;
  raise(code: number, cluster: number): void;
  count(): number;
}

export const ALARMS = 0x0009;
const ALARMS_MAX = 16;

export function openAlarms(notify: (command: number, payload: Buffer) => void): Alarms {
  let log: { code: number; cluster: number }[] = [];
  return {
    count: () => log.length,
    raise(code, cluster) {
      log = [...log, { code, cluster }].slice(-ALARMS_MAX);
      notify(0, bytes(code, u16(cluster)));
    },
    cluster: {
      id: ALARMS,
      attributes: { 0: { type: TYPE.uint16, get: () => log.length } },
      commands: {
        0(input) {
          const [code, cluster] = [input.u8(), input.u16()];
          log = log.filter((one) => one.code !== code || one.cluster !== cluster);
          return succeeded;
        },
        1() {
          log = [];
          return succeeded;
        },
        2() {
          const first = log.shift();
          // 0x8B: none; then nothing follows.
          if (!first) return responded(1, Buffer.of(0x8b));
          return responded(1, bytes(0, first.code, u16(first.cluster), Buffer.alloc(4, 0xff)));
        },
        3() {
          log = [];
          return succeeded;
        },
      },
    },
  };
}
