/** What of a configuration a standard lock can carry (ZCL rev. 8, 7.3), and what it cannot. Pure. */
import type { LockConfiguration } from '../settings.ts';
import { TYPE } from './lock-cluster.ts';
import { hex, integer } from './values.ts';

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
const MODE = { normal: 0, passage: 4 } as const;
const UINT32_LAST = 0xff_ff_ff_fe;
/** Of a lock whose own time nobody knows any more: time to open the door. */
const RELOCK_SECONDS = 30;

/** What the lock said of itself, by the names of the library; NaN and undefined are not said. */
export interface StandardLock {
  supportedOperatingModes: unknown;
  autoRelockTime: unknown;
  /** The last relock time that was not "never", as kept by us. */
  relockSeconds: unknown;
}

export interface AttributeWrite {
  attrId: number;
  dataType: number;
  attrData: number;
}

export interface Plan {
  writes: AttributeWrite[];
  unsupported: (keyof LockConfiguration)[];
  /** To be kept for when stand-open ends. */
  relockSeconds: number | undefined;
}

export function offersPassage(supportedModes: unknown): boolean {
  const modes = integer(supportedModes, 0, 0xff_ff);
  if (modes === undefined) return false;
  // A set bit means supported to some makers and the reverse to others. Every lock has the normal mode, which is bit 0,
  // so that bit tells which it is.
  const isSet = (bit: number) => (modes & (1 << bit)) !== 0;
  return isSet(MODE.passage) === isSet(MODE.normal);
}

export function planFor(wanted: LockConfiguration, lock: StandardLock): Plan {
  const standOpen = standOpenBy(wanted.standOpenEnabled, lock);
  const { accessInternal } = wanted;
  const opensToOthers =
    accessInternal !== null && (accessInternal.doors.length > 0 || accessInternal.interval !== null);
  const holds: [keyof LockConfiguration, boolean][] = [
    ['standOpenEnabled', wanted.standOpenEnabled && standOpen.writes.length === 0],
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
  return { ...standOpen, unsupported: holds.flatMap(([name, isHeld]) => (isHeld ? [name] : [])) };
}

/** By the passage mode; else by not relocking, where the lock relocks by itself. */
function standOpenBy(enabled: boolean, lock: StandardLock): Pick<Plan, 'writes' | 'relockSeconds'> {
  if (offersPassage(lock.supportedOperatingModes)) {
    const attrData = enabled ? MODE.passage : MODE.normal;
    const write = { attrId: DOOR_LOCK_ATTRIBUTE.operatingMode, dataType: TYPE.enum8, attrData };
    return { writes: [write], relockSeconds: undefined };
  }
  const now = integer(lock.autoRelockTime, 0, UINT32_LAST);
  if (now === undefined) return { writes: [], relockSeconds: undefined };
  const usual = now > 0 ? now : (integer(lock.relockSeconds, 1, UINT32_LAST) ?? RELOCK_SECONDS);
  const attrData = enabled ? 0 : usual;
  const write = { attrId: DOOR_LOCK_ATTRIBUTE.autoRelockTime, dataType: TYPE.uint32, attrData };
  return { writes: [write], relockSeconds: usual };
}

const SIZES: Readonly<Record<number, number>> = { [TYPE.enum8]: 1, [TYPE.uint32]: 4 };

/** The ZCL frame that writes attributes, as it is sent (ZCL rev. 8, 2.4.1 and 2.5.3). */
export function writeFrame(writes: readonly AttributeWrite[], tsn: number): Uint8Array {
  const records = writes.map(({ attrId, dataType, attrData }) => {
    const size = SIZES[dataType] ?? 1;
    const bytes = Buffer.alloc(3 + size);
    bytes.writeUInt16LE(attrId);
    bytes.writeUInt8(dataType, 2);
    bytes.writeUIntLE(attrData, 3, size);
    return bytes;
  });
  return Buffer.concat([Buffer.of(0x10, tsn, 0x02), ...records]);
}

/** What the door can be told to do, by what the lock has; names beside those of the lock's own cluster. */
export function capabilitiesOf(told: {
  attribute(name: string): unknown;
  inputs: readonly number[];
  outputs: readonly number[];
}): string[] {
  const counts = (name: string) => (integer(told.attribute(name), 0, 0xff_fe) ?? 0) > 0;
  const has: [string, boolean][] = [
    ['users', counts('numOfTotalUsersSupported')],
    ['pins', counts('numOfPinUsersSupported')],
    ['rfids', counts('numOfRfidUsersSupported')],
    ['weekDaySchedules', counts('numOfWeekDaySchedulesSupportedPerUser')],
    ['autoRelock', integer(told.attribute('autoRelockTime'), 0, UINT32_LAST) !== undefined],
    ['passage', offersPassage(told.attribute('supportedOperatingModes'))],
    ['doorSensor', integer(told.attribute('doorState'), 0, 4) !== undefined],
    ['firmwareUpdate', told.outputs.includes(0x00_19)],
    ['pollControl', told.inputs.includes(0x00_20)],
  ];
  return has.flatMap(([name, isThere]) => (isThere ? [name] : []));
}
