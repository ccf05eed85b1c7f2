/** What a lock shows of itself: bolt, door and battery, with their ages; what of that live readers get. */
import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { Clock } from '../../platform/clock.ts';
import type { LiveEvent } from '../../services/events/cloud-event.ts';
import type { DoorContext } from './context.ts';
import type { DoorQuery } from './list-schema.ts';
import { doorAlarm, lockStateChanged } from './live-events.ts';
import type { LockPlace, Locks } from './locks.ts';
import type { DoorState } from './schema.ts';
import type { DoorRow } from './table.ts';

/** Weeks before an alkaline cell fails under the load of a bolt. A lock that raises its own alarm is believed at any charge. */
const LOW_PERCENT = 20;
/** A charge that is read again differs by a little: so much more ends the alarm. */
const GOOD_PERCENT = 25;

type BatteryLevel = 'low' | 'ok' | 'unknown';

/** `wasLow`: as it was published last. */
function batteryLevelOf(report: Partial<LockReport> | undefined, wasLow: boolean): BatteryLevel {
  const { battery, batteryLow } = report ?? {};
  if (batteryLow === true) return 'low';
  if (battery !== undefined) return battery < (wasLow ? GOOD_PERCENT : LOW_PERCENT) ? 'low' : 'ok';
  return batteryLow === false ? 'ok' : 'unknown';
}

/** What decided the level, in the order of batteryLevelOf. */
function alarmReason({ battery, batteryLow }: LockReport, isLow: boolean): string {
  const percent = battery === undefined ? undefined : `${battery} %`;
  if (batteryLow === true)
    return `the lock raised its battery alarm${percent ? `; the last reported percentage is ${percent}` : ''}`;
  if (percent === undefined) return 'the lock reports no battery alarm';
  return isLow || batteryLow === undefined
    ? `the lock reports ${percent}`
    : `the lock reports ${percent} and no battery alarm`;
}

type LeveledRow = Pick<DoorRow, 'mac' | 'gateway_id' | 'battery_low_told'>;

export interface Conditions {
  /**
   * Inside a commit job, after a door got another lock or lost its lock: what the former lock showed is not shown any more.
   * `before`: the row of the door as it was.
   */
  lockChanged(before: DoorRow): void;
  /** A lock sent a report; `before` is the one before it. */
  reported(place: LockPlace, before: LockReport | undefined, after: LockReport): void;
  levelOf(row: LeveledRow): BatteryLevel;
  /** The charge that the lock reported last. */
  percentOf(row: Pick<DoorRow, 'mac' | 'gateway_id'>): number | undefined;
  matches(row: LeveledRow, query: DoorQuery): boolean;
  /** For …/state. */
  shown(row: DoorRow): Pick<DoorState, 'lockState' | 'doorState' | 'battery' | 'setupFaults'>;
}

export function openConditions(
  { database, table, events, clock, log }: DoorContext,
  locks: Locks,
): Conditions {
  const openedAt = clock.monotonic();
  const levelOf = (row: LeveledRow) => batteryLevelOf(locks.report(row), row.battery_low_told === 1);

  /** Inside a commit job. */
  function batteryNews(row: DoorRow, report: LockReport): LiveEvent | undefined {
    const level = levelOf(row);
    const isLow = level === 'low';
    if (level === 'unknown' || isLow === (row.battery_low_told === 1)) return undefined;
    table.setBatteryLowPublished.run(Number(isLow), row.id);
    return doorAlarm(row.id, 'batteryLow', isLow, alarmReason(report, isLow));
  }

  return {
    lockChanged(before) {
      const row = table.door.get(before.id);
      const report = row && locks.report(row);
      const isLow = batteryLevelOf(report, false) === 'low';
      if (isLow !== (before.battery_low_told === 1)) {
        table.setBatteryLowPublished.run(Number(isLow), before.id);
        const reason = report && isLow ? alarmReason(report, isLow) : endOfLock(row);
        events.publish(doorAlarm(before.id, 'batteryLow', isLow, reason));
      }
      const former = locks.report(before);
      const isOther = (name: 'lockState' | 'doorState') => former?.[name]?.value !== report?.[name]?.value;
      if (row && (isOther('lockState') || isOther('doorState')))
        events.publish(lockStateChanged(row.id, report ?? {}));
    },
    reported({ mac }, before, after) {
      const moved = movedIn(before, after);
      const row = table.byMac.get(mac);
      if (!row) return;
      const level = levelOf(row);
      const isBatteryNews = level !== 'unknown' && (level === 'low') !== (row.battery_low_told === 1);
      if (!moved && !isBatteryNews) return;
      const stored = database.commit(() => {
        const present = table.byMac.get(mac);
        if (!present) return;
        if (moved) events.publish(lockStateChanged(present.id, after));
        const alarm = batteryNews(present, after);
        if (alarm) events.publish(alarm);
      }, 'telemetry');
      stored.then(events.wake, (error) =>
        log.warn({ lock: mac, err: error }, 'a change of a lock was not published to live readers'),
      );
    },
    levelOf,
    percentOf: (row) => locks.report(row)?.battery,
    matches(row, { battery, lockState, doorState }) {
      const report = locks.report(row);
      return (
        (battery === undefined || levelOf(row) === battery) &&
        (lockState === undefined || (report?.lockState?.value ?? 'unknown') === lockState) &&
        (doorState === undefined || (report?.doorState?.value ?? 'unknown') === doorState)
      );
    },
    shown(row) {
      const report = locks.report(row);
      const iso = (at: number) => new Date(at).toISOString();
      const aged = (at: number, heardAt: number | undefined) => ({
        at: iso(at),
        age: ageOf({ at, heardAt }, openedAt, clock),
      });
      const withAge = <Value>(
        state: { value: Value; at: number; heardAt?: number | undefined } | undefined,
      ) => (state ? { value: state.value, ...aged(state.at, state.heardAt) } : null);
      const { battery, batteryLow, batteryAt, batteryHeardAt, batteryLowAt } = report ?? {};
      return {
        lockState: withAge(report?.lockState),
        doorState: withAge(report?.doorState),
        battery:
          battery === undefined && batteryLow === undefined
            ? null
            : {
                percent: battery ?? null,
                low: levelOf(row) === 'low',
                ...(batteryAt === undefined ? { at: null, age: null } : aged(batteryAt, batteryHeardAt)),
                alarmAt: batteryLowAt === undefined ? null : iso(batteryLowAt),
              },
        setupFaults: (report?.setupFaults ?? []).map(({ at, ...fault }) => ({ ...fault, at: iso(at) })),
      };
    },
  };
}

/** What was reported before this start is at least as old as this run: the wall clock may have been set back since. */
function ageOf(heard: { at: number; heardAt: number | undefined }, openedAt: number, clock: Clock): number {
  const since = (monotonic: number) => Math.max(0, Math.floor(clock.monotonic() - monotonic));
  return heard.heardAt === undefined
    ? Math.max(clock.now() - heard.at, since(openedAt))
    : since(heard.heardAt);
}

function endOfLock(row: DoorRow | undefined): string {
  if (!row) return 'the door was removed';
  return row.mac === null ? 'the door has no lock any more' : 'the door has another lock';
}

/** What is read for the first time has not changed. */
function movedIn(before: LockReport | undefined, after: LockReport): boolean {
  const isMoved = (name: 'lockState' | 'doorState') =>
    before?.[name] !== undefined && after[name] !== undefined && before[name].value !== after[name].value;
  return isMoved('lockState') || isMoved('doorState');
}
