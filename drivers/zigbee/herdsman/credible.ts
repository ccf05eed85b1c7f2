/**
 * Which ZCL frames are what they seem, and what is missing in those that end early. The library knows an attribute by its number
 * alone, not by its type, nor by whose it is: an attribute 0 of a maker's own is no lockState. Pure.
 */
import { BATTERY_ALARM_STATE, BATTERY_PERCENTAGE, CLUSTER, LAST_RSSI } from '../configure.ts';
import { ATTRIBUTES, CLUSTER_ID, TYPE } from '../lock-cluster.ts';
import { LAST_OPERATION } from '../locks/onesti.ts';
import { DOOR_LOCK_ATTRIBUTE as DOOR_LOCK } from '../standard-lock.ts';

/** By cluster: type by attribute (ZCL rev. 8, tables 3-19, 7-8 to 7-14; 3.15.2.3 for diagnostics). */
const STANDARD: ReadonlyMap<number, ReadonlyMap<number, number>> = new Map([
  [CLUSTER.alarms, new Map()],
  [
    CLUSTER.power,
    new Map<number, number>([
      [BATTERY_PERCENTAGE, TYPE.uint8],
      [BATTERY_ALARM_STATE, TYPE.bitmap32],
    ]),
  ],
  [CLUSTER.diagnostics, new Map([[LAST_RSSI, TYPE.int8]])],
  [
    CLUSTER.doorLock,
    new Map<number, number>([
      [DOOR_LOCK.lockState, TYPE.enum8],
      [DOOR_LOCK.doorState, TYPE.enum8],
      [DOOR_LOCK.totalUsers, TYPE.uint16],
      [DOOR_LOCK.pinUsers, TYPE.uint16],
      [DOOR_LOCK.rfidUsers, TYPE.uint16],
      [DOOR_LOCK.weekDaySchedules, TYPE.uint8],
      [DOOR_LOCK.yearDaySchedules, TYPE.uint8],
      [DOOR_LOCK.holidaySchedules, TYPE.uint8],
      [DOOR_LOCK.pinMax, TYPE.uint8],
      [DOOR_LOCK.pinMin, TYPE.uint8],
      [DOOR_LOCK.cardMax, TYPE.uint8],
      [DOOR_LOCK.cardMin, TYPE.uint8],
      [DOOR_LOCK.autoRelockTime, TYPE.uint32],
      [DOOR_LOCK.soundVolume, TYPE.uint8],
      [DOOR_LOCK.oneTouchLocking, TYPE.boolean],
      [DOOR_LOCK.wrongCodeLimit, TYPE.uint8],
      [DOOR_LOCK.wrongCodeLockout, TYPE.uint8],
      [DOOR_LOCK.operatingMode, TYPE.enum8],
      [DOOR_LOCK.supportedOperatingModes, TYPE.bitmap16],
      [DOOR_LOCK.requirePin, TYPE.boolean],
      [LAST_OPERATION, TYPE.bitmap32],
    ]),
  ],
]);
const OWN: ReadonlyMap<number, number> = new Map(ATTRIBUTES.map(({ id, type }) => [id, type]));

export interface FrameHead {
  cluster: number;
  /** Undefined: of the standard. */
  manufacturerCode: number | undefined;
  /** By the side that has the attributes. */
  fromServer: boolean;
}

/** False: a frame of a cluster we listen to that does not mean what the standard means by it. */
export function isCredible(head: FrameHead, ownCode: number | undefined): boolean {
  const { cluster, manufacturerCode, fromServer } = head;
  if (STANDARD.has(cluster)) return fromServer && manufacturerCode === undefined;
  return cluster !== CLUSTER_ID || (fromServer && manufacturerCode === ownCode);
}

/** A record of an attribute as it is reported. A record of a cluster that is not used passes unchanged. */
export function isCredibleRecord(cluster: number, attrId: unknown, dataType: unknown): boolean {
  const types = cluster === CLUSTER_ID ? OWN : STANDARD.get(cluster);
  return types === undefined || (typeof attrId === 'number' && types.get(attrId) === dataType);
}

/** Frame control: for the cluster, of the standard, from the server. */
const CONTROL_MASK = 0b1111;
const FROM_LOCK = 0b1001;
/** Frame control, transaction sequence number, command. */
const HEADER_BYTES = 3;
/** Source, code and user. */
const HEAD_BYTES = 4;
/** Between the PIN and the text at the end, by command: the local time; user type, user status and local time. */
const FIXED_BYTES: ReadonlyMap<number | undefined, number> = new Map([
  [0x20, 4],
  [0x21, 6],
]);

/** Get Week Day, Year Day and Holiday Schedule Response: where the status is, and the length of the whole. */
const SCHEDULE_ANSWERS: ReadonlyMap<number | undefined, { statusAt: number; bytes: number }> = new Map([
  [0x0c, { statusAt: 3, bytes: 9 }],
  [0x0f, { statusAt: 3, bytes: 12 }],
  [0x12, { statusAt: 1, bytes: 11 }],
]);

/**
 * A frame of the Door Lock cluster, with zeros for what it lacks; the library cannot read it otherwise. Any other frame is as it
 * was. Operation and programming events (ZCL rev. 8, 7.3.2.16.27 and 28): locks are sold that leave out the last fields, or a part
 * of them; such an event is not acknowledged, and the lock repeats it. What a daemon needs of it comes first. And answers that
 * there is no such schedule, whose other fields mean nothing.
 */
export function completeFrame(frame: Buffer): Buffer {
  const [control = 0, , command] = frame;
  if ((control & CONTROL_MASK) !== FROM_LOCK) return frame;
  const payload = frame.subarray(HEADER_BYTES);
  const answer = SCHEDULE_ANSWERS.get(command);
  if (answer && (payload[answer.statusAt] ?? 0) !== 0)
    return Buffer.concat([frame, Buffer.alloc(Math.max(0, answer.bytes - payload.length))]);
  const fixed = FIXED_BYTES.get(command);
  if (fixed === undefined || payload.length < HEAD_BYTES) return frame;
  const pinBytes = payload[HEAD_BYTES];
  const pinEnd = HEAD_BYTES + 1 + (pinBytes ?? 0);
  // An end within the PIN leaves nothing to rely on.
  if (pinBytes !== undefined && payload.length < pinEnd) return frame;
  const missing = pinEnd + fixed + 1 - payload.length;
  return missing > 0 ? Buffer.concat([frame, Buffer.alloc(missing)]) : frame;
}
