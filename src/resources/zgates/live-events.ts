/** Live events of Zigbee gateways. */
import type { LiveEvent } from '../../services/events/cloud-event.ts';
import type { ShownFailedJoin } from './action-schema.ts';

/** `at` in epoch milliseconds, as the resource shows it in connectionState.changedOn. */
export function connectionChanged(deviceId: string, connected: boolean, at: number): LiveEvent {
  return {
    type: 'gatehouse.zgate.connection.v1',
    source: `zgates/${deviceId}`,
    subject: deviceId,
    data: { deviceId, connected, changedOn: new Date(at).toISOString() },
  };
}

export function joinHasFailed(deviceId: string, failure: ShownFailedJoin): LiveEvent {
  return {
    type: 'gatehouse.zgate.join.v1',
    source: `zgates/${deviceId}`,
    subject: deviceId,
    data: { deviceId, ...failure },
  };
}
