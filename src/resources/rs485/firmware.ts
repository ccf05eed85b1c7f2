/**
 * New firmware for an OSDP device, out of a file of this host, as a job: one device of a bus at a time, the others wait in the
 * queue of the bus (src/services/jobs). What the device has confirmed is kept: a device, a host or a gateway that was lost
 * goes on from there, and so does a job that is started again.
 */
import { z } from 'zod';
import { DriverError, type DriverErrorCode } from '../../../drivers/contract/driver.ts';
import {
  type AbortFile,
  FILE_PIECE_MAX,
  type FileSent,
  fileSent,
  type SendFile,
} from '../../../drivers/contract/osdp.ts';
import type { Rs485Report } from '../../../drivers/contract/settings.ts';
import { GatehouseError } from '../../platform/errors.ts';
import { fileNotPossible } from '../../platform/firmware-file.ts';
import type { Caller, Role } from '../../platform/principal.ts';
import type { JobWork, ReportProgress, ResumeJob } from '../../services/jobs/job-order.ts';
import type { Reported } from '../../services/reconcile/reported.ts';
import type { FirmwareBody } from './bus-schema.ts';
import type { Buses } from './buses.ts';
import type { Rs485Context } from './context.ts';
import { assertFits, type FirmwareImage, readImage } from './firmware-image.ts';
import type { Rs485Device } from './schema.ts';
import { answering, existing, type Rs485Row, type Rs485Table } from './table.ts';

export const OSDP_FIRMWARE = 'osdp-firmware';
export const UPDATERS: readonly [Role, ...Role[]] = ['service-tool'];

/** A piece takes two seconds; the device may want to write for two minutes after the last. */
const PIECE_TIMEOUT_MS = 200_000;
const ABORT_TIMEOUT_MS = 10_000;
/** A device that was away for so long needs a person. */
const STALLED_MS = 10 * 60_000;
/** It forgets again and again: it restarts while it writes, or takes two of the same name for one. */
const FORGETS_MAX = 3;
const LOOK_MS = 1_000;
/** A device that restarts with it is there again by then. */
const RETURN_MS = 120_000;
/** What a power cut may cost of what was sent: a device may refuse what it has already, and begin again. */
const KEEP_EVERY_MS = 5_000;
/** Everything else is for good. */
const PASSING: readonly DriverErrorCode[] = [
  'LINK_LOST',
  'DEVICE_OFFLINE',
  'NO_REPLY',
  'DEADLINE_PASSED',
  'BUSY',
  'OUTCOME_UNKNOWN',
];
const AGAIN = 'start it again, and it goes on where it was';

export type UpgradeJobInfo = NonNullable<Rs485Device['upgradeJobInfo']>;

type Heard = Pick<Reported<Rs485Report>, 'get'>;

/** What is stored of a job, for after a restart. */
const inputOfJob = z.object({ deviceId: z.string(), hwId: z.string(), file: z.string(), sha256: z.string() });
type Input = z.infer<typeof inputOfJob>;

export interface Firmware {
  /** What the device is being given; null: nothing. */
  upgradeOf(deviceId: string): UpgradeJobInfo | null;
  /** Resolves with the job. Throws a GatehouseError. */
  start(deviceId: string, { file }: FirmwareBody, caller: Caller): Promise<unknown>;
  resume(input: unknown, id: string): JobWork;
}

export function openFirmware(context: Rs485Context, buses: Buses, reported: Heard): Firmware {
  const { table, jobs, firmwareDirectory } = context;
  const upgrades = new Map<string, UpgradeJobInfo>();

  /** Throws VALIDATION_FAILED. */
  async function imageFor({ bus, hw_id }: Rs485Row, file: string): Promise<FirmwareImage> {
    buses.assertOsdp(bus, 'OSDP devices take firmware over it');
    const image = await readImage(file, firmwareDirectory);
    assertFits(image, hw_id);
    return image;
  }

  /** Its turn may come hours after it was accepted, or after a restart. */
  function workOf(input: Input, id: string | Promise<string>): JobWork {
    const { deviceId, file } = input;
    return async (progress, signal, conclude) => {
      const image = await imageFor(assertStill(table, input), file);
      if (image.manifest.sha256 !== input.sha256)
        throw fileNotPossible('has changed since the job was ordered: order it again');
      const { version, apps } = image.manifest;
      upgrades.set(deviceId, { id: await id, app: apps, platform: { version } });
      try {
        const row = assertStill(table, input);
        const result = await update(context, reported, { row, image, progress, signal });
        conclude({ outcome: 'done', detail: { platformVersion: result.platformVersion } });
        return result;
      } finally {
        upgrades.delete(deviceId);
      }
    };
  }

  return {
    upgradeOf: (deviceId) => upgrades.get(deviceId) ?? null,
    async start(deviceId, { file }, caller) {
      const row = existing(table, deviceId);
      const { bus, hw_id: hwId } = row;
      const { version, sha256 } = (await imageFor(row, file)).manifest;
      answering(row, reported.get(deviceId));
      const input = { deviceId, hwId, file, sha256 };
      const id = Promise.withResolvers<string>();
      const object = `rs485/${deviceId}`;
      const job = await jobs.start({
        kind: OSDP_FIRMWARE,
        object,
        roles: UPDATERS,
        ...caller,
        queue: { name: `${OSDP_FIRMWARE}/${bus}`, input },
        intent: { action: 'rs485.firmware', object, detail: { hwId, file, version, sha256 } },
        run: workOf(input, id.promise),
      });
      id.resolve((job as { id: string }).id);
      return job;
    },
    resume: ((input, id) => workOf(inputOfJob.parse(input), id)) satisfies ResumeJob,
  };
}

/** Throws NOT_FOUND or DEVICE_OFFLINE. */
function assertStill(table: Rs485Table, { deviceId, hwId }: Input): Rs485Row {
  const row = existing(table, deviceId);
  if (row.hw_id === hwId) return row;
  const message = `${hwId} is not the device ${deviceId} any more: nothing was sent.`;
  throw new GatehouseError('DEVICE_OFFLINE', message);
}

interface Update {
  row: Rs485Row;
  image: FirmwareImage;
  progress: ReportProgress;
  signal: AbortSignal;
}

async function update(context: Rs485Context, reported: Heard, one: Update): Promise<Record<string, unknown>> {
  const { row, image } = one;
  const { version } = image.manifest;
  const before = versionOf(reported, row);
  const isRestarting = await bring(context, reported, one, before);
  const platformVersion = await returned(context, reported, one, isRestarting);
  return { deviceId: row.device_id, hwId: row.hw_id, file: image.file, version, platformVersion };
}

function versionOf(reported: Heard, { device_id }: Rs485Row): string | null {
  return reported.get(device_id)?.state?.platform?.version ?? null;
}

/** Until the device has all of it. Whether it restarts with it now. */
async function bring(
  context: Rs485Context,
  reported: Heard,
  one: Update,
  before: string | null,
): Promise<boolean> {
  const { clock } = context;
  const { row, image, progress, signal } = one;
  const total = image.bytes.length;
  const store = openStore(context, one);
  const at = { offset: store.offset(), messageMax: undefined as number | undefined };
  let movedAt = clock.monotonic();
  let forgets = 0;
  try {
    for (;;) {
      progress({ done: at.offset, total });
      const isNew = versionOf(reported, row) === image.manifest.version && image.manifest.version !== before;
      // It was lost after its last byte, and is there again as what it was to be.
      if (at.offset === total && isNew) break;
      if (clock.monotonic() - movedAt >= STALLED_MS)
        throw new DriverError('NO_REPLY', `the device has taken nothing for ten minutes: ${AGAIN}`);
      const sent = reported.get(row.device_id)?.connected ? await piece(context, one, at) : undefined;
      if (sent) {
        if (sent.offset > at.offset) movedAt = clock.monotonic();
        if (sent.offset < at.offset) forgets += 1;
        if (forgets > FORGETS_MAX)
          throw new DriverError('REFUSED', 'the device forgets again and again what it has of the file');
        Object.assign(at, { offset: sent.offset, messageMax: sent.messageMax });
        await store.keep(at.offset);
        if (sent.stage === 'done' || sent.stage === 'restarting') {
          progress({ done: total, total });
          await store.forget();
          return sent.stage === 'restarting';
        }
      }
      if (sent?.stage !== 'sending') await clock.sleep(LOOK_MS, signal);
      signal.throwIfAborted();
    }
    await store.forget();
    return true;
  } catch (error) {
    const { forget, write } = store;
    // What is stored only saves time.
    await breakOff(context, one, error, { forget, keep: () => write(at.offset) }).catch(() => undefined);
    throw error;
  }
}

/** Cancelled, or for good: the device may forget it. Otherwise somebody may go on with it. */
async function breakOff(
  { field }: Rs485Context,
  { row, signal }: Update,
  error: unknown,
  store: { forget(): Promise<unknown>; keep(): Promise<unknown> },
): Promise<void> {
  const isCancelled = signal.aborted && (signal.reason as { code?: unknown }).code === 'CANCELLED';
  const isForGood = !signal.aborted && error instanceof DriverError && !PASSING.includes(error.code);
  if (!isCancelled && !isForGood) return void (await store.keep());
  await store.forget();
  const data: AbortFile = { hwId: row.hw_id };
  const command = { kind: 'abortFile', data, timeoutMs: ABORT_TIMEOUT_MS };
  await field.execute(row.bus, command, new AbortController().signal).catch(() => undefined);
}

/** undefined: it was lost before it could say anything. Throws what is for good. */
async function piece(
  { field }: Rs485Context,
  { row, image, signal }: Update,
  { offset, messageMax }: { offset: number; messageMax: number | undefined },
): Promise<FileSent | undefined> {
  const data = {
    hwId: row.hw_id,
    type: image.manifest.fileType,
    total: image.bytes.length,
    offset,
    data: new Uint8Array(image.bytes.subarray(offset, offset + FILE_PIECE_MAX)),
    ...(messageMax !== undefined && { messageMax }),
  } satisfies SendFile;
  try {
    const command = { kind: 'sendFile', data, timeoutMs: PIECE_TIMEOUT_MS, movesNothing: true };
    return fileSent.parse(await field.execute(row.bus, command, signal));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof DriverError && PASSING.includes(error.code)) return undefined;
    throw error;
  }
}

/** The version that it reports now: the new one, once it is back with that, else the one that it reports after some time. */
async function returned(
  { clock }: Rs485Context,
  reported: Heard,
  { row, image, signal }: Update,
  isRestarting: boolean,
): Promise<string | null> {
  const isBack = () => reported.get(row.device_id)?.connected === true;
  const isNew = () => isBack() && versionOf(reported, row) === image.manifest.version;
  const end = clock.monotonic() + (isRestarting ? RETURN_MS : 0);
  while (!isNew() && clock.monotonic() < end) await clock.sleep(LOOK_MS, signal);
  if (isBack()) return versionOf(reported, row);
  throw new DriverError('NO_REPLY', 'the device has all of the file, and does not answer since');
}

/** How far it got, beyond this process. */
function openStore({ database, table, clock }: Rs485Context, { row, image }: Update) {
  const { sha256 } = image.manifest;
  let keptAt = clock.monotonic();
  const write = (offset: number) =>
    database.commit(() => void table.keepTransfer.run(row.bus, row.hw_id, sha256, offset, clock.now()));
  const forget = () => database.commit(() => void table.forgetTransfer.run(row.bus, row.hw_id));
  return {
    forget,
    write,
    /** Where to go on. */
    offset(): number {
      const kept = table.transfer.get(row.bus, row.hw_id);
      return kept?.sha256 === sha256 && kept.offset <= image.bytes.length ? kept.offset : 0;
    },
    /** Now and then. */
    async keep(offset: number): Promise<void> {
      if (clock.monotonic() - keptAt < KEEP_EVERY_MS) return;
      keptAt = clock.monotonic();
      await write(offset);
    },
  };
}
