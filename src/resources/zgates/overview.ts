/** Zigbee gateways as the status counts them, and as the doors behind them name them. */
import type { ShownStayedBehind } from './action-schema.ts';
import type { Channels } from './channels.ts';
import type { ZgateContext } from './context.ts';
import { firmwareWarning } from './coordinator-firmware.ts';
import type { Energies } from './energies.ts';
import { type Moves, shownStayedBehind } from './moves.ts';
import { linkOf } from './reach.ts';

/** Of a gateway, for anyone who asks why a door behind it is not reached. */
export interface GatewayFacts {
  name: string | null;
  zigbeeChannel: number | null;
  /** Why its link is down. */
  lastError: string | null;
}

export interface Overview {
  counts(): {
    registered: number;
    connected: number;
    stayedBehind: ({
      deviceId: string;
      name: string | null;
      zigbeeChannel: number | null;
    } & ShownStayedBehind)[];
    warnings: { deviceId: string; name: string | null; message: string }[];
  };
  /** The move of its network to another channel that is being carried out. */
  moving: Moves['underWay'];
  /** undefined: there is no such gateway. */
  facts(deviceId: string): GatewayFacts | undefined;
}

export function overviewOf(
  context: ZgateContext,
  channels: Channels,
  moves: Moves,
  energies: Energies,
): Overview {
  const { table } = context;
  const isConnected = (deviceId: string) => channels.reported.get(deviceId)?.connected === true;
  return {
    counts: () => ({
      registered: table.all.all().length,
      connected: table.all.all().filter(({ device_id }) => isConnected(device_id)).length,
      stayedBehind: table.all.all().flatMap((row) => {
        const behind = shownStayedBehind(moves.stayedBehind(row));
        const { device_id: deviceId, name } = row;
        return behind ? [{ deviceId, name, zigbeeChannel: channels.channelOf(row), ...behind }] : [];
      }),
      warnings: table.all.all().flatMap((row) => {
        const { device_id: deviceId, name } = row;
        const version = channels.reported.get(deviceId)?.state?.platform?.version;
        const busy = energies.shown(deviceId, channels.channelOf(row))?.warning ?? null;
        return [firmwareWarning(version), busy].flatMap((message) =>
          message === null ? [] : [{ deviceId, name, message }],
        );
      }),
    }),
    moving: moves.underWay,
    facts(deviceId) {
      const row = table.zgate.get(deviceId);
      if (!row) return undefined;
      const { lastError = null } = linkOf(row, context) ?? {};
      return { name: row.name, zigbeeChannel: channels.channelOf(row), lastError };
    },
  };
}
