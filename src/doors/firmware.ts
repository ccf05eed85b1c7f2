/**
 * New firmware for a lock, out of a file of this host, as a job. The lock fetches it in its own time, which on a battery
 * is long; what broke off goes on where it was when it is started again.
 */
import { DriverError, type DriverEvent, type Plain, type StateReport } from '../../drivers/driver.ts';
import type { LockReport } from '../../drivers/settings.ts';
import {
  type CancelUpdate,
  firmwareProgress,
  type LockUpdated,
  lockUpdated,
  type UpdateLock,
} from '../../drivers/zgate.ts';
import type { Clock } from '../clock.ts';
import { GatehouseError } from '../errors.ts';
import type { LinkCommand } from '../execute.ts';
import { firmwarePath } from '../firmware-file.ts';
import type { ReportProgress, StartJob } from '../job-order.ts';
import { type Caller, TECHNICIANS } from '../principal.ts';
import { addressOf, type LockAddress } from './configuration.ts';
import type { LockFirmware } from './lock-schema.ts';
import type { Locks } from './locks.ts';
import { type DoorRow, type DoorTable, existing } from './table.ts';

const COMMAND_TIMEOUT_MS = 30_000;
/** A lock that sleeps between two blocks for this long is not going to fetch the rest. */
const STALLED_MS = 60 * 60_000;
const CHECK_MS = 10_000;

/** What a battery must have left. */
export interface FirmwareBattery {
  /** Millivolts; and percent, of a lock that tells no more than that. */
  batteryMin: number;
  batteryPercentMin: number;
}

export interface FirmwareOptions {
  table: DoorTable;
  clock: Clock;
  locks: Pick<Locks, 'report'>;
  /** Where the files are; undefined: the configuration names no folder. */
  firmwareDirectory: string | undefined;
  firmware: FirmwareBattery;
  gatewayOfLink(linkId: string): string | undefined;
  unreachable(lock: LockAddress): string | undefined;
  startJob: StartJob;
  /** Has the gateway of a lock execute a command; rejects with a DriverError. */
  command(lock: LockAddress, command: LinkCommand, signal: AbortSignal): Promise<Plain>;
}

/** An update under way. */
interface Update {
  percent: number;
  /** When that last grew, monotonic milliseconds. */
  movedAt: number;
  end: PromiseWithResolvers<LockUpdated>;
}

export function openFirmware(options: FirmwareOptions) {
  const { table, clock, startJob, gatewayOfLink } = options;
  /** By gateway and lock. */
  const updates = new Map<string, Update>();
  const busyNetworks = new Set<string>();

  async function update(
    row: DoorRow,
    mac: string,
    file: string,
    progress: ReportProgress,
    signal: AbortSignal,
  ) {
    const lock = addressOf(row);
    const key = `${row.gateway_id}/${mac}`;
    const one: Update = { percent: -1, movedAt: clock.monotonic(), end: Promise.withResolvers() };
    one.end.promise.catch(() => undefined);
    updates.set(key, one);
    const data: UpdateLock = { hwId: mac, file };
    try {
      await options.command(lock, { kind: 'updateLock', data, timeoutMs: COMMAND_TIMEOUT_MS }, signal);
      return await fetched(one, options, progress, signal);
    } catch (error) {
      if (signal.aborted || error instanceof Stalled) {
        const wish: CancelUpdate = { hwId: mac };
        const command = { kind: 'cancelUpdate', data: wish, timeoutMs: COMMAND_TIMEOUT_MS };
        // It ends by itself as well, once the lock asks for nothing any more.
        await options.command(lock, command, new AbortController().signal).catch(() => undefined);
      }
      throw error;
    } finally {
      updates.delete(key);
    }
  }

  return {
    async start(doorId: string, body: LockFirmware, caller: Caller): Promise<unknown> {
      const row = existing(table, doorId);
      const { mac, gateway_id: gatewayId, network_id: networkId } = row;
      if (mac === null)
        throw new GatehouseError('NO_LOCK', 'The door has no lock: have it join, or name its mac.');
      const file = await firmwarePath(body.file, options.firmwareDirectory);
      if (!body.ignoreBattery) assertBattery(options.locks.report(row), options.firmware);
      const unreachable = options.unreachable({ doorId, gatewayId, networkId });
      if (unreachable !== undefined) throw offline(unreachable);
      const network = networkId ?? gatewayId ?? '';
      if (busyNetworks.has(network)) throw new GatehouseError('QUEUE_FULL', ONE_AT_A_TIME);
      busyNetworks.add(network);
      try {
        return await startJob({
          kind: 'lock-firmware',
          object: `door/${doorId}`,
          roles: TECHNICIANS,
          ...caller,
          async run(progress, signal) {
            try {
              const { zigbeeFirmwareVersion } = await update(row, mac, file, progress, signal);
              return { doorId, mac, file: body.file, zigbeeFirmwareVersion };
            } finally {
              busyNetworks.delete(network);
            }
          },
        });
      } catch (error) {
        busyNetworks.delete(network);
        throw error;
      }
    },

    report(linkId: string, { subject, state }: StateReport): void {
      if (!subject.startsWith('firmware:')) return;
      const { data: told } = firmwareProgress.safeParse(state);
      const one = told && updates.get(`${gatewayOfLink(linkId)}/${told.hwId}`);
      if (!one || told.percent <= one.percent) return;
      one.percent = told.percent;
      one.movedAt = clock.monotonic();
    },

    /** The host of a gateway is gone, and what it did with it. */
    linkLost(linkId: string): void {
      for (const [key, { end }] of updates)
        if (key.startsWith(`${gatewayOfLink(linkId)}/`))
          end.reject(new DriverError('LINK_LOST', `link ${linkId} was lost: ${AGAIN}`));
    },

    /** Resolves when it is durable: true, or false when it is none of ours. */
    async event(linkId: string, { kind, data }: DriverEvent): Promise<boolean> {
      const gatewayId = gatewayOfLink(linkId);
      if (kind !== 'lockUpdated' || gatewayId === undefined) return false;
      const { data: told } = lockUpdated.safeParse(data);
      // The end of its job is what is stored; without one nobody waits for it.
      if (told) updates.get(`${gatewayId}/${told.hwId}`)?.end.resolve(told);
      return true;
    },
  };
}

const ONE_AT_A_TIME =
  'A lock of this network is given firmware, and one gets it at a time: wait for that job, or cancel it.';

function offline(reason: string): GatehouseError {
  const message = `Nothing was sent: the lock cannot be reached (${reason}). See to the lock and to its gateway.`;
  return new GatehouseError('DEVICE_OFFLINE', message);
}

const AGAIN = 'start it again, and the lock goes on where it was';

class Stalled extends DriverError {}

/** Resolves once the lock runs the new firmware. Rejects with the reason of the signal, or a DriverError. */
async function fetched(
  one: Update,
  { clock }: FirmwareOptions,
  progress: ReportProgress,
  signal: AbortSignal,
): Promise<LockUpdated> {
  const done = new AbortController();
  const watch = async (): Promise<never> => {
    for (;;) {
      progress({ done: Math.max(0, Math.floor(one.percent)), total: 100 });
      await clock.sleep(CHECK_MS, AbortSignal.any([signal, done.signal]));
      if (clock.monotonic() - one.movedAt >= STALLED_MS)
        throw new Stalled('NO_REPLY', `the lock has fetched nothing for an hour: ${AGAIN}`);
    }
  };
  try {
    const end = await Promise.race([one.end.promise, watch()]);
    progress({ done: Math.max(0, Math.floor(one.percent)), total: 100 });
    if (end.outcome === 'updated') return end;
    const reason = end.reason ?? 'it gave no reason';
    if (end.outcome === 'refused')
      throw new DriverError('REFUSED', `the lock takes no such firmware: ${reason}`);
    throw new DriverError('NO_REPLY', `the update ended (${reason}): ${AGAIN}`);
  } finally {
    done.abort();
  }
}

/** Throws BATTERY_LOW: a lock whose battery ends while it writes its own memory is a lock no more. */
function assertBattery(report: LockReport | undefined, needs: FirmwareBattery): void {
  const low = (message: string) => new GatehouseError('BATTERY_LOW', `Nothing was sent: ${message}`);
  const { dueBatteryUnderLoad, dueBatteryWithoutLoad, battery } = report ?? {};
  const millivolts = dueBatteryUnderLoad ?? dueBatteryWithoutLoad;
  if (millivolts !== undefined) {
    if (millivolts >= needs.batteryMin) return;
    throw low(`the battery has ${millivolts} mV, and ${needs.batteryMin} are asked for. Change it first.`);
  }
  if (battery === undefined)
    throw low('the lock has not told of its battery. If it is good, or on mains, send ignoreBattery.');
  if (battery >= needs.batteryPercentMin) return;
  throw low(`the battery has ${battery} %, and ${needs.batteryPercentMin} are asked for. Change it first.`);
}
