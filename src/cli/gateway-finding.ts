/** What `gatehouse status` and `gatehouse doctor` say of a Zigbee gateway that works and should be looked at. */
import type { Status } from '../services/status/schema.ts';
import type { Finding } from './findings.ts';

export function gatewayFinding(gateway: Status['zgates']['warnings'][number]): Finding {
  const { deviceId, name, message } = gateway;
  return { severity: 'doubtful', subject: `zigbee gateway ${name ?? deviceId}`, text: message };
}
