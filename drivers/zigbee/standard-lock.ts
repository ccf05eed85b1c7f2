/** What of a configuration a standard lock can carry (ZCL rev. 8, 7.3), and what it cannot. Pure. */
import type { LockConfiguration } from '../contract/settings.ts';
import { DOOR_LOCK } from './radio.ts';
import { hex, integer, UINT32_LAST } from './values.ts';

/** Attributes of the Door Lock cluster. */
export const DOOR_LOCK_ATTRIBUTE = {
  lockState: 0x00_00,
  doorState: 0x00_03,
  totalUsers: 0x00_11,
  pinUsers: 0x00_12,
  rfidUsers: 0x00_13,
  weekDaySchedules: 0x00_14,
  autoRelockTime: 0x00_23,
  operatingMode: 0x00_25,
  supportedOperatingModes: 0x00_26,
  requirePin: 0x00_33,
} as const;

/** Of a request that reads attributes of the Door Lock cluster. */
export function readingOf(attributes: readonly number[]) {
  const payload = attributes.map((attrId) => ({ attrId }));
  return { cluster: DOOR_LOCK, command: 'read', scope: 'foundation' as const, payload };
}

/** Commands of the Door Lock cluster that it receives. */
export const UNLOCK_DOOR = 0x01;
export const UNLOCK_WITH_TIMEOUT = 0x03;

/** Such as `operatingMode (attribute 0x0025)`; of anything else what can be said of it. */
export function attributeName(id: unknown): string {
  const number = integer(id, 0, 0xff_ff);
  if (number === undefined) return 'an attribute that the lock does not name';
  const code = hex(number, 4);
  const name = Object.entries(DOOR_LOCK_ATTRIBUTE).find(([, value]) => value === number)?.[0];
  return name === undefined ? `attribute ${code}` : `${name} (attribute ${code})`;
}

/** Table 7-13. */
export const MODE = { normal: 0, passage: 4 } as const;

export interface AttributeWrite {
  attrId: number;
  dataType: number;
  attrData: number;
}

export function offersPassage(supportedModes: unknown): boolean {
  const modes = integer(supportedModes, 0, 0xff_ff);
  if (modes === undefined) return false;
  // A set bit means supported to some makers and the reverse to others. Every lock has the normal mode, which is bit 0,
  // so that bit shows which it is.
  const isSet = (bit: number) => (modes & (1 << bit)) !== 0;
  return isSet(MODE.passage) === isSet(MODE.normal);
}

/** RequirePINforRFOperation (0x0033), a boolean: the library gives it as a number. Undefined: not reported. */
export function requiresPin(reported: unknown): boolean | undefined {
  if (typeof reported === 'boolean') return reported;
  const number = integer(reported, 0, 1);
  return number === undefined ? undefined : number === 1;
}

/**
 * What of a configuration holds something that the lock cannot carry. A permission to stand open is the gateway's to keep,
 * and no setting of the lock is changed by it.
 */
export function unsupportedOf(wanted: LockConfiguration): (keyof LockConfiguration)[] {
  const { accessInternal } = wanted;
  const opensToOthers =
    accessInternal !== null && (accessInternal.doors.length > 0 || accessInternal.interval !== null);
  const holds: [keyof LockConfiguration, boolean][] = [
    ['onlineEnabled', wanted.onlineEnabled],
    ['accessInternal', opensToOthers],
    ['outputs', wanted.outputs.length > 0],
    // Its week-day schedules are of single users, not of the door.
    ['schedule', wanted.schedule.length > 0],
    ['relaySetup', wanted.relaySetup !== null],
    ['type', wanted.type !== null],
    ['number', wanted.number !== null],
    ['name', wanted.name !== null],
  ];
  return holds.flatMap(([name, isHeld]) => (isHeld ? [name] : []));
}

/** The commands that the door supports, derived from the attributes of the lock; beside those of the lock's own cluster. */
export function capabilitiesOf(reported: {
  attribute(name: string): unknown;
  inputs: readonly number[];
  outputs: readonly number[];
}): string[] {
  const counts = (name: string) => (integer(reported.attribute(name), 0, 0xff_fe) ?? 0) > 0;
  const has: [string, boolean][] = [
    ['users', counts('numOfTotalUsersSupported')],
    ['pins', counts('numOfPinUsersSupported')],
    ['rfids', counts('numOfRfidUsersSupported')],
    ['weekDaySchedules', counts('numOfWeekDaySchedulesSupportedPerUser')],
    ['autoRelock', integer(reported.attribute('autoRelockTime'), 0, UINT32_LAST) !== undefined],
    ['passage', offersPassage(reported.attribute('supportedOperatingModes'))],
    ['doorSensor', integer(reported.attribute('doorState'), 0, 4) !== undefined],
    ['firmwareUpdate', reported.outputs.includes(0x00_19)],
    ['pollControl', reported.inputs.includes(0x00_20)],
  ];
  return has.flatMap(([name, isThere]) => (isThere ? [name] : []));
}
