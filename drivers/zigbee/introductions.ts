/** A lock that joined: configured while it is awake, told of, and told again until that is durable. */
import type { DriverContext } from '../driver.ts';
import type { LockJoined } from '../zgate.ts';
import type { Configurer } from './configure.ts';
import { allCapabilities, type LockRecord } from './lock-record.ts';
import type { Outbox } from './outbox.ts';
import { LOCK_CLUSTER, type Radio } from './radio.ts';

/** A lock that did not answer to all of its configuration is asked again when it is heard of, but not all the time. */
const AGAIN_MS = 300_000;
/** Of the 16 frames the coordinator sends at once, the rest is for people at doors. */
const AT_ONCE_MAX = 4;
/** Raised when configure.ts tells locks something else: all are told again then. */
const CONFIGURATION = 1;

export interface Introductions {
  /** The lock is awake: it is configured if it is not yet. `joined`: although it was tried a moment ago. */
  heardOf(lock: LockRecord, joined: boolean): void;
  /** A lock that was on the network asks to join: it may have been reset, and then has forgotten what it was told. */
  joinedAgain(lock: LockRecord): void;
  /** A lock that was there before this start. */
  known(lock: LockRecord): void;
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
  const { radio, outbox, isPresent } = options;
  const { clock, log } = options.context;
  /** When each was last configured, in monotonic milliseconds. */
  const tried = new Map<string, number>();
  const busy = new Set<string>();
  /**
   * Those that joined and wait for their turn, or for the end of a try that began before: they may say nothing more until
   * they are configured.
   */
  const waiting = new Map<string, LockRecord>();

  async function configure(lock: LockRecord): Promise<void> {
    const { ieee, endpoint, device } = lock;
    const inputs = device.endpoints.find(({ id }) => id === endpoint)?.inputs ?? [];
    const ownCluster = lock.hasOwnCluster ? LOCK_CLUSTER : undefined;
    const complete = await options.configurer.configure({ ieee, endpoint, inputs, ownCluster });
    // When it joins again meanwhile it may have forgotten the half of it.
    if (!isPresent(lock) || waiting.has(ieee)) return;
    if (complete) radio().remember(ieee, { configuration: CONFIGURATION });
    else
      log.info({ lock: ieee }, 'a lock did not answer to all of its configuration; it gets the rest later');
    options.changed(lock);
    introduce(lock);
  }

  function introduce(lock: LockRecord): void {
    const { ieee, device } = lock;
    if (radio().memory(ieee).introduced === true) return;
    const joined: LockJoined = {
      hwId: ieee,
      manufacturer: device.manufacturer ?? null,
      model: device.model ?? null,
      zigbeeFirmwareVersion: device.softwareBuild ?? null,
      capabilities: allCapabilities(lock, radio()),
    };
    outbox.tell('lockJoined', joined, () => {
      if (isPresent(lock)) radio().remember(ieee, { introduced: true });
      options.came();
    });
  }

  function begin(lock: LockRecord): void {
    const { ieee } = lock;
    tried.set(ieee, clock.monotonic());
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
  }

  function heardOf(lock: LockRecord, joined: boolean): void {
    const { ieee } = lock;
    if (radio().memory(ieee).configuration === CONFIGURATION) return;
    const last = tried.get(ieee) ?? Number.NEGATIVE_INFINITY;
    if (!joined && clock.monotonic() - last < AGAIN_MS) return;
    if (busy.size < AT_ONCE_MAX && !busy.has(ieee)) begin(lock);
    else if (joined) waiting.set(ieee, lock);
  }

  return {
    heardOf,
    joinedAgain(lock) {
      radio().remember(lock.ieee, { configuration: null });
      heardOf(lock, true);
    },
    known(lock) {
      if (radio().memory(lock.ieee).configuration === CONFIGURATION) introduce(lock);
    },
  };
}
