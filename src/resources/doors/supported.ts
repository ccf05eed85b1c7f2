/** What a lock that is known cannot carry is refused when it is asked for, not stored and shown as unsupported later. */
import { isDeepStrictEqual } from 'node:util';
import type { LockReport } from '../../../drivers/contract/settings.ts';
import { type ErrorDetail, GatehouseError } from '../../platform/errors.ts';
import type { Wanted } from './edit.ts';

/** Those of the manufacturer's cluster (its attribute 0x0030). */
const OWN_CAPABILITIES = ['standOpen', 'online', 'accessInternal', 'outputs', 'schedule', 'relay'];

type Fault = readonly [path: string, message: string];

/**
 * What is wanted already stays: only what this edit adds is refused. A door without a lock, or whose lock has not reported what
 * it can, takes anything; names and numbers are kept by the gateway for every lock. Throws NOT_SUPPORTED.
 */
export function refuseUnsupported(before: Wanted, after: Wanted, report: LockReport | undefined): void {
  const faults = faultsOf(before, after, report ?? {});
  const [first] = faults;
  if (!first) return;
  const details = faults.map(([path, message]): ErrorDetail => ({ path, code: 'NOT_SUPPORTED', message }));
  throw new GatehouseError(
    'NOT_SUPPORTED',
    `Nothing was changed: the lock of this door cannot carry ${faults.map(([path]) => path).join(', ')} (${first[1]}).`,
    { details },
  );
}

function faultsOf(before: Wanted, after: Wanted, report: Partial<LockReport>): Fault[] {
  const faults: Fault[] = [];
  if (after.standOpenEnabled && !before.standOpenEnabled && report.standOpen === 'none')
    faults.push(['/standOpenEnabled', 'it has no way to stand open']);
  const { capabilities } = report;
  if (capabilities === undefined || isUnread(report)) return faults;
  const adds = (value: (wanted: Wanted) => unknown, isHeld: boolean) =>
    isHeld && !isDeepStrictEqual(value(before), value(after));
  const { accessInternal, outputs } = after.options;
  const holdsAccess = accessInternal.doors.length > 0 || accessInternal.interval !== null;
  if (!capabilities.includes('accessInternal') && adds(({ options }) => options.accessInternal, holdsAccess))
    faults.push(['/options/accessInternal', 'it keeps no keys of other doors']);
  if (!capabilities.includes('outputs') && adds(({ options }) => options.outputs, outputs.length > 0))
    faults.push(['/options/outputs', 'it has no outputs']);
  // The users of a lock with week-day schedules are given that of the door.
  const keepsSchedule = ['schedule', 'weekDaySchedules'].some((name) => capabilities.includes(name));
  if (!keepsSchedule && adds(({ scheduleId }) => scheduleId, after.scheduleId !== null))
    faults.push(['/scheduleId', 'it keeps no schedule of a door']);
  return faults;
}

/** It has the manufacturer's cluster, and what that can was not read yet. */
function isUnread({ capabilities = [], ...report }: Partial<LockReport>): boolean {
  const { lccVersion, lcuFirmwareVersion, samVersion, bleFirmwareVersion, dueBatteryUnderLoad } = report;
  const isOwn = [lccVersion, lcuFirmwareVersion, samVersion, bleFirmwareVersion, dueBatteryUnderLoad].some(
    (capability) => capability !== undefined,
  );
  return isOwn && !capabilities.some((name) => OWN_CAPABILITIES.includes(name));
}
