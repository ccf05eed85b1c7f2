/**
 * New firmware for a lock, out of a file of this host, as a job. The lock fetches it in its own time, which on a battery
 * is long; what broke off goes on where it was when it is started again. One lock of a network at a time: the others wait
 * in the queue of their network (src/services/jobs).
 */
import { z } from 'zod';
import { DriverError, type DriverEvent, type StateReport } from '../../../drivers/contract/driver.ts';
import { readOtaImage } from '../../../drivers/contract/ota-image.ts';
import type { LockReport } from '../../../drivers/contract/settings.ts';
import {
  type CancelUpdate,
  firmwareProgress,
  type LockUpdated,
  lockLeft,
  lockUpdated,
  type UpdateLock,
} from '../../../drivers/contract/zgate.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { fileNotPossible, firmwarePath } from '../../platform/firmware-file.ts';
import type { LinkCommand } from '../../platform/link-command.ts';
import { type Caller, TECHNICIANS } from '../../platform/principal.ts';
import type { JobWork, ReportProgress, ResumeJob } from '../../services/jobs/job-order.ts';
import type { DoorContext, FirmwareBattery } from './context.ts';
import { addressOf, type LockAddress } from './lock-links.ts';
import type { LockFirmware } from './lock-schema.ts';
import type { Locks } from './locks.ts';
import { noLock } from './outcome.ts';
import { type DoorRow, type DoorTable, existing } from './table.ts';

const COMMAND_TIMEOUT_MS = 30_000;
/** A lock that sleeps between two blocks for this long is not going to fetch the rest. */
const STALLED_MS = 60 * 60_000;
const CHECK_MS = 10_000;
/** After a restart links come up one after the other. */
const GATEWAY_WAIT_MS = 10 * 60_000;
/** So long the driver may take to end an update that was cancelled. */
const BUSY_MS = 5 * 60_000;
export const LOCK_FIRMWARE = 'lock-firmware';

/** What is stored of a job, for after a restart. */
const inputOfJob = z.object({
  doorId: z.string(),
  mac: z.string(),
  file: z.string(),
  ignoreBattery: z.boolean(),
});
type Input = z.infer<typeof inputOfJob>;

/** For the gateway over which it goes. */
export interface Upgrade {
  /** Of the job. */
  id: string;
  door: string;
  file: string;
}

interface Transfer {
  mac: string;
  file: string;
  path: string;
  id: string;
  isResumed: boolean;
}

/** An update under way. */
interface Update {
  gatewayId: string | null;
  mac: string;
  shown: Upgrade;
  percent: number;
  /** When that last grew, monotonic milliseconds. */
  movedAt: number;
  end: PromiseWithResolvers<LockUpdated>;
  /** With the reason why its lock is to fetch no more. */
  stop: AbortController;
}

export interface Firmware {
  start(doorId: string, body: LockFirmware, caller: Caller): Promise<unknown>;
  resume(input: unknown, id: string): JobWork;
  /** What a gateway gives to one of its locks now; null: nothing. */
  upgradeOf(gatewayId: string): Upgrade | null;
  /** After the commit: the door may have another lock, or none. */
  lockChanged(doorId: string): void;
  report(linkId: string, report: StateReport): void;
  /** The host of a gateway is gone, and what it did with it. */
  linkLost(linkId: string): void;
  /** True: it is the end of an update, which needs not be stored. */
  event(linkId: string, event: DriverEvent): boolean;
}

export function openFirmware(context: DoorContext, locks: Locks): Firmware {
  const { table, clock, jobs } = context;
  /** By gateway and lock. */
  const updates = new Map<string, Update>();
  /** By door, the lock that waits in the queue of its network, or did. */
  const queued = new Map<string, string>();

  async function update(
    row: DoorRow,
    { mac, file, path, id, isResumed }: Transfer,
    progress: ReportProgress,
    cancelled: AbortSignal,
  ) {
    const lock = addressOf(row);
    const key = `${row.gateway_id}/${mac}`;
    const shown = { id, door: row.id, file };
    const end = Promise.withResolvers<LockUpdated>();
    const stop = new AbortController();
    const signal = AbortSignal.any([cancelled, stop.signal]);
    const gatewayId = row.gateway_id;
    const one: Update = { gatewayId, mac, shown, percent: -1, movedAt: clock.monotonic(), end, stop };
    one.end.promise.catch(() => undefined);
    updates.set(key, one);
    const data: UpdateLock = { hwId: mac, file: path, isResumed };
    try {
      await begun(
        context,
        lock,
        { kind: 'updateLock', data, timeoutMs: COMMAND_TIMEOUT_MS, movesNothing: true },
        signal,
      );
      one.movedAt = clock.monotonic();
      return await fetched(one, context, progress, signal);
    } catch (error) {
      if (signal.aborted || error instanceof Stalled) {
        const wish: CancelUpdate = { hwId: mac };
        const command = { kind: 'cancelUpdate', data: wish, timeoutMs: COMMAND_TIMEOUT_MS };
        // It ends by itself as well, once the lock asks for nothing any more.
        await context.lockLinks.command(lock, command, new AbortController().signal).catch(() => undefined);
      }
      throw error;
    } finally {
      updates.delete(key);
    }
  }

  /** Its turn may come long after it was accepted, or after a restart, when links are not up yet. */
  function workOf(input: Input, id: string | Promise<string>, isResumed: boolean): JobWork {
    const { doorId, mac, file, ignoreBattery } = input;
    queued.set(doorId, mac);
    return async (progress, signal) => {
      queued.delete(doorId);
      await reachable(context, input, signal);
      const path = await imagePath(file, context.firmwareDirectory);
      const jobId = await id;
      // Again: from here to its entry in `updates`, which ends with its lock, nothing may come between.
      const row = assertStillAt(table, doorId, mac);
      if (!ignoreBattery) assertBattery(locks.report(row), context.firmwareBattery);
      const one = { mac, file, path, id: jobId, isResumed };
      const { zigbeeFirmwareVersion } = await update(row, one, progress, signal);
      return { doorId, mac, file, zigbeeFirmwareVersion };
    };
  }

  return {
    async start(doorId, { file, ignoreBattery }, caller) {
      const row = existing(table, doorId);
      const { mac, gateway_id: gatewayId, network_id: networkId } = row;
      if (mac === null) throw noLock();
      await imagePath(file, context.firmwareDirectory);
      if (!ignoreBattery) assertBattery(locks.report(row), context.firmwareBattery);
      const unreachable = context.lockLinks.unreachable(addressOf(row));
      if (unreachable !== undefined) throw offline(unreachable);
      const input = { doorId, mac, file, ignoreBattery };
      const id = Promise.withResolvers<string>();
      const job = await jobs.start({
        kind: LOCK_FIRMWARE,
        object: `door/${doorId}`,
        roles: TECHNICIANS,
        ...caller,
        queue: { name: `${LOCK_FIRMWARE}/${networkId ?? gatewayId}`, input },
        run: workOf(input, id.promise, false),
      });
      id.resolve(job.id);
      return job;
    },
    resume: ((input, id) => workOf(inputOfJob.parse(input), id, true)) satisfies ResumeJob,

    upgradeOf(gatewayId) {
      return [...updates.values()].find((one) => one.gatewayId === gatewayId)?.shown ?? null;
    },

    ...takeEvents(updates, queued, context),
  };
}

/** What gateways and their links say of updates, and doors that get another lock. */
function takeEvents(
  updates: ReadonlyMap<string, Update>,
  queued: Map<string, string>,
  { clock, zgates, table, jobs }: DoorContext,
) {
  function failQueued(doorId: string, error: GatehouseError | DriverError): void {
    queued.delete(doorId);
    void jobs.failQueued(LOCK_FIRMWARE, `door/${doorId}`, error);
  }

  return {
    lockChanged(doorId: string): void {
      for (const { shown, stop, mac } of updates.values())
        if (shown.door === doorId && table.door.get(doorId)?.mac !== mac) stop.abort(otherLock(doorId, mac));
      const mac = queued.get(doorId);
      if (mac !== undefined && table.door.get(doorId)?.mac !== mac)
        failQueued(doorId, otherLock(doorId, mac));
    },

    report(linkId: string, { subject, state }: StateReport): void {
      if (!subject.startsWith('firmware:')) return;
      const { data: progress } = firmwareProgress.safeParse(state);
      const one = progress && updates.get(`${zgates.ofLink(linkId)}/${progress.hwId}`);
      if (!one || progress.percent <= one.percent) return;
      one.percent = progress.percent;
      one.movedAt = clock.monotonic();
    },

    linkLost(linkId: string): void {
      for (const [key, { end }] of updates)
        if (key.startsWith(`${zgates.ofLink(linkId)}/`))
          end.reject(new DriverError('LINK_LOST', `link ${linkId} was lost: ${AGAIN}`));
    },

    event(linkId: string, { kind, data }: DriverEvent): boolean {
      const gatewayId = zgates.ofLink(linkId);
      if (gatewayId === undefined) return false;
      const { data: gone } = kind === 'lockLeft' ? lockLeft.safeParse(data) : {};
      if (gone) {
        updates.get(`${gatewayId}/${gone.hwId}`)?.stop.abort(lockGone(gone.hwId));
        for (const [doorId, mac] of queued)
          if (mac === gone.hwId && table.door.get(doorId)?.gateway_id === gatewayId)
            failQueued(doorId, lockGone(mac));
      }
      if (kind !== 'lockUpdated') return false;
      const { data: updated } = lockUpdated.safeParse(data);
      // The end of its job is what is stored; without one no one waits for it.
      if (updated) updates.get(`${gatewayId}/${updated.hwId}`)?.end.resolve(updated);
      return true;
    },
  };
}

/** Throws VALIDATION_FAILED: not there, or no whole image. */
async function imagePath(file: string, directory: string | undefined): Promise<string> {
  const path = await firmwarePath(file, directory);
  if (await readOtaImage(path)) return path;
  throw fileNotPossible(
    'is no Zigbee OTA file, or is damaged: put the file of the manufacturer there again, whole',
  );
}

/** Throws NOT_FOUND or NO_LOCK. */
function assertStillAt(table: DoorTable, doorId: string, mac: string): DoorRow {
  const row = existing(table, doorId);
  if (row.mac !== mac) throw otherLock(doorId, mac);
  return row;
}

function otherLock(doorId: string, mac: string): GatehouseError {
  const message = `Door ${doorId} does not have the lock ${mac} any more: the lock is given no firmware. Start it again for the lock that the door has now.`;
  return new GatehouseError('NO_LOCK', message);
}

function lockGone(mac: string): DriverError {
  const message = `the lock ${mac} has left its network: let it join again, then ${AGAIN}`;
  return new DriverError('DEVICE_OFFLINE', message);
}

/** Resolves when a command can be sent to the gateway of the lock. Rejects when that takes too long, with the signal, or with NO_LOCK. */
async function reachable(
  { table, clock, lockLinks }: DoorContext,
  { doorId, mac }: Input,
  signal: AbortSignal,
) {
  const end = clock.monotonic() + GATEWAY_WAIT_MS;
  for (;;) {
    const reason = lockLinks.unreachable(addressOf(assertStillAt(table, doorId, mac)));
    if (reason === undefined) return;
    if (clock.monotonic() >= end) throw offline(reason);
    await clock.sleep(CHECK_MS, signal);
  }
}

/** The driver may not have ended yet what was cancelled just before. */
async function begun(
  { clock, lockLinks }: DoorContext,
  lock: LockAddress,
  update: LinkCommand,
  signal: AbortSignal,
): Promise<void> {
  const end = clock.monotonic() + BUSY_MS;
  for (;;) {
    try {
      await lockLinks.command(lock, update, signal);
      return;
    } catch (error) {
      const isBusy = error instanceof DriverError && error.code === 'BUSY';
      if (!isBusy || signal.aborted || clock.monotonic() >= end) throw error;
      await clock.sleep(CHECK_MS, signal);
    }
  }
}

function offline(reason: string): GatehouseError {
  const message = `Nothing was sent: the lock cannot be reached (${reason}). See to the lock and to its gateway.`;
  return new GatehouseError('DEVICE_OFFLINE', message);
}

const AGAIN = 'start it again, and the lock goes on where it was';

class Stalled extends DriverError {}

/** Resolves once the lock runs the new firmware. Rejects with the reason of the signal, or a DriverError. */
async function fetched(
  one: Update,
  { clock }: DoorContext,
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
    throw low(
      'the lock has not reported its battery. If the battery is good, or the lock on mains, send ignoreBattery.',
    );
  if (battery >= needs.batteryPercentMin) return;
  throw low(`the battery has ${battery} %, and ${needs.batteryPercentMin} are asked for. Change it first.`);
}
