/** What is known of one lock, and what a frame of it changes. */
import type { Clock } from '../contract/driver.ts';
import { DOOR_STATES, LOCK_STATES, type LockReport } from '../contract/settings.ts';
import { CLUSTER, hasOwnCluster, REPORT_EVERY_S } from './configure.ts';
import { reportOf } from './lock-cluster.ts';
import { familyOf } from './locks/families.ts';
import type { LockFamily } from './locks/family.ts';
import { doorEvent, type EventDetail, type Facts, factsOf, isAttributes } from './messages.ts';
import type { ZigbeeOptions } from './options.ts';
import { DOOR_LOCK, LOCK_CLUSTER, type Radio, type RadioDevice, type RadioEvent } from './radio.ts';
import {
  capabilitiesOf,
  holidaysIn,
  limitsOf,
  offersPassage,
  relockOf,
  requiresPin,
  settingsOf,
} from './standard-lock.ts';
import { field, rssiOfLqi, text } from './values.ts';

/** A lock that missed two reports is not there. */
const SILENT_MS = 2 * REPORT_EVERY_S * 1_000 + 300_000;
const CAPABILITIES_MAX = 64;
const SHARING_MAX = 8;

export interface LockRecord {
  readonly ieee: string;
  /** The one with the Door Lock cluster: what comes from another is not of the lock, whatever it claims. */
  readonly endpoint: number;
  readonly hasOwnCluster: boolean;
  /** The lock measures the signal itself. */
  readonly measuresSignal: boolean;
  /** Undefined: of none that is known. */
  readonly family?: LockFamily | undefined;
  readonly device: RadioDevice;
  report: Partial<LockReport>;
  /** An exchange failed, or the network moved to another channel, and nothing was heard since. */
  isMissed: boolean;
  /** So many of it were heard. */
  frames: number;
  /** When the last of them was, monotonic milliseconds; undefined: none since this start. */
  heardAt: number | undefined;
  /** When it last reported that it was unlocked by radio, monotonic milliseconds. */
  operatedAt: number | undefined;
  doorState: number | undefined;
  /** As it reported it last (messages.ts). */
  lastOperation: number | undefined;
  readonly listeners: Set<(facts: Facts) => void>;
}

/** Undefined: it is no lock, or no one knows yet. `before`: what was known of it, which stays. */
export function recordOf(
  device: RadioDevice | undefined,
  usesOwnCluster: boolean,
  before?: LockRecord,
): LockRecord | undefined {
  const end = device?.endpoints.find(({ inputs }) => inputs.includes(CLUSTER.doorLock));
  if (!device?.interviewed || !end) return undefined;
  const { ieee, lastSeen, softwareBuild } = device;
  const seen = before?.report.lastSeen ?? lastSeen;
  const report: Partial<LockReport> = {
    ...before?.report,
    ...(seen !== undefined && { lastSeen: seen }),
    ...(softwareBuild !== undefined && { zigbeeFirmwareVersion: softwareBuild }),
  };
  return {
    ieee,
    endpoint: end.id,
    device,
    report,
    hasOwnCluster: usesOwnCluster && hasOwnCluster(end.inputs),
    measuresSignal: end.inputs.includes(CLUSTER.diagnostics),
    family: familyOf(device),
    isMissed: before?.isMissed ?? false,
    frames: before?.frames ?? 0,
    heardAt: before?.heardAt,
    operatedAt: before?.operatedAt,
    doorState: before?.doorState,
    lastOperation: before?.lastOperation,
    listeners: before?.listeners ?? new Set(),
  };
}

/** What the daemon knows of locks from earlier starts (options.ts). */
export type Earlier = Pick<ZigbeeOptions, 'lastSeen' | 'heardOn' | 'missed' | 'restore'>;

/** A time ahead of the clock counts for nothing: the clock has been set back since. */
export function takeEarlier({ ieee, report }: LockRecord, { lastSeen }: Earlier, now: number): void {
  const at = lastSeen[ieee] ?? 0;
  if (at > (report.lastSeen ?? 0) && at <= now) report.lastSeen = at;
}

/**
 * The coordinator has begun on this channel: a lock that was last heard on another one has yet to show that it followed.
 * One of which that is not known is taken for heard here. After a restore each has to show that it hears the coordinator
 * that is there now. `earlier`: at the first start of this driver.
 */
export function takeResumed(lock: LockRecord, earlier: Earlier | undefined, channel: number): void {
  const { ieee, report } = lock;
  report.heardOn = earlier?.heardOn[ieee] ?? report.heardOn ?? channel;
  lock.isMissed ||= report.heardOn !== channel;
  lock.isMissed ||= earlier?.restore === true || earlier?.missed.includes(ieee) === true;
}

export function lockReportOf(
  lock: LockRecord,
  radio: Pick<Radio, 'attribute' | 'meta' | 'sharing'>,
  clock: Clock,
): LockReport {
  const connected = !lock.isMissed && silentMs(lock, clock) < SILENT_MS;
  return {
    ...lock.report,
    ...(lock.heardAt !== undefined && { heardAt: lock.heardAt }),
    connected,
    sharesAddressWith: radio.sharing(lock.ieee).slice(0, SHARING_MAX),
    hwId: lock.ieee,
    capabilities: allCapabilities(lock, radio),
    ...(lock.family && { family: lock.family.name }),
    ...optionsOf(lock, radio),
  };
}

/** The clock on the wall counts only for what an earlier start heard: it may be set meanwhile. */
function silentMs({ heardAt, report: { lastSeen } }: LockRecord, clock: Clock): number {
  if (heardAt !== undefined) return clock.monotonic() - heardAt;
  return lastSeen === undefined ? Number.POSITIVE_INFINITY : clock.now() - lastSeen;
}

/** How it relocks and stands open, whether it needs a PIN, and what it keeps of users; absent: not reported yet. */
function optionsOf(
  { ieee, endpoint }: LockRecord,
  radio: Pick<Radio, 'attribute' | 'meta'>,
): Pick<LockReport, 'relock' | 'standOpen' | 'requiresPin' | 'users' | 'settings'> {
  const reported = (name: string) => radio.attribute(ieee, endpoint, DOOR_LOCK, name);
  const meta = radio.meta(ieee);
  const { timedUnlock, standOpenRefused, holidaysUnshown } = meta;
  const holidays = holidaysIn(meta);
  const settings = { ...settingsOf(reported), ...(holidays && !holidaysUnshown && { holidays }) };
  const users = limitsOf({ ieee, endpoint }, radio);
  const relock = relockOf({ timedUnlock, autoRelockTime: reported('autoRelockTime') });
  const needsPin = requiresPin(reported('requirePinForRfOperation'));
  const hasPassage = offersPassage(reported('supportedOperatingModes')) && !holidays?.length;
  const passage = hasPassage ? 'passage' : 'unlocked';
  const standOpen = standOpenRefused === true ? 'none' : passage;
  return {
    ...(relock && { relock }),
    ...(reported('lockState') !== undefined && { standOpen }),
    ...(needsPin !== undefined && { requiresPin: needsPin }),
    ...(Object.keys(users).length > 0 && { users }),
    settings,
  };
}

/** By what the radio keeps of the lock, also from an earlier start. */
export function allCapabilities(
  { ieee, endpoint, device, hasOwnCluster }: LockRecord,
  radio: Pick<Radio, 'attribute'>,
): string[] {
  const standard = capabilitiesOf({
    attribute: (name) => radio.attribute(ieee, endpoint, DOOR_LOCK, name),
    inputs: device.endpoints.flatMap(({ inputs }) => inputs),
    outputs: device.endpoints.flatMap(({ outputs }) => outputs),
  });
  const own = hasOwnCluster
    ? reportOf({ capabilities: radio.attribute(ieee, endpoint, LOCK_CLUSTER, 'capabilities') }).capabilities
    : undefined;
  return [...new Set([...standard, ...(own ?? [])])].slice(0, CAPABILITIES_MAX);
}

/** Applies a frame to the record; returns the events and facts to report. */
export function takeHeard(
  lock: LockRecord,
  event: Extract<RadioEvent, { kind: 'heard' }>,
  clock: Clock,
): { events: EventDetail[]; facts: Facts } {
  if (event.endpoint !== lock.endpoint) return { events: [], facts: {} };
  if (lock.hasOwnCluster && event.cluster === LOCK_CLUSTER && isAttributes(event.type)) {
    Object.assign(lock.report, reportOf(event.data));
  }
  const build = softwareBuildIn(event);
  if (build !== undefined) lock.report.zigbeeFirmwareVersion = build;
  const standard = factsOf(event);
  const facts = withoutRepeated(lock, lock.family?.factsOf?.(event, standard) ?? standard);
  const now = clock.now();
  takeStates(lock.report, facts, { at: now, heardAt: clock.monotonic() });
  if (facts.rssi !== undefined) lock.report.rssi = facts.rssi;
  if (facts.unlockedByRadio) lock.operatedAt = clock.monotonic();
  const events = facts.event ? [facts.event] : [];
  if (facts.doorState !== undefined) {
    const door = doorEvent(lock.doorState, facts.doorState);
    lock.doorState = facts.doorState;
    if (door) events.push(door);
  }
  const isReport = facts.lockState !== undefined && event.type === 'attributeReport';
  if (events.length > 0 || isReport) lock.report.lastEvent = now;
  return { events, facts };
}

/**
 * A lock reports the attribute of its last operation again, such as after it joined. Where the bolt moves with the same
 * frame, it is a new operation. What it says of who moved the bolt holds a confirmation back all the same.
 */
function withoutRepeated(lock: LockRecord, facts: Facts): Facts {
  const { lastOperation, lockState, movedTo } = facts;
  if (lastOperation === undefined) return facts;
  const isSame = lastOperation === lock.lastOperation;
  lock.lastOperation = lastOperation;
  const moves = lockState === movedTo && lock.report.lockState?.value !== LOCK_STATES[lockState ?? -1];
  if (!isSame || moves) return facts;
  const { event: _, movedTo: __, ...left } = facts;
  return left;
}

/** The firmware that the lock says it runs; an update changes it. */
function softwareBuildIn({
  cluster,
  type,
  data,
}: Extract<RadioEvent, { kind: 'heard' }>): string | undefined {
  return cluster === 'genBasic' && isAttributes(type) ? text(field(data, 'swBuildId')) : undefined;
}

/** New batteries: so many percent more than before. */
const RENEWED_PERCENT = 20;

function takeStates(
  report: Partial<LockReport>,
  facts: Facts,
  { at, heardAt }: { at: number; heardAt: number },
): void {
  const lock = LOCK_STATES[facts.lockState ?? -1];
  if (lock) report.lockState = { value: lock, at, heardAt };
  const door = DOOR_STATES[facts.doorState ?? -1];
  if (door) report.doorState = { value: door, at, heardAt };
  const { battery, batteryLow } = facts;
  if (battery === undefined && batteryLow === undefined) return;
  if (battery !== undefined) Object.assign(report, { batteryAt: at, batteryHeardAt: heardAt });
  if (batteryLow !== undefined) report.batteryLowAt = at;
  // A lock that warns by an alarm alone never takes it back.
  const isRenewed = battery !== undefined && battery >= (report.battery ?? 100) + RENEWED_PERCENT;
  if (battery !== undefined) report.battery = battery;
  const isLow = batteryLow ?? (isRenewed ? false : report.batteryLow);
  if (isLow !== undefined) report.batteryLow = isLow;
}

/** Any frame of it; `lqi` of its last hop. That it asked to join is not its word. */
export function takeSeen(
  lock: LockRecord,
  { lqi, spoke }: Extract<RadioEvent, { kind: 'seen' }>,
  { lqiIsLinear, channel }: Pick<Radio, 'lqiIsLinear' | 'channel'>,
  clock: Clock,
): void {
  if (!spoke) return;
  lock.isMissed = false;
  lock.frames += 1;
  lock.heardAt = clock.monotonic();
  lock.report.lastSeen = clock.now();
  lock.report.heardOn = channel;
  for (const hear of lock.listeners) hear({ isThere: true });
  if (lqi === undefined) return;
  lock.report.lqi = lqi;
  const rssi = lqiIsLinear && !lock.measuresSignal ? rssiOfLqi(lqi) : undefined;
  if (rssi !== undefined) lock.report.rssi = rssi;
}
