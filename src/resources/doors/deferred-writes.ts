/**
 * What closed a door while the disk failed is stored here once the disk is well, and so is that a stored request for standing
 * open was withdrawn. Kept in memory: after a crash before that the stored request counts, with its stored end.
 */
import type { Clock } from '../../platform/clock.ts';
import { GatehouseError } from '../../platform/errors.ts';
import type { Log } from '../../platform/log.ts';
import { waitBefore } from '../../platform/supervise.ts';
import { openWaking } from '../../platform/waking.ts';

const BACKOFF = { firstMs: 1_000, longestMs: 60_000 };
const REST_MS = 60_000;
/** Changes and audit entries that wait: more than a night of them, at some 1 kB each. What closes a door always waits. */
const ENTRIES_MAX = 10_000;

const CLOSED =
  'what closes a door was not stored: it is carried out all the same, and stored when the disk is well';
const NOT_STORED = {
  end: CLOSED,
  audit: CLOSED,
  change: 'a change of a door that stands open was not stored: it is stored when the disk is well',
  withdrawal:
    'that a request for standing open was withdrawn is not stored: nothing was sent, and this is stored when the disk is well',
};

const SAYS_CLOSED: readonly Entry['what'][] = ['end', 'withdrawal'];

interface Entry {
  doorId: string;
  what: keyof typeof NOT_STORED;
  store(): Promise<void>;
  /** False: what was stored since has made it unnecessary. */
  isDue(): boolean;
  nextAt: number;
  failures: number;
  refusal: GatehouseError;
}

export interface DeferredWrites {
  /** `error`: why it could not be stored now. `store` rejects while it cannot be stored. */
  add(
    doorId: string,
    what: Entry['what'],
    error: unknown,
    writing: Pick<Entry, 'store'> & Partial<Pick<Entry, 'isDue'>>,
  ): void;
  /** Why it is not stored yet that this door does not stand open. */
  refusalOf(doorId: string): GatehouseError | undefined;
  /** For supervise. */
  run(signal: AbortSignal): Promise<never>;
}

export function openDeferredWrites({ clock, log }: { clock: Clock; log: Log }): DeferredWrites {
  const entries = new Set<Entry>();
  const waking = openWaking(clock);

  function postpone(entry: Entry, error: unknown): void {
    entry.failures += 1;
    entry.nextAt = clock.monotonic() + waitBefore(entry.failures, BACKOFF, 1);
    entry.refusal = storageRefusal(error);
    if (entry.failures === 1) log.error({ door: entry.doorId, err: error }, NOT_STORED[entry.what]);
  }

  async function look(): Promise<number> {
    for (const entry of entries) {
      if (entry.nextAt > clock.monotonic()) continue;
      try {
        await entry.store();
        entries.delete(entry);
      } catch (error) {
        postpone(entry, error);
      }
    }
    const next = [...entries].map(({ nextAt }) => nextAt - clock.monotonic());
    return Math.max(0, Math.min(REST_MS, ...next));
  }

  return {
    add(doorId, what, error, { store, isDue = () => true }) {
      const entry = { doorId, what, store, isDue, nextAt: 0, failures: 0, refusal: storageRefusal(error) };
      postpone(entry, error);
      if (entries.size >= ENTRIES_MAX && !SAYS_CLOSED.includes(what)) return;
      entries.add(entry);
      waking.wake();
    },
    refusalOf: (doorId) =>
      [...entries].find(
        (entry) => entry.doorId === doorId && SAYS_CLOSED.includes(entry.what) && entry.isDue(),
      )?.refusal,
    run: (signal) => waking.run(signal, look),
  };
}

function storageRefusal(error: unknown): GatehouseError {
  if (error instanceof GatehouseError) return error;
  return new GatehouseError('STORAGE_UNAVAILABLE', 'This could not be stored.', { cause: error });
}
