/** New firmware for one lock at a time, from a file of this host. It fetches the file in its own time, which is long. */
import { basename } from 'node:path';
import { type DriverContext, DriverError, type Plain } from '../contract/driver.ts';
import { type OtaImage, readOtaImage } from '../contract/ota-image.ts';
import { unlessAborted } from '../contract/waiting.ts';
import type { FirmwareProgress, LockUpdated } from '../contract/zgate.ts';
import type { Configurer } from './configure.ts';
import type { Lock } from './locks.ts';
import type { Outbox } from './outbox.ts';
import type { Radio } from './radio.ts';
import { redact } from './redact.ts';
import { hex, text } from './values.ts';

/** genBasic, swBuildId. */
const SOFTWARE_BUILD = 0x40_00;
const REASON_MAX = 128;
/** How often a lock that has just restarted with new firmware is asked what it runs now. */
const READ_BACK_TRIES = 3;
/** A lock that is there asks for its next block within that time, and the answer says that the update is over. */
const CANCEL_MS = 5_000;

export interface Firmware {
  /** Resolves once it has begun. Rejects with BUSY, or INVALID_COMMAND when there is no such file, or it is no firmware. */
  begin(lock: Lock, file: string, isResumed?: boolean): Promise<void>;
  /** Also of a lock that has left; of one that is given none, nothing changes. */
  cancel(ieee: string): void;
  /** The lock has left the network: it fetches no more. */
  left(ieee: string): void;
}

export interface FirmwareOptions {
  radio(): Radio;
  configurer: Configurer;
  context: Pick<DriverContext, 'log' | 'report' | 'clock'>;
  outbox: Outbox;
  /** Fires when the link ends. */
  signal: AbortSignal;
}

export function openFirmware(options: FirmwareOptions): Firmware {
  const { radio, configurer, context, outbox, signal } = options;
  let current: { ieee: string; cancelled: boolean; gone: PromiseWithResolvers<never> } | undefined;
  const library = sendingBy(radio, context);

  function progress(hwId: string, percent: number, remainingSeconds: number): void {
    const state: FirmwareProgress = {
      hwId,
      percent: Math.min(100, Math.max(0, percent || 0)),
      remainingSeconds: Number.isFinite(remainingSeconds) && remainingSeconds >= 0 ? remainingSeconds : null,
    };
    context.report({ subject: `firmware:${hwId}`, state });
  }

  async function update(
    { ieee }: Lock,
    file: string,
    image: OtaImage,
    isResumed: boolean,
  ): Promise<Pick<LockUpdated, 'outcome' | 'reason'>> {
    const one = current;
    if (one === undefined || one.cancelled) return { outcome: 'cancelled', reason: null };
    try {
      const onProgress = (percent: number, left: number) => {
        if (current === one) progress(ieee, percent, left);
        if (one.cancelled) library.end(ieee);
      };
      // The library waits 150 s for the next request of a lock that is gone, and the other locks would wait as long.
      const sending = library.send(ieee, { file, ...image }, onProgress);
      const { updated, present } = await unlessAborted(Promise.race([sending, one.gone.promise]), signal);
      if (updated || (isResumed && isSame(image, present))) return { outcome: 'updated', reason: null };
      return { outcome: 'refused', reason: whyNot(image, present) };
    } catch (error) {
      if (one.cancelled) return { outcome: 'cancelled', reason: null };
      const reason = redact(error instanceof Error ? error.message : 'no reason').slice(0, REASON_MAX);
      if (error instanceof DriverError) return { outcome: 'failed', reason };
      // The library names a frame.
      context.log.info({ lock: ieee, reason }, 'an update of firmware ended');
      return { outcome: 'failed', reason: 'the lock did not answer, or asked for nothing more' };
    }
  }

  /** The record of the lock takes the answer, as from any frame (lock-record.ts). False: there was none. */
  async function readBack(target: Pick<Lock, 'ieee' | 'endpoint'>): Promise<boolean> {
    for (let tries = 0; tries < READ_BACK_TRIES; tries += 1)
      if (await configurer.read(target, 'genBasic', [SOFTWARE_BUILD])) return true;
    return false;
  }

  async function run(lock: Lock, file: string, image: OtaImage, isResumed: boolean): Promise<void> {
    const { ieee, endpoint } = lock;
    const end = await update(lock, file, image, isResumed);
    // What the library knows without this answer is the version of before.
    const isKnown = end.outcome !== 'updated' || (await readBack({ ieee, endpoint }));
    const zigbeeFirmwareVersion = isKnown ? (text(radio().device(ieee)?.softwareBuild) ?? null) : null;
    const updated: LockUpdated = { hwId: ieee, ...end, zigbeeFirmwareVersion };
    // With the link the daemon has ended the update, and may have begun the next one, which this would end.
    if (!signal.aborted) outbox.emit('lockUpdated', updated as Plain);
  }

  return {
    async begin(lock, file, isResumed = false) {
      if (current) throw new DriverError('BUSY', `lock ${current.ieee} is given firmware already`);
      if (library.holds(lock.ieee))
        throw new DriverError('BUSY', `lock ${lock.ieee} may still ask for a block of its last update`);
      const gone = Promise.withResolvers<never>();
      gone.promise.catch(() => undefined);
      current = { ieee: lock.ieee, cancelled: false, gone };
      const image = await readOtaImage(file);
      if (image === undefined) {
        current = undefined;
        const message = `${basename(file)} is no Zigbee OTA file, or is damaged: put the file of the manufacturer there again, whole`;
        throw new DriverError('INVALID_COMMAND', message);
      }
      run(lock, file, image, isResumed)
        .catch((error) => context.log.warn({ lock: lock.ieee, err: error }, 'an update has no end'))
        .finally(() => {
          current = undefined;
        });
    },
    cancel(ieee) {
      if (current?.ieee !== ieee || current.cancelled) return;
      current.cancelled = true;
      library.end(ieee);
      const { gone } = current;
      void context.clock.sleep(CANCEL_MS).then(() => gone.reject(new Error('it was cancelled')));
    },
    left(ieee) {
      if (current?.ieee === ieee)
        current.gone.reject(new DriverError('DEVICE_OFFLINE', 'the lock has left the network'));
    },
  };
}

const isFor = (file: OtaImage, lock: OtaImage) =>
  file.manufacturerCode === lock.manufacturerCode && file.imageType === lock.imageType;

const isSame = (file: OtaImage, lock: OtaImage) => isFor(file, lock) && file.fileVersion === lock.fileVersion;

/** Why a lock that says it has the one image is not given the other. */
function whyNot(file: OtaImage, lock: OtaImage): string {
  if (isFor(file, lock)) return 'the file is no newer firmware for this lock';
  return `the file is for ${makeOf(file)}, the lock is of ${makeOf(lock)}`;
}

function makeOf({ manufacturerCode, imageType }: OtaImage): string {
  return `manufacturer ${hex(manufacturerCode, 4)}, image type ${imageType}`;
}

/** What of updates is the library's, and so outlasts ours. */
function sendingBy(radio: () => Radio, { log }: Pick<DriverContext, 'log'>) {
  const unsettled = new Set<string>();
  return {
    /** It still waits for a request of the lock. */
    holds: (ieee: string) => unsettled.has(ieee),
    async send(...given: Parameters<Radio['update']>) {
      const [ieee] = given;
      unsettled.add(ieee);
      try {
        return await radio().update(...given);
      } finally {
        unsettled.delete(ieee);
      }
    },
    /** It ends only what it sends: not while the lock has yet to ask, nor in the moment in which the lock is notified. */
    end(ieee: string): void {
      Promise.resolve()
        .then(() => radio().abortUpdate(ieee))
        .catch((error) => log.debug({ lock: ieee, err: error }, 'there is no update to end any more'));
    },
  };
}
