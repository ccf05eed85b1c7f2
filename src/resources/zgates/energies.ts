/** How busy the channels of a network are: measured before a move, once it was formed, and when a technician asks. */
import type { StateReport } from '../../../drivers/contract/driver.ts';
import { DriverError } from '../../../drivers/contract/driver.ts';
import { type Energies as Measured, energies as measured } from '../../../drivers/contract/zgate.ts';
import { type Caller, TECHNICIANS } from '../../platform/principal.ts';
import type { ShownEnergies } from './action-schema.ts';
import type { ZgateContext } from './context.ts';
import { assertReachable } from './reach.ts';
import { existing, type ZgateRow } from './table.ts';

/** Sixteen channels take a second or two. */
const SCAN_TIMEOUT_MS = 15_000;
/** Of 255: from here on frames are lost to others on the channel. zigpy, too, warns above 75 %. */
const BUSY_FROM = 192;

export interface Energies {
  /** Rejects with a DriverError. */
  measure(row: ZgateRow, signal: AbortSignal): Promise<ShownEnergies>;
  /** As a job. */
  scan(deviceId: string, caller: Caller): Promise<unknown>;
  /** As they were measured last; null: not since the gateway started. */
  shown(deviceId: string, channel: number | null): (ShownEnergies & { warning: string | null }) | null;
  /** Why a network should not be there; null: nothing speaks against it. */
  warning(energies: ShownEnergies, channel: number | null): string | null;
  /** A link reported the state of a subject. */
  report(linkId: string, report: StateReport): void;
}

export function openEnergies(options: ZgateContext): Energies {
  const { table, jobs, field, clock, gatewayOfLink, log } = options;
  const last = new Map<string, ShownEnergies>();

  function keep(deviceId: string, { channels }: Measured): ShownEnergies {
    const shown: ShownEnergies = {
      at: new Date(clock.now()).toISOString(),
      channels: channels.map((one) => ({ ...one, isBusy: one.energy >= BUSY_FROM })),
    };
    last.set(deviceId, shown);
    return shown;
  }

  async function measure(row: ZgateRow, signal: AbortSignal): Promise<ShownEnergies> {
    const command = { kind: 'energyScan', data: {}, timeoutMs: SCAN_TIMEOUT_MS };
    const answer = measured.safeParse(await field.execute(row.link, command, signal));
    if (answer.data) return keep(row.device_id, answer.data);
    throw new DriverError('BAD_REPLY', 'the gateway gave no energies');
  }

  return {
    measure,
    warning,
    async scan(deviceId, caller) {
      const row = existing(table, deviceId);
      assertReachable(row, options);
      return jobs.start({
        kind: 'zigbee-energy-scan',
        object: `zgate/${deviceId}`,
        roles: TECHNICIANS,
        ...caller,
        run: async (_, signal) => ({ ...(await measure(row, signal)) }),
      });
    },
    shown(deviceId, channel) {
      const energies = last.get(deviceId);
      return energies ? { ...energies, warning: warning(energies, channel) } : null;
    },
    report(linkId, { subject, state }) {
      const deviceId = gatewayOfLink.get(linkId);
      if (subject !== 'energies' || deviceId === undefined) return;
      const { data } = measured.safeParse(state);
      if (!data) return log.warn({ link: linkId }, 'a gateway reports energies that are none');
      const { channel } = quietest(keep(deviceId, data));
      log.info({ link: linkId, quietest: channel }, 'the channels of a new network were measured');
    },
  };
}

function quietest({ channels }: ShownEnergies): ShownEnergies['channels'][number] {
  return channels.reduce((best, one) => (one.energy < best.energy ? one : best));
}

function warning(energies: ShownEnergies, channel: number | null): string | null {
  const own = energies.channels.find((one) => one.channel === channel);
  if (!own?.isBusy) return null;
  const best = quietest(energies);
  return `channel ${own.channel} is busy (energy ${own.energy} of 255): locks may not be reached there. The quietest is channel ${best.channel} (${best.energy})`;
}
