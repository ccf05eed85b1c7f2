/** What a lock says by itself, as facts: reports, events and alarms of the standard clusters (ZCL rev. 8). Pure. */
import type { LockEvent } from '../contract/zgate.ts';
import { field, integer } from './values.ts';

/** A frame of a lock, with the names of zigbee-herdsman's clusters, commands and attributes. */
export interface Heard {
  cluster: string | number;
  /** attributeReport, readResponse, commandOperationEventNotification, … */
  type: string;
  data: unknown;
}

/** An event, but for the lock and the time. */
export type EventDetail = Pick<LockEvent, 'kind' | 'what' | 'source' | 'userId'>;

export interface Facts {
  /** A frame of it came; what else it says is reported apart. */
  isThere?: true;
  lockState?: number;
  doorState?: number;
  /** Percent. */
  battery?: number;
  batteryLow?: boolean;
  rssi?: number;
  event?: EventDetail;
  /** The value of an attribute that has the last operation: the lock may report the same operation again. */
  lastOperation?: number;
  /** The operation event says that the bolt is there now, by the code of lockState. */
  movedTo?: number;
  /** The bolt did not move. */
  jam?: boolean;
  /** An operation event says that it was unlocked: by radio, or not. */
  unlockedByRadio?: boolean;
  /** An operation event says that it was locked by radio. */
  lockedByRadio?: true;
}

const USER_MAX = 0xff_fe;
/** Table 7-35: sources of operation and programming events. */
const SOURCES = ['keypad', 'rf', 'manual', 'rfid'];
const SOURCE_RF = 1;
/** Tables 7-36 to 7-39: operation event codes; the same in all sources. */
const OPERATIONS = [
  'unknown',
  'locked',
  'unlocked',
  'lockFailedPin',
  'lockFailedSchedule',
  'unlockFailedPin',
  'unlockFailedSchedule',
  'lockedByOneTouch',
  'lockedByKey',
  'unlockedByKey',
  'lockedAutomatically',
  'lockedBySchedule',
  'unlockedBySchedule',
  'lockedManually',
  'unlockedManually',
  'nonAccessUser',
];
const OPERATION_LOCKED = 1;
const OPERATION_UNLOCKED = 2;
/** By key, by its schedule, and by hand. */
const UNLOCKED_OTHERWISE = [9, 12, 14];
/** Tables 7-42 to 7-44: programming event codes. */
const PROGRAMMING = [
  'unknown',
  'masterCodeChanged',
  'pinAdded',
  'pinDeleted',
  'pinChanged',
  'rfidAdded',
  'rfidDeleted',
];
/** Table 7-11: alarm codes of the cluster. */
const ALARMS = new Map([
  [0, 'jammed'],
  [1, 'factoryReset'],
  [3, 'radioPowerCycled'],
  [4, 'wrongCodes'],
  [5, 'escutcheonRemoved'],
  [6, 'forcedOpen'],
]);
const ALARM_JAMMED = 0;
const DOOR_LOCK = 0x01_01;
const POWER = 0x00_01;
const UINT32_LAST = 0xff_ff_ff_ff;
/** Bits of BatteryAlarmState (3.3.2.2.4.15): the four thresholds of each of three batteries. */
const BATTERY_ALARMS = 0x00_f0_3c_0f;
/** Alarm codes of the power configuration (table 3-21): the same thresholds; 0x3a is the loss of the mains. */
const BATTERY_ALARM_CODES = [0x10, 0x11, 0x12, 0x13, 0x20, 0x21, 0x22, 0x23, 0x30, 0x31, 0x32, 0x33];
/** Operation events after which the bolt is locked or unlocked (lockState 1 and 2). */
const MOVES: ReadonlyMap<number, number> = new Map([
  ...[1, 7, 8, 10, 11, 13].map((code) => [code, 1] as const),
  ...[2, 9, 12, 14].map((code) => [code, 2] as const),
]);
/** Table 7-9: doorState. */
const DOOR_STATES = ['doorOpen', 'doorClosed', 'doorJammed', 'doorForcedOpen', 'doorError'];

export function factsOf({ cluster, type, data }: Heard): Facts {
  const hasAttributes = isAttributes(type);
  switch (cluster) {
    case 'closuresDoorLock':
      if (hasAttributes) return doorLockAttributes(data);
      if (type === 'commandOperationEventNotification') return { ...operation(data), ...movement(data) };
      return type === 'commandProgrammingEventNotification' ? programming(data) : {};
    case 'genAlarms':
      return type === 'commandAlarm' ? alarm(data) : {};
    case 'genPowerCfg':
      return hasAttributes ? batteryOf(data) : {};
    case 'haDiagnostic': {
      const rssi = hasAttributes ? integer(field(data, 'lastMessageRssi'), -127, 20) : undefined;
      return rssi === undefined ? {} : { rssi };
    }
    default:
      return {};
  }
}

/** Whether frames of this type carry attributes. */
export function isAttributes(type: string): boolean {
  return type === 'attributeReport' || type === 'readResponse';
}

function doorLockAttributes(data: unknown): Facts {
  const lockState = integer(field(data, 'lockState'), 0, 2);
  const doorState = integer(field(data, 'doorState'), 0, DOOR_STATES.length - 1);
  return { ...(lockState !== undefined && { lockState }), ...(doorState !== undefined && { doorState }) };
}

function batteryOf(data: unknown): Facts {
  // In half percent (3.3.2.2.3.2).
  const half = integer(field(data, 'batteryPercentageRemaining'), 0, 200);
  const alarms = integer(field(data, 'batteryAlarmState'), 0, UINT32_LAST);
  return {
    ...(half !== undefined && { battery: Math.floor(half / 2) }),
    ...(alarms !== undefined && { batteryLow: (alarms & BATTERY_ALARMS) !== 0 }),
  };
}

function operation(data: unknown): Facts {
  const code = integer(field(data, 'opereventcode'), 0, 0xff);
  if (code === undefined) return {};
  const source = integer(field(data, 'opereventsrc'), 0, 0xff);
  const event = detailOf('operation', OPERATIONS[code], source, data);
  if (code === OPERATION_UNLOCKED && isSource(source))
    return { event, unlockedByRadio: source === SOURCE_RF };
  if (code === OPERATION_LOCKED && source === SOURCE_RF) return { event, lockedByRadio: true };
  return UNLOCKED_OTHERWISE.includes(code) ? { event, unlockedByRadio: false } : { event };
}

/** 0xff: the lock does not say who it was. */
function isSource(source: number | undefined): boolean {
  return source !== undefined && source in SOURCES;
}

function movement(data: unknown): Facts {
  const movedTo = MOVES.get(integer(field(data, 'opereventcode'), 0, 0xff) ?? -1);
  return movedTo === undefined ? {} : { movedTo };
}

function programming(data: unknown): Facts {
  const code = integer(field(data, 'programeventcode'), 0, 0xff);
  if (code === undefined) return {};
  const source = integer(field(data, 'programeventsrc'), 0, 0xff);
  return { event: detailOf('programming', PROGRAMMING[code], source, data) };
}

/** The payload holds the digits of a PIN: nothing of it passes but what is named here. */
function detailOf(
  kind: EventDetail['kind'],
  what = 'unknown',
  source: number | undefined,
  data: unknown,
): EventDetail {
  const userId = integer(field(data, 'userid'), 0, USER_MAX) ?? null;
  return { kind, what, source: (source === undefined ? undefined : SOURCES[source]) ?? null, userId };
}

function alarm(data: unknown): Facts {
  const code = integer(field(data, 'alarmcode'), 0, 0xff);
  const cluster = field(data, 'clusterid');
  if (code === undefined) return {};
  if (cluster === POWER && BATTERY_ALARM_CODES.includes(code))
    return { batteryLow: true, event: { kind: 'alarm', what: 'batteryLow', source: null, userId: null } };
  // Alarms of other clusters number theirs otherwise.
  if (cluster !== DOOR_LOCK) return {};
  const what = ALARMS.get(code) ?? `alarm${code}`;
  return { event: { kind: 'alarm', what, source: null, userId: null }, jam: code === ALARM_JAMMED };
}

/** The event of a door position that changed; the first position is no event. */
export function doorEvent(before: number | undefined, now: number): EventDetail | undefined {
  const what = DOOR_STATES[now];
  if (before === undefined || before === now || what === undefined) return undefined;
  return { kind: 'door', what, source: null, userId: null };
}
