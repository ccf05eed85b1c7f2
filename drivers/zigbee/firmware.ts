/** New firmware for one lock at a time, from a file of this host. It fetches the file in its own time, which is long. */
import { readFile, stat } from 'node:fs/promises';
import { type DriverContext, DriverError, type Plain } from '../driver.ts';
import type { FirmwareProgress, LockUpdated } from '../zgate.ts';
import type { Configurer } from './configure.ts';
import { type FirmwareImage, imageOf, whyNot } from './firmware-image.ts';
import type { Lock } from './locks.ts';
import type { Outbox } from './outbox.ts';
import type { Radio } from './radio.ts';
import { redact } from './redact.ts';
import { text } from './values.ts';

/** Ten times what the memory of a lock holds. */
const FILE_MAX_BYTES = 16_000_000;
/** genBasic, swBuildId. */
const SOFTWARE_BUILD = 0x40_00;
const REASON_MAX = 128;

export interface Firmware {
  /** Resolves once it has begun. Rejects with BUSY, or INVALID_COMMAND when there is no such file, or it is no firmware. */
  begin(lock: Lock, file: string): Promise<void>;
  cancel(ieee: string): void;
}

export interface FirmwareOptions {
  radio(): Radio;
  configurer: Configurer;
  context: Pick<DriverContext, 'log' | 'report'>;
  outbox: Outbox;
}

export function openFirmware({ radio, configurer, context, outbox }: FirmwareOptions): Firmware {
  let current: { ieee: string; cancelled: boolean } | undefined;

  function progress(hwId: string, percent: number, remainingSeconds: number): void {
    const state: FirmwareProgress = {
      hwId,
      percent: Math.min(100, Math.max(0, percent || 0)),
      remainingSeconds: Number.isFinite(remainingSeconds) && remainingSeconds >= 0 ? remainingSeconds : null,
    };
    context.report({ subject: `firmware:${hwId}`, state });
  }

  /** The library ends only what it sends: not while the lock has yet to ask, nor in the moment in which it tells of that. */
  function endSending(ieee: string): void {
    Promise.resolve()
      .then(() => radio().abortUpdate(ieee))
      .catch((error) => context.log.debug({ lock: ieee, err: error }, 'there is no update to end any more'));
  }

  async function update(
    { ieee }: Lock,
    file: string,
    image: FirmwareImage,
  ): Promise<Pick<LockUpdated, 'outcome' | 'reason'>> {
    if (current?.cancelled) return { outcome: 'cancelled', reason: null };
    try {
      const tell = (percent: number, left: number) => {
        progress(ieee, percent, left);
        if (current?.cancelled) endSending(ieee);
      };
      const { updated, present } = await radio().update(ieee, { file, ...image }, tell);
      if (updated) return { outcome: 'updated', reason: null };
      return { outcome: 'refused', reason: whyNot(image, present) };
    } catch (error) {
      if (current?.cancelled) return { outcome: 'cancelled', reason: null };
      const reason = redact(error instanceof Error ? error.message : 'no reason').slice(0, REASON_MAX);
      // The library names a frame.
      context.log.info({ lock: ieee, reason }, 'an update of firmware ended');
      return { outcome: 'failed', reason: 'the lock did not answer, or asked for nothing more' };
    }
  }

  async function run(lock: Lock, file: string, image: FirmwareImage): Promise<void> {
    const { ieee, endpoint } = lock;
    const end = await update(lock, file, image);
    if (end.outcome === 'updated') await configurer.read({ ieee, endpoint }, 'genBasic', [SOFTWARE_BUILD]);
    const zigbeeFirmwareVersion = text(radio().device(ieee)?.softwareBuild) ?? null;
    const told: LockUpdated = { hwId: ieee, ...end, zigbeeFirmwareVersion };
    outbox.tell('lockUpdated', told as Plain);
  }

  return {
    async begin(lock, file) {
      if (current) throw new DriverError('BUSY', `lock ${current.ieee} is given firmware already`);
      current = { ieee: lock.ieee, cancelled: false };
      const image = await read(file);
      if (image === undefined) {
        current = undefined;
        throw new DriverError('INVALID_COMMAND', `${file} is no Zigbee OTA file that can be read whole`);
      }
      run(lock, file, image)
        .catch((error) => context.log.warn({ lock: lock.ieee, err: error }, 'an update has no end'))
        .finally(() => {
          current = undefined;
        });
    },
    cancel(ieee) {
      if (current?.ieee !== ieee) return;
      current.cancelled = true;
      radio().abortUpdate(ieee);
    },
  };
}

async function read(file: string): Promise<FirmwareImage | undefined> {
  try {
    const { size } = await stat(file);
    return size > FILE_MAX_BYTES ? undefined : imageOf(await readFile(file));
  } catch {
    return undefined;
  }
}
