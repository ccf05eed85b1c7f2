/**
 * Which ZCL frames are what they seem. The library knows an attribute by its number alone: not by its type, nor by whose
 * it is, and an attribute 0 of a maker's own is no lockState. Pure.
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
