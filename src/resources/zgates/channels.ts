/** The way of the allowed channels to the gateways, and what gateways say: wanted → applied (drivers/contract/settings.ts). */

import { DriverError, type StateReport } from '../../../drivers/contract/driver.ts';
import {
  type ChannelsApply,
  channelsApplied,
  type GatewayReport,
  gatewayReport,
} from '../../../drivers/contract/settings.ts';
import { openReconciler, type Reconciler } from '../../services/reconcile/reconcile.ts';
import { openReported, type Reported } from '../../services/reconcile/reported.ts';
import type { ZgateContext } from './context.ts';
import { connectionChanged } from './live-events.ts';
import { allowedChannelsOf, type ZgateRow } from './table.ts';

const APPLY_TIMEOUT_MS = 60_000;

export interface Channels {
  readonly reconciler: Reconciler;
  readonly reported: Reported<GatewayReport>;
  /** The network is where it is wanted, and the gateway has received these channels. */
  isInForce(row: ZgateRow): boolean;
  /** The channel the network is on, as was reported last; null: none is formed, as far as is known. */
  channelOf(row: ZgateRow): number | null;
  /** The network has moved there. `version` of the channels that it was sent; those wanted now, if they allow it, when absent. */
  movedTo(deviceId: string, channel: number, version?: number): Promise<void>;
  /** A link reported the state of a subject. */
  report(linkId: string, report: StateReport): void;
  /** A link came up or went down. */
  link(linkId: string, up: boolean): void;
}

/** `move` has the network move to a channel, once and if it may (moves.ts). Rejects with a DriverError. */
export function openChannels(
  context: ZgateContext,
  move: (row: ZgateRow, channel: number) => Promise<void>,
): Channels {
  const { database, table, clock, log, gatewayOfLink } = context;
  const reported = reportedOf(context);

  const channelOf = (row: ZgateRow) =>
    reported.get(row.device_id)?.state?.zigbeeChannel ?? row.zigbee_channel;

  async function movedTo(deviceId: string, zigbeeChannel: number, version?: number): Promise<void> {
    // Now, since it may say otherwise while this is stored.
    const known = reported.get(deviceId);
    if (known?.state) reported.report(deviceId, known.connected, { ...known.state, zigbeeChannel });
    await database.commit(() => {
      const row = table.zgate.get(deviceId);
      if (!row) return;
      const allowed = allowedChannelsOf(row);
      if (allowed.includes(zigbeeChannel))
        table.setApplied.run(version ?? row.channels_version, zigbeeChannel, deviceId);
      else table.setChannel.run(zigbeeChannel, deviceId);
    });
    reconciler.wake(deviceId);
  }

  function isInForce(row: ZgateRow): boolean {
    const allowed = allowedChannelsOf(row);
    if (allowed.length === 0) return true;
    const channel = channelOf(row);
    return (
      row.applied_channels_version === row.channels_version && channel !== null && allowed.includes(channel)
    );
  }

  async function apply(deviceId: string, version: number, signal: AbortSignal): Promise<void> {
    const row = table.zgate.get(deviceId);
    if (row?.channels_version !== version) throw new DriverError('BUSY', 'other channels are wanted');
    if (gatewayOfLink.get(row.link) !== deviceId)
      throw new DriverError('LINK_LOST', 'the configuration names this gateway no more');
    const allowedChannels = allowedChannelsOf(row);
    const [first] = allowedChannels;
    const present = channelOf(row);
    if (first !== undefined && present !== null && !allowedChannels.includes(present))
      return move(row, first);
    const data: ChannelsApply = { allowedChannels };
    const command = { kind: 'applyChannels', data, timeoutMs: APPLY_TIMEOUT_MS, movesNothing: true };
    const answer = channelsApplied.safeParse(await context.field.execute(row.link, command, signal));
    const zigbeeChannel = answer.data?.zigbeeChannel ?? null;
    if (zigbeeChannel === null || !allowedChannels.includes(zigbeeChannel))
      throw new DriverError('BAD_REPLY', 'the gateway did not go to one of these channels');
    await movedTo(deviceId, zigbeeChannel, version);
  }

  const reconciler = openReconciler({
    name: 'the Zigbee channels',
    due: (deviceId) =>
      (deviceId === undefined ? table.all.all() : table.zgate.all(deviceId))
        .filter((row) => !isInForce(row))
        .map((row) => ({ id: row.device_id, version: row.channels_version })),
    apply: ({ id, version }, signal) => apply(id, version, signal),
    clock,
    log,
    ...(context.random && { random: context.random }),
  });

  return {
    reconciler,
    reported,
    isInForce,
    channelOf,
    movedTo,
    ...openHearing(context, { reconciler, reported, isInForce }),
  };
}

/** What links say of their gateways, and that they are gone. */
function openHearing(
  context: ZgateContext,
  { reconciler, reported, isInForce }: Pick<Channels, 'reconciler' | 'reported' | 'isInForce'>,
): Pick<Channels, 'report' | 'link'> {
  const { table, gatewayOfLink, log } = context;
  return {
    report(linkId, { subject, state }) {
      const deviceId = gatewayOfLink.get(linkId);
      const row = deviceId === undefined ? undefined : table.zgate.get(deviceId);
      if (subject !== 'gateway' || !row) return;
      const { data: gateway, error } = gatewayReport.safeParse(state);
      if (!gateway) return log.warn({ link: linkId, err: error }, 'a gateway reports what is no state');
      const wasConnected = reported.get(row.device_id)?.connected ?? false;
      const wasInForce = isInForce(row);
      reported.report(row.device_id, gateway.connected, gateway);
      const isBack = gateway.connected && !wasConnected;
      if (gateway.connected !== wasConnected) context.connectionChanged(row.device_id, gateway.connected);
      if (!isInForce(row) && (isBack || wasInForce)) reconciler.wake(row.device_id);
    },
    link(linkId, up) {
      const deviceId = gatewayOfLink.get(linkId);
      if (up || deviceId === undefined) return;
      const wasConnected = reported.get(deviceId)?.connected ?? false;
      reported.disconnect(deviceId);
      if (wasConnected) context.connectionChanged(deviceId, false);
    },
  };
}

/** What gateways say of themselves. */
function reportedOf({ database, table, clock, events }: ZgateContext): Reported<GatewayReport> {
  return openReported<GatewayReport>({
    database,
    clock,
    known: table.all.all().map((row) => ({
      id: row.device_id,
      connected: row.connected === 1,
      changedAt: row.connected_changed_at,
    })),
    keepsConnected: true,
    facts: ({ hwId, type, platform, apps, zigbeeChannel }) => [hwId, type, platform, apps, zigbeeChannel],
    store(id, { connected, changedAt, state }) {
      // The row is what was published last: one that was lost and is back between two batches has not changed.
      if (table.zgate.get(id)?.connected !== Number(connected))
        events.publish(connectionChanged(id, connected, changedAt));
      table.setConnected.run(Number(connected), changedAt, id);
      if (!state) return;
      const { hwId, type, platform, apps, zigbeeChannel } = state;
      const software = platform && JSON.stringify(platform);
      table.setFacts.run(hwId, type, software, JSON.stringify(apps), zigbeeChannel, id);
    },
    stored: () => events.wake(),
  });
}
