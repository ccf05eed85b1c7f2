/** Why a door cannot be reached: the first cause that explains it, for anyone who is sent to mend it. */
import type { LockReport } from '../../../drivers/contract/settings.ts';
import type { DeviceFacts, Relay } from '../rs485/relays.ts';
import type { DoorContext } from './context.ts';
import type { Connection, Locks, Presence } from './locks.ts';
import type { OfflineReason } from './schema.ts';
import type { ListedRow } from './table.ts';

/** Of the lock of a door, or of the RS-485 device that opens it. */
export interface DoorPresence {
  status: Presence;
  /** Epoch milliseconds. */
  since: number;
}

/** What a reason is made of: the row, but for what is not of interest here. */
export type PlacedRow = Pick<ListedRow, 'mac' | 'gateway_id' | 'lock_left_at' | 'battery_low_told'>;

export interface Offline {
  /** undefined: the door has neither a lock nor a relay. */
  presence(row: PlacedRow, relay: Relay | null): DoorPresence | undefined;
  /** null: the door is connected, or has nothing that could be. */
  reason(row: PlacedRow, relay: Relay | null): OfflineReason | null;
}

export function openOffline(
  context: DoorContext,
  locks: Locks,
  levelOf: (row: PlacedRow) => string,
): Offline {
  const { rs485 } = context;
  return {
    presence(row, relay) {
      if (!relay) return locks.connection(row);
      const device = rs485.facts(relay.deviceId);
      return device && { status: device.connected ? 'connected' : 'disconnected', since: device.changedAt };
    },
    reason(row, relay) {
      const device = relay && rs485.facts(relay.deviceId);
      if (device) return reasonOfDevice(device);
      const connection = locks.connection(row);
      if (!connection || connection.status === 'connected') return null;
      return connection.status === 'unknown'
        ? reasonOfGateway(row, connection, context)
        : reasonOfLock(row, locks.report(row) ?? {}, context, levelOf);
    },
  };
}

function reasonOfDevice({ name, bus, isBusUp, connected, changedAt }: DeviceFacts): OfflineReason | null {
  if (connected) return null;
  const device = name === null ? 'The RS-485 device that opens it' : `The RS-485 device ${name}`;
  if (!isBusUp) return { code: 'BUS_DOWN', message: `Bus ${bus} is down: see its link in the status.` };
  const message = `${device} on bus ${bus} does not answer since ${iso(changedAt)}: check its power and wiring.`;
  return { code: 'NOT_ANSWERING', message };
}

/** No one can say whether the lock is there. */
function reasonOfGateway(row: PlacedRow, { since }: Connection, { zgates }: DoorContext): OfflineReason {
  const { gateway_id: gatewayId } = row;
  if (gatewayId === null)
    return {
      code: 'NO_GATEWAY',
      message: 'No Zigbee gateway is known for its lock: have the lock join one.',
    };
  const gateway = zgates.connection(gatewayId);
  const { name = null, lastError = null } = zgates.facts(gatewayId) ?? {};
  const called = `Zigbee gateway ${name ?? gatewayId}`;
  if (!gateway)
    return {
      code: 'NO_GATEWAY',
      message: `${called} is not in the configuration: have the lock join another.`,
    };
  if (gateway.connected && zgates.moving(gatewayId))
    return {
      code: 'NOT_REPORTED',
      message: `${called} moves its network to another channel: the lock is looked for when it is there.`,
    };
  if (gateway.connected)
    return { code: 'NOT_REPORTED', message: `${called} is connected, and has not reported the lock yet.` };
  const cause = lastError === null ? '' : ` (${lastError})`;
  return { code: 'GATEWAY_LOST', message: `${called} is not connected since ${iso(since)}${cause}.` };
}

function reasonOfLock(
  row: PlacedRow,
  report: Partial<LockReport>,
  { zgates, thresholds }: DoorContext,
  levelOf: (row: PlacedRow) => string,
): OfflineReason {
  if (row.lock_left_at !== null) {
    const message = `The lock left its network at ${iso(row.lock_left_at)}: have it join again, or replace it.`;
    return { code: 'LOCK_LEFT', message };
  }
  const { heardOn, lqi, battery, lastSeen } = report;
  const channel = zgates.facts(row.gateway_id ?? '')?.zigbeeChannel ?? null;
  if (heardOn !== undefined && channel !== null && heardOn !== channel) {
    const message = `The lock was last heard on channel ${heardOn}, and its network is on ${channel}: have it join again.`;
    return { code: 'STAYED_BEHIND', message };
  }
  const heard = lastSeen === undefined ? 'was never heard' : `was last heard at ${iso(lastSeen)}`;
  if (levelOf(row) === 'low') {
    const charge = battery === undefined ? '' : ` (${battery} %)`;
    const message = `The lock ${heard}, its battery low${charge}: change the battery.`;
    return { code: 'BATTERY_LOW', message };
  }
  if (lqi !== undefined && lqi < thresholds.lqiMin) {
    const message = `The lock ${heard}, with a link quality of ${lqi}: bring a router or the gateway nearer.`;
    return { code: 'WEAK_LINK', message };
  }
  return { code: 'NOT_ANSWERING', message: `The lock ${heard}: check its power, then the gateway’s range.` };
}

const iso = (at: number) => new Date(at).toISOString();
