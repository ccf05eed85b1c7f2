/** What a lock says by itself, as facts: reports, events and alarms of the standard clusters (ZCL rev. 8). Pure. */
import type { LockEvent } from '../zgate.ts';
import { field, integer } from './values.ts';

/** A frame of a lock, with the names of zigbee-herdsman's clusters, commands and attributes. */
export interface Heard {
  cluster: string | number;
  /** attributeReport, readResponse, commandOperationEventNotification, … */
  type: string;
  data: unknown;
}

/** An event, but for the lock and the time. */
export type Told = Pick<LockEvent, 'kind' | 'what' | 'source' | 'userId'>;

export interface Facts {
  lockState?: number;
  doorState?: number;
  /** Percent. */
  battery?: number;
  rssi?: number;
  event?: Told;
  /** The bolt did not move. */
  jam?: boolean;
  /** An operation event says that it was unlocked: by radio, or not. */
  unlockedByRadio?: boolean;
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
/** Table 7-9: doorState. */
const DOOR_STATES = ['doorOpen', 'doorClosed', 'doorJammed', 'doorForcedOpen', 'doorError'];

export function factsOf({ cluster, type, data }: Heard): Facts {
  const hasAttributes = isAttributes(type);
  switch (cluster) {
    case 'closuresDoorLock':
      if (hasAttributes) return doorLockAttributes(data);
      if (type === 'commandOperationEventNotification') return operation(data);
      return type === 'commandProgrammingEventNotification' ? programming(data) : {};
    case 'genAlarms':
      return type === 'commandAlarm' ? alarm(data) : {};
    case 'genPowerCfg': {
      // In half percent (3.3.2.2.3.2).
      const half = hasAttributes ? integer(field(data, 'batteryPercentageRemaining'), 0, 200) : undefined;
      return half === undefined ? {} : { battery: Math.floor(half / 2) };
    }
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

function operation(data: unknown): Facts {
  const code = integer(field(data, 'opereventcode'), 0, 0xff);
  if (code === undefined) return {};
  const source = integer(field(data, 'opereventsrc'), 0, 0xff);
  const event = told('operation', OPERATIONS[code], source, data);
  if (code === OPERATION_UNLOCKED) return { event, unlockedByRadio: source === SOURCE_RF };
  return UNLOCKED_OTHERWISE.includes(code) ? { event, unlockedByRadio: false } : { event };
}

function programming(data: unknown): Facts {
  const code = integer(field(data, 'programeventcode'), 0, 0xff);
  if (code === undefined) return {};
  const source = integer(field(data, 'programeventsrc'), 0, 0xff);
  return { event: told('programming', PROGRAMMING[code], source, data) };
}

/** The payload holds the digits of a PIN: nothing of it passes but what is named here. */
function told(kind: Told['kind'], what = 'unknown', source: number | undefined, data: unknown): Told {
  const userId = integer(field(data, 'userid'), 0, USER_MAX) ?? null;
  return { kind, what, source: (source === undefined ? undefined : SOURCES[source]) ?? null, userId };
}

function alarm(data: unknown): Facts {
  const code = integer(field(data, 'alarmcode'), 0, 0xff);
  // Alarms of other clusters number theirs otherwise.
  if (code === undefined || field(data, 'clusterid') !== DOOR_LOCK) return {};
  const what = ALARMS.get(code) ?? `alarm${code}`;
  return { event: { kind: 'alarm', what, source: null, userId: null }, jam: code === ALARM_JAMMED };
}

/** Tells of a door position that changed; the first one heard is no event. */
export function doorEvent(before: number | undefined, now: number): Told | undefined {
  const what = DOOR_STATES[now];
  if (before === undefined || before === now || what === undefined) return undefined;
  return { kind: 'door', what, source: null, userId: null };
}
