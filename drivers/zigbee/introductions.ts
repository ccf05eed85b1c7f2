/** A lock that joined: configures it until no step is left, and reports it until that report is durable. */
import type { Clock, DriverContext } from '../contract/driver.ts';
import type { LockJoined } from '../contract/zgate.ts';
import type { Configurer, StepFault } from './configure.ts';
import { allCapabilities, type LockRecord } from './lock-record.ts';
import type { Outbox } from './outbox.ts';
import { LOCK_CLUSTER, type Radio } from './radio.ts';

/** After a try that left something undone, a lock that speaks is awake, and is tried again no sooner than this. */
const AGAIN_MS = 300_000;
/** Without a word of it, so long after the first try, the second and so on; the last is that of all others. */
const BACKOFF_MS = [60_000, 300_000, 900_000, 3_600_000, 6 * 3_600_000];
/** Of the 16 frames the coordinator sends at once, the rest is for people at doors. */
const AT_ONCE_MAX = 4;
/** Raised when the steps of configure.ts change: every lock is configured again then. */
const CONFIGURATION = 5;
/**
 * What is left of it for a lock that has an earlier one: a battery pays for each step. 5: how long PINs and cards are, how many
 * there are, and which commands for them the lock has.
 */
const STEPS_SINCE: ReadonlyMap<unknown, readonly string[]> = new Map([
  [4, ['attributes of closuresDoorLock', 'commands of closuresDoorLock']],
]);

export interface Introductions {
  /** The lock is awake: it is configured if it is not yet. `joined`: although it was tried a moment ago. */
  heardOf(lock: LockRecord, joined: boolean): void;
  /** A lock that was on the network asks to join: it may have been reset, and then has lost its configuration. */
  joinedAgain(lock: LockRecord): void;
  /** A lock that was there before this start. */
  known(lock: LockRecord): void;
  /** Now and then: what failed is tried again. */
  review(locks: Iterable<LockRecord>): void;
}

export interface IntroductionsOptions {
  radio(): Radio;
  configurer: Configurer;
  context: Pick<DriverContext, 'clock' | 'log'>;
  outbox: Outbox;
  /** It has not left, nor joined again, meanwhile. */
  isPresent(lock: LockRecord): boolean;
  /** Something new is known of it. */
  changed(lock: LockRecord): void;
  /** A lock came. */
  came(): void;
}

export function openIntroductions(options: IntroductionsOptions): Introductions {
  const { radio, isPresent } = options;
  const { clock, log } = options.context;
  const tries = openTries(clock);
  const busy = new Set<string>();
  /**
   * Those that wait for their turn, or for the end of a try that began before they joined: they may say nothing more until
   * they are configured.
   */
  const waiting = new Map<string, LockRecord>();
  /** Those whose next try is due; a lock that joins goes before them. */
  const due = new Map<string, LockRecord>();

  async function configure(lock: LockRecord): Promise<void> {
    const { ieee, endpoint } = lock;
    const inputs = inputsOf(lock);
    const ownCluster = lock.hasOwnCluster ? LOCK_CLUSTER : undefined;
    const target = { ieee, endpoint, inputs, ownCluster };
    const faults = await options.configurer.configure(target, tries.left(ieee) ?? stepsSince(lock, radio()));
    // When it joins again meanwhile it may have forgotten half of it.
    if (!isPresent(lock) || waiting.has(ieee)) return;
    note(lock, faults);
    options.changed(lock);
    introduce(lock, options);
  }

  function note(lock: LockRecord, faults: StepFault[]): void {
    const { ieee } = lock;
    const at = clock.now();
    lock.report.setupFaults = faults.map((fault) => ({ ...fault, at }));
    if (faults.length === 0) {
      tries.forget(ieee);
      radio().remember(ieee, { configuration: CONFIGURATION });
      return;
    }
    tries.leave(
      ieee,
      faults.map(({ step }) => step),
    );
    log.info({ lock: ieee, faults }, 'steps of the configuration of a lock failed; they are tried again');
  }

  function begin(lock: LockRecord): void {
    const { ieee } = lock;
    tries.begin(ieee);
    busy.add(ieee);
    configure(lock)
      .catch((error) => log.warn({ lock: ieee, err: error }, 'a lock could not be configured'))
      .finally(() => {
        busy.delete(ieee);
        beginNext();
      });
  }

  function beginNext(): void {
    for (const [ieee, lock] of waiting) {
      if (busy.has(ieee)) continue;
      waiting.delete(ieee);
      if (!isPresent(lock)) continue;
      begin(lock);
      return;
    }
    beginDue();
  }

  function beginDue(): void {
    for (const [ieee, lock] of due) {
      if (busy.size >= AT_ONCE_MAX) return;
      due.delete(ieee);
      if (!busy.has(ieee) && isPresent(lock) && !isConfigured(lock)) begin(lock);
    }
  }

  const isConfigured = ({ ieee }: LockRecord) => radio().meta(ieee).configuration === CONFIGURATION;

  function heardOf(lock: LockRecord, joined: boolean): void {
    const { ieee } = lock;
    if (isConfigured(lock)) return;
    // It may have been reset: nothing that was done before counts.
    if (joined) tries.forget(ieee);
    else if (!tries.isOver(ieee, AGAIN_MS)) return;
    if (busy.size < AT_ONCE_MAX && !busy.has(ieee)) begin(lock);
    else if (joined) waiting.set(ieee, lock);
  }

  return {
    heardOf,
    joinedAgain(lock) {
      radio().remember(lock.ieee, { configuration: null, timedUnlock: null, standOpenRefused: null });
      heardOf(lock, true);
    },
    known(lock) {
      if (isConfigured(lock)) introduce(lock, options);
    },
    review(locks) {
      for (const lock of locks) {
        if (!isConfigured(lock) && tries.isDue(lock.ieee)) due.set(lock.ieee, lock);
      }
      beginDue();
    },
  };
}

/** Undefined: all. */
function stepsSince({ ieee }: LockRecord, radio: Radio): readonly string[] | undefined {
  return STEPS_SINCE.get(radio.meta(ieee).configuration);
}

function inputsOf({ device, endpoint, family }: LockRecord): number[] {
  const listed = device.endpoints.find(({ id }) => id === endpoint)?.inputs ?? [];
  return [...listed, ...(family?.unlisted ?? [])];
}

/** The outbox repeats it until it is durable. */
function introduce(lock: LockRecord, { radio, outbox, isPresent, came }: IntroductionsOptions): void {
  const { ieee, device } = lock;
  if (radio().meta(ieee).introduced === true) return;
  const joined: LockJoined = {
    hwId: ieee,
    manufacturer: device.manufacturer ?? null,
    model: device.model ?? null,
    zigbeeFirmwareVersion: device.softwareBuild ?? null,
    capabilities: allCapabilities(lock, radio()),
  };
  outbox.emit('lockJoined', joined, () => {
    if (isPresent(lock)) radio().remember(ieee, { introduced: true });
    came();
  });
}

/** Tries to configure a lock. */
interface Tries {
  begin(ieee: string): void;
  /** The steps that are left over; undefined: all. */
  left(ieee: string): string[] | undefined;
  leave(ieee: string, steps: string[]): void;
  /** The next one is as the first. */
  forget(ieee: string): void;
  /** So long ago, or never. */
  isOver(ieee: string, ms: number): boolean;
  /** Although nothing is heard of the lock. */
  isDue(ieee: string): boolean;
}

function openTries(clock: Clock): Tries {
  /** `at`: when it began or ended, monotonic milliseconds. */
  const tries = new Map<string, { at: number; count: number; left: string[] | undefined }>();
  const isOver = (ieee: string, ms: number) => {
    const last = tries.get(ieee);
    return last === undefined || clock.monotonic() - last.at >= ms;
  };
  return {
    begin(ieee) {
      const { count = 0, left } = tries.get(ieee) ?? {};
      tries.set(ieee, { at: clock.monotonic(), count: count + 1, left });
    },
    left: (ieee) => tries.get(ieee)?.left,
    leave: (ieee, left) =>
      void tries.set(ieee, { at: clock.monotonic(), count: tries.get(ieee)?.count ?? 1, left }),
    forget: (ieee) => void tries.delete(ieee),
    isOver,
    isDue(ieee) {
      const count = tries.get(ieee)?.count ?? 1;
      return isOver(ieee, BACKOFF_MS[Math.min(count, BACKOFF_MS.length) - 1] ?? 0);
    },
  };
}
