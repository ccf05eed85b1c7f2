/**
 * A standard lock (ZCL rev. 8, 7.3): its attributes, what of a configuration it can carry and what it cannot, who locks it again
 * after an unlock, and which alarms and events it sends. Pure.
 */
import { z } from 'zod';
import {
  type Holiday,
  holiday,
  type LockConfiguration,
  type LockReport,
  type LockSettings,
  OPERATING_MODES,
  type RelockWay,
  type UserLimits,
} from '../contract/settings.ts';
import { TYPE } from './lock-cluster.ts';
import { DOOR_LOCK, type Radio } from './radio.ts';
import { field, hex, integer, UINT32_LAST } from './values.ts';

/** Attributes of the Door Lock cluster. */
export const DOOR_LOCK_ATTRIBUTE = {
  lockState: 0x00_00,
  doorState: 0x00_03,
  totalUsers: 0x00_11,
  pinUsers: 0x00_12,
  rfidUsers: 0x00_13,
  weekDaySchedules: 0x00_14,
  yearDaySchedules: 0x00_15,
  holidaySchedules: 0x00_16,
  pinMax: 0x00_17,
  pinMin: 0x00_18,
  cardMax: 0x00_19,
  cardMin: 0x00_1a,
  autoRelockTime: 0x00_23,
  soundVolume: 0x00_24,
  operatingMode: 0x00_25,
  supportedOperatingModes: 0x00_26,
  oneTouchLocking: 0x00_29,
  wrongCodeLimit: 0x00_30,
  wrongCodeLockout: 0x00_31,
  requirePin: 0x00_33,
} as const;

/** Of a request that reads attributes of the Door Lock cluster. */
export function readingOf(attributes: readonly number[]) {
  const payload = attributes.map((attrId) => ({ attrId }));
  return { cluster: DOOR_LOCK, command: 'read', scope: 'foundation' as const, payload };
}

/** What such a request is answered: values by attribute. One that the lock does not have is missing. */
export function valuesIn(payload: unknown): ReadonlyMap<number, number> {
  const values = (Array.isArray(payload) ? payload : []).flatMap((record) => {
    const id = integer(field(record, 'attrId'), 0, 0xff_ff);
    const data = field(record, 'attrData');
    const value = typeof data === 'boolean' ? Number(data) : integer(data, 0, UINT32_LAST);
    return id === undefined || value === undefined ? [] : [[id, value] as const];
  });
  return new Map(values);
}

/** What a write, or Configure Reporting, is answered: a status for each record that failed, or one for all (ZCL rev. 8, 2.5.5). */
export function statusesIn(payload: unknown): (number | undefined)[] {
  const statuses: unknown[] = Array.isArray(payload)
    ? payload.map((record) => field(record, 'status'))
    : [field(payload, 'statusCode')];
  return statuses.map((status) => integer(status, 0, 0xff));
}

/** Commands of the Door Lock cluster that it receives. */
export const UNLOCK_DOOR = 0x01;
export const UNLOCK_WITH_TIMEOUT = 0x03;
export const SET_PIN_CODE = 0x05;
export const SET_RFID_CODE = 0x16;

/** Such as `operatingMode (attribute 0x0025)`; of anything else what can be said of it. */
export function attributeName(id: unknown): string {
  const number = integer(id, 0, 0xff_ff);
  if (number === undefined) return 'an attribute that the lock does not name';
  const code = hex(number, 4);
  const name = Object.entries(DOOR_LOCK_ATTRIBUTE).find(([, value]) => value === number)?.[0];
  return name === undefined ? `attribute ${code}` : `${name} (attribute ${code})`;
}

/** Table 7-13, which numbers them from 0. */
export const MODE = Object.fromEntries(OPERATING_MODES.map((mode, number) => [mode, number])) as Record<
  Holiday['mode'],
  number
>;

export interface AttributeWrite {
  attrId: number;
  dataType: number;
  attrData: number;
}

export const offersPassage = (supportedModes: unknown) => offersMode(supportedModes, MODE.passage) === true;

const keptHolidays = z.array(holiday);

/** Those that the lock may have, by what the radio keeps of it; undefined: they were neither written nor read. */
export function holidaysIn({ holidays }: Readonly<Record<string, unknown>>): Holiday[] | undefined {
  return holidays === undefined ? undefined : keptHolidays.safeParse(holidays).data;
}

/** Undefined: the lock has not said it. */
export function offersMode(supportedModes: unknown, mode: number): boolean | undefined {
  const modes = integer(supportedModes, 0, 0xff_ff);
  if (modes === undefined) return undefined;
  // A set bit means supported to some makers and the reverse to others. Every lock has the normal mode, which is bit 0,
  // so that bit shows which it is.
  const isSet = (bit: number) => (modes & (1 << bit)) !== 0;
  return isSet(mode) === isSet(MODE.normal);
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
export function unsupportedOf(
  wanted: LockConfiguration,
  { weekDays = 0 }: UserLimits,
): (keyof LockConfiguration)[] {
  const { accessInternal } = wanted;
  const opensToOthers =
    accessInternal !== null && (accessInternal.doors.length > 0 || accessInternal.interval !== null);
  const holds: [keyof LockConfiguration, boolean][] = [
    ['onlineEnabled', wanted.onlineEnabled],
    ['accessInternal', opensToOthers],
    ['outputs', wanted.outputs.length > 0],
    // Its week-day schedules are of single users: each user of the door is given those of the door (lock-users.ts).
    ['schedule', weekDaysNeeded(wanted.schedule) > weekDays],
    ['relaySetup', wanted.relaySetup !== null],
    ['type', wanted.type !== null],
    ['number', wanted.number !== null],
    ['name', wanted.name !== null],
  ];
  return holds.flatMap(([name, isHeld]) => (isHeld ? [name] : []));
}

/** A week-day schedule is within one day (7.3.2.17.13): an interval over midnight is two. */
function weekDaysNeeded(schedule: LockConfiguration['schedule']): number {
  return schedule.reduce((count, { start, end }) => count + (end > start || end === 0 ? 1 : 2), 0);
}

/** What of the limits of users each attribute says, by its name in the library. */
const USER_LIMITS = {
  numOfPinUsersSupported: 'pins',
  numOfRfidUsersSupported: 'cards',
  minPinLen: 'pinMin',
  maxPinLen: 'pinMax',
  minRfidLen: 'cardMin',
  maxRfidLen: 'cardMax',
  numOfWeekDaySchedulesSupportedPerUser: 'weekDays',
  numOfYearDaySchedulesSupportedPerUser: 'yearDays',
  numOfHolidayScheduledsSupported: 'holidays',
} as const satisfies Record<string, keyof UserLimits>;

/** Of what the radio keeps of the lock. */
export function limitsOf(
  { ieee, endpoint }: { ieee: string; endpoint: number },
  radio: Pick<Radio, 'attribute' | 'meta'>,
): UserLimits {
  return userLimitsOf((name) => radio.attribute(ieee, endpoint, DOOR_LOCK, name), radio.meta(ieee));
}

/** As the library names them. */
export const SETTING_ATTRIBUTES = {
  autoRelockSeconds: 'autoRelockTime',
  soundVolume: 'soundVolume',
  oneTouchLocking: 'enableOneTouchLocking',
  wrongCodeLimit: 'wrongCodeEntryLimit',
  wrongCodeLockoutSeconds: 'userCodeTemporaryDisableTime',
} as const;

/** Of what the lock reported. */
export function settingsOf(attribute: (name: string) => unknown): LockSettings {
  const reported = (name: keyof typeof SETTING_ATTRIBUTES) => attribute(SETTING_ATTRIBUTES[name]);
  const numbers = {
    autoRelockSeconds: integer(reported('autoRelockSeconds'), 0, UINT32_LAST),
    soundVolume: integer(reported('soundVolume'), 0, 0xfe),
    wrongCodeLimit: integer(reported('wrongCodeLimit'), 0, 0xfe),
    wrongCodeLockoutSeconds: integer(reported('wrongCodeLockoutSeconds'), 0, 0xfe),
  };
  const oneTouch = reported('oneTouchLocking');
  const oneTouchLocking = typeof oneTouch === 'boolean' ? Number(oneTouch) : integer(oneTouch, 0, 1);
  return {
    ...Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined)),
    ...(oneTouchLocking !== undefined && { oneTouchLocking: oneTouchLocking === 1 }),
  };
}

/** `lacksPins`, `lacksCards`: the lock has listed its commands, and what stores them is not one (configure.ts). */
function userLimitsOf(
  attribute: (name: string) => unknown,
  { lacksPins, lacksCards }: Readonly<Record<string, unknown>>,
): UserLimits {
  const limits: UserLimits = {};
  for (const [name, limit] of Object.entries(USER_LIMITS)) {
    const value = integer(attribute(name), 0, limit === 'pins' || limit === 'cards' ? 0xff_fe : 0xfe);
    if (value !== undefined) limits[limit] = value;
  }
  if (lacksPins === true) limits.pins = 0;
  if (lacksCards === true) limits.cards = 0;
  return limits;
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

/** Who locks a door again after an unlock, by what the lock has reported; undefined and NaN: nothing. */
export interface Relocking {
  /** Whether it has Unlock with Timeout; anything but a boolean: not known. */
  timedUnlock: unknown;
  /** Seconds (ZCL rev. 8, 7.3.2.13.4); 0: it does not lock again by itself. */
  autoRelockTime: unknown;
}

export function autoRelockSeconds({ autoRelockTime }: Pick<Relocking, 'autoRelockTime'>): number | undefined {
  return integer(autoRelockTime, 1, UINT32_LAST);
}

/** Undefined: that it has none of its own is not certain yet. */
export function relockOf(lock: Relocking): LockReport['relock'] {
  if (lock.timedUnlock === true) return { by: 'timedUnlock', seconds: null };
  const seconds = autoRelockSeconds(lock);
  if (seconds !== undefined) return { by: 'autoRelock', seconds };
  return lock.timedUnlock === false ? { by: 'gateway', seconds: null } : undefined;
}

/**
 * The ways to unlock it, the best first; none: it is not to be unlocked. After a timed unlock that the lock does not have
 * the next one may follow, since that one opened nothing.
 */
export function waysOf(lock: Relocking, gatewayRelocks: boolean): RelockWay[] {
  const ways: RelockWay[] = lock.timedUnlock === false ? [] : ['timedUnlock'];
  if (autoRelockSeconds(lock) !== undefined) return [...ways, 'autoRelock'];
  return gatewayRelocks ? [...ways, 'gateway'] : ways;
}

const bits = (...numbers: number[]) => numbers.reduce((mask, bit) => mask | (1 << bit), 0);
const mask = (attrId: number, attrData: number): AttributeWrite => ({
  attrId,
  dataType: TYPE.bitmap16,
  attrData,
});

/**
 * Which alarms and events a lock sends (7.3.2.15). The default of each mask is 0: a lock that is not configured otherwise never
 * says that its door was forced. Bits that the standard reserves stay 0.
 *
 * AlarmMask: jam, factory reset, radio power cycled, wrong codes, escutcheon removed, forced open.
 */
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
