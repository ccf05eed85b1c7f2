/**
 * The keys tokens are verified by, always at hand: fetched in the background, kept on the disk, never asked for while
 * a request waits. Without the provider they stay good up to a configured age; after that no one knows what it has
 * withdrawn meanwhile.
 */
import type { JsonWebKey } from 'node:crypto';
import type { Clock } from '../../platform/clock.ts';
import { readNamedFile } from '../../platform/host/regular-file.ts';
import type { KnownTime } from '../../platform/known-time.ts';
import type { Log } from '../../platform/log.ts';
import { shownUrl } from '../../platform/shown-url.ts';
import { fetchKeySet, loadKeySet, readKeySet, type StoredKeySet, storeKeySet } from './key-set.ts';

/** A withdrawn key is forgotten, and a new one known, after this at the latest. */
const REFRESH_EVERY_MS = 15 * 60_000;
/** A key no one has heard of makes the refresh come early, but not more often than this: anybody can invent one. */
const EARLY_REFRESH_EVERY_MS = 60_000;
/** How often it is seen whether a refresh is due. */
const LOOK_EVERY_MS = 5_000;

/** Where keys come from: fetched, or laid down by hand, for good or for the time until the first fetch. */
export interface KeySource {
  jwksUrl?: string | undefined;
  caFile?: string | undefined;
  jwksFile?: string | undefined;
}

export interface IssuerKeysOptions {
  issuer: string;
  source: KeySource;
  /** Where fetched keys are kept. */
  file: string;
  maxAgeMs: number;
  clock: Clock;
  time: Pick<KnownTime, 'now'>;
  log: Log;
}

export interface IssuerKeys {
  /** Undefined while there are none, or only such as are too old. The same array until they change. */
  current(): readonly JsonWebKey[] | undefined;
  /** A token named a key that is none of these. */
  missed(): void;
  state(): IssuerKeysState;
  /** Fetches when due; for supervise. */
  run(signal: AbortSignal): Promise<never>;
}

/** Times are epoch milliseconds. */
export interface IssuerKeysState {
  keys: number;
  fetchedAt: number | null;
  usableUntil: number | null;
  isUsable: boolean;
  lastError: string | null;
}

/** Throws when `jwksFile` cannot be used: a mistake shows at the start. */
export function openIssuerKeys(options: IssuerKeysOptions): IssuerKeys {
  const { source, maxAgeMs, clock, time } = options;
  let set = initial(options);
  let lastError: string | null = null;
  let tried = Number.NEGATIVE_INFINITY;
  let isMissed = false;

  const isDue = () => {
    const sinceTry = clock.monotonic() - tried;
    if (isMissed && sinceTry >= EARLY_REFRESH_EVERY_MS) return true;
    const isFetched = set?.url === (source.jwksUrl ?? source.jwksFile);
    return !set || !isFetched || time.now() - set.fetchedAt >= REFRESH_EVERY_MS;
  };

  async function refresh(signal: AbortSignal): Promise<void> {
    tried = clock.monotonic();
    isMissed = false;
    try {
      const fetched = await read(options, signal);
      const isSame = JSON.stringify(fetched.keys) === JSON.stringify(set?.keys);
      set = isSame && set ? { ...fetched, keys: set.keys } : fetched;
      lastError = null;
    } catch (error) {
      lastError = (error as Error).message;
      throw error;
    }
    if (source.jwksUrl !== undefined) await storeKeySet(options.file, set);
  }

  const current = () => (set && time.now() - set.fetchedAt <= maxAgeMs ? set.keys : undefined);
  return {
    current,
    missed() {
      isMissed = true;
    },
    state: () => ({
      keys: set?.keys.length ?? 0,
      fetchedAt: set?.fetchedAt ?? null,
      usableUntil: set ? set.fetchedAt + maxAgeMs : null,
      isUsable: current() !== undefined,
      lastError,
    }),
    async run(signal) {
      for (;;) {
        if (isDue()) await refresh(signal);
        await clock.sleep(LOOK_EVERY_MS, signal);
      }
    },
  };
}

/** What the disk holds. A damaged copy of fetched keys is fetched again; keys laid down by hand must be right. */
function initial(options: IssuerKeysOptions): StoredKeySet | undefined {
  const { issuer, source, time } = options;
  const byHand = source.jwksFile === undefined ? undefined : fromFile(issuer, source.jwksFile, time.now());
  return storedCopy(options) ?? byHand;
}

function storedCopy({ issuer, source, file, log }: IssuerKeysOptions): StoredKeySet | undefined {
  try {
    const stored = loadKeySet(file);
    return stored?.issuer === issuer && stored.url === source.jwksUrl ? stored : undefined;
  } catch (error) {
    log.warn({ err: error, file }, 'the stored keys of the identity provider cannot be read; fetching them');
    return undefined;
  }
}

async function read(options: IssuerKeysOptions, signal: AbortSignal): Promise<StoredKeySet> {
  const { issuer, source, clock, time } = options;
  const { jwksUrl: url, caFile, jwksFile = '' } = source;
  if (url === undefined) return fromFile(issuer, jwksFile, time.now());
  const text = await fetchKeySet({ url, caFile }, clock, signal);
  return { issuer, url, fetchedAt: time.now(), keys: explained(shownUrl(url), text) };
}

function fromFile(issuer: string, file: string, now: number): StoredKeySet {
  return { issuer, url: file, fetchedAt: now, keys: explained(file, readNamedFile(file)) };
}

function explained(from: string, text: string): JsonWebKey[] {
  try {
    return readKeySet(text);
  } catch (cause) {
    throw new Error(`${from} cannot be used: ${(cause as Error).message}`, { cause });
  }
}
