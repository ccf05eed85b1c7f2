/**
 * Which alarms and events a lock sends (ZCL rev. 8, 7.3.2.15). The default of each mask is 0: a lock that is not configured
 * otherwise never says that its door was forced. Bits that the standard reserves stay 0. Pure.
 */
import { TYPE } from './lock-cluster.ts';
import type { AttributeWrite } from './standard-lock.ts';

const bits = (...numbers: number[]) => numbers.reduce((mask, bit) => mask | (1 << bit), 0);
const mask = (attrId: number, attrData: number): AttributeWrite => ({
  attrId,
  dataType: TYPE.bitmap16,
  attrData,
});

/** AlarmMask: jam, factory reset, radio power cycled, wrong codes, escutcheon removed, forced open. */
export const ALARM_MASK = [mask(0x00_40, bits(0, 1, 3, 4, 5, 6))];

/** Operation events: bit n is event code n of the source. */
export const OPERATION_MASKS = [
  /** Keypad; 15: by somebody who is no access user. */
  mask(0x00_41, bits(0, 1, 2, 3, 4, 5, 6, 15)),
  /** RF. */
  mask(0x00_42, bits(0, 1, 2, 3, 4, 5, 6)),
  /** Manual: thumb turn, one touch, key, schedule and automatic locking among them. */
  mask(0x00_43, bits(0, 1, 2, 7, 8, 9, 10, 11, 12, 13, 14)),
  /** RFID. */
  mask(0x00_44, bits(0, 1, 2, 3, 4, 5, 6)),
];

/** Programming events of the keypad, by RF, and of RFID. */
export const PROGRAMMING_MASKS = [
  mask(0x00_45, bits(0, 1, 2, 3, 4)),
  mask(0x00_46, bits(0, 2, 3, 4, 5, 6)),
  mask(0x00_47, bits(0, 5, 6)),
];

/** BatteryAlarmMask of the power configuration (table 3-20): bit 0, the least voltage or percentage is reached. */
export const BATTERY_ALARM_MASK = [{ attrId: 0x00_35, dataType: TYPE.bitmap8, attrData: bits(0) }];
