/** What is wrong with the wire to one device (protocol/security-alarms.ts), published when it begins and when it ends. */
import type { DriverLog } from '../contract/driver.ts';
import type { DeviceEvent } from '../rs485/event-queue.ts';
import type { Alarm } from './protocol/reading.ts';

export interface SecurityAlarmEvents {
  set(alarm: Alarm, raised: boolean): void;
  /** Another session says what is wrong with it. */
  clear(): void;
  raised(): readonly Alarm[];
}

export interface SecurityAlarmEventsOptions {
  address: number;
  log: DriverLog;
  addEvent(event: DeviceEvent): void;
  /** undefined: no one knows whose address it is. */
  hwId(): string | undefined;
}

export function openSecurityAlarmEvents({
  address,
  log,
  addEvent,
  hwId: whose,
}: SecurityAlarmEventsOptions): SecurityAlarmEvents {
  const names = new Set<Alarm>();

  function set(alarm: Alarm, raised: boolean): void {
    if (names.has(alarm) === raised) return;
    if (raised) names.add(alarm);
    else names.delete(alarm);
    const hwId = whose();
    log.warn(
      { address, hwId, alarm, raised },
      raised ? 'the wire to a device is suspect' : 'the wire to a device is suspect no more',
    );
    if (hwId !== undefined) addEvent({ kind: 'alarm', hwId, alarm, raised });
  }

  return {
    set,
    clear() {
      for (const alarm of [...names]) set(alarm, false);
    },
    raised: () => [...names],
  };
}
