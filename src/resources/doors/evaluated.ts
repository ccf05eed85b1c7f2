/** What a lock has reported, as the door shows it: null where it has reported nothing. */
import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Door } from './schema.ts';

/** The configuration's `doors`: what counts as good. */
export interface Thresholds {
  lqiMin: number;
  /** dBm. */
  rssiMin: number;
  /** Milliseconds, as is the next. */
  expectedCheckIn: number;
  eventWindow: number;
}

type ReportedState = Pick<
  Door,
  | 'bleFirmwareVersion'
  | 'capabilities'
  | 'connectionState'
  | 'dueBatteryUnderLoad'
  | 'dueBatteryWithoutLoad'
  | 'lccVersion'
  | 'lcuFirmwareVersion'
  | 'samVersion'
  | 'zigbeeFirmwareVersion'
>;

/** A lock that missed one check-in may have been unlucky. */
const CHECK_INS_MISSED = 2;

/** A time ahead of the wall clock proves nothing: that clock has been set back since. */
export function reportedState(
  report: Partial<LockReport>,
  thresholds: Thresholds,
  clock: Pick<Clock, 'now' | 'monotonic'>,
): ReportedState {
  const { lqi = null, rssi = null, lastSeen = null, lastContact, lastEvent, heardAt } = report;
  const now = clock.now();
  const seenWithinMs = CHECK_INS_MISSED * thresholds.expectedCheckIn;
  const isWithin = (at: number | null | undefined, windowMs: number) =>
    typeof at === 'number' && at <= now && now - at <= windowMs;
  return {
    bleFirmwareVersion: report.bleFirmwareVersion ?? null,
    capabilities: report.capabilities ?? [],
    connectionState: {
      evaluatedStates: {
        lastReceivedEvent: isWithin(lastEvent, thresholds.eventWindow),
        lqiOK: lqi !== null && lqi >= thresholds.lqiMin,
        recentlySeen:
          heardAt === undefined
            ? isWithin(lastSeen, seenWithinMs)
            : clock.monotonic() - heardAt <= seenWithinMs,
        rssiOK: rssi !== null && rssi >= thresholds.rssiMin,
      },
      lastContact: lastContact === undefined ? null : new Date(lastContact).toISOString(),
      lastEvent: lastEvent === undefined ? null : new Date(lastEvent).toISOString(),
      lastSeen,
      lqi,
      rssi,
    },
    dueBatteryUnderLoad: report.dueBatteryUnderLoad ?? null,
    dueBatteryWithoutLoad: report.dueBatteryWithoutLoad ?? null,
    lccVersion: report.lccVersion ?? null,
    lcuFirmwareVersion: report.lcuFirmwareVersion ?? null,
    samVersion: report.samVersion ?? null,
    zigbeeFirmwareVersion: report.zigbeeFirmwareVersion ?? null,
  };
}
