/** The live events of RS-485 devices (GET /events). */
import type { AlarmEvent, CredentialEvent, InputEvent } from '../../../drivers/contract/rs485.ts';
import type { LiveEvent } from '../../services/events/cloud-event.ts';

/** `at` in epoch milliseconds, as the resource shows it in connectionState.changedOn. */
export function connectionChanged(deviceId: string, connected: boolean, at: number): LiveEvent {
  return ofDevice(deviceId, 'connection', { connected, changedOn: new Date(at).toISOString() });
}

/** An input became active, or several times between two readings. */
export function inputActivated(deviceId: string, event: InputEvent): LiveEvent {
  const { hwId: _, since: __, at, ...facts } = event;
  return ofDevice(deviceId, 'input', { ...facts, at: new Date(at).toISOString() });
}

export function alarmChanged(deviceId: string, { alarm, raised, at }: AlarmEvent): LiveEvent {
  return ofDevice(deviceId, 'alarm', { alarm, raised, at: new Date(at).toISOString() });
}

/** A card was presented, or keys were pressed; of keys only the number is published. `doorId`: that of its device. */
export function credentialShown(deviceId: string, event: CredentialEvent, doorId: string | null): LiveEvent {
  const { hwId: _, since: __, at, ...facts } = event;
  return ofDevice(deviceId, 'credential', { doorId, ...facts, at: new Date(at).toISOString() });
}

function ofDevice(deviceId: string, what: string, data: Record<string, unknown>): LiveEvent {
  return {
    type: `gatehouse.rs485.${what}.v1`,
    source: `rs485/${deviceId}`,
    subject: deviceId,
    data: { deviceId, ...data },
  };
}
