/** What is measured as it happens; everything else in the metrics is looked up when it is asked for. */
import { type Histogram, type HistogramReading, openHistogram } from '../../../drivers/contract/histogram.ts';

/** Seconds: from a read in memory to the longest a request may take. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
/** Seconds: from a disk in a data centre to one that is dying. */
const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5];
/** Jobs in one commit, up to the most there can be (src/platform/database/commit.ts). */
const COMMIT_JOBS = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/** Seconds: from an encoder with the card on it to a guest who comes back later. */
const KEY_SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 900];
/** Seconds: from a relay on a quiet bus to a sleeping lock that its parent had to wait for. */
const ACTUATION_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Of a key (src/resources/writes/machine.ts), each from the start on: rates need to see the first one. */
const KEY_OUTCOMES = ['written', 'failed', 'cancelled', 'expired', 'unknown'];
/** As the audit has them, by way; those with a door and one of these outcomes are there from the start on, too. */
const ACTUATIONS = [
  ['door.unlock', 'zigbee'],
  ['door.unlock', 'rs485'],
  ['door.lock', 'zigbee'],
  ['door.stand-open', 'zigbee'],
  ['door.stand-open', 'rs485'],
  ['rs485.pulse', 'rs485'],
] as const;
const ALARMING = ['failed', 'unknown'];
/** Of a lock whose parent held the command too long. */
const LATE_UNLOCK = { action: 'door.unlock', way: 'zigbee', outcome: 'late' };
/** They come from the code alone and are a few; as REQUEST_SERIES_MAX. */
const ACTUATION_SERIES_MAX = 100;
/**
 * Combinations of method, route and status that are counted separately: routes are patterns and methods a few, so that this is never
 * reached; it bounds memory should one of them ever come from a client.
 */
const REQUEST_SERIES_MAX = 2_000;
/** Any other is counted as OTHER: a client may send what it likes. */
const METHODS = new Set(['GET', 'HEAD', 'PUT', 'POST', 'DELETE']);

export interface RequestSeries {
  method: string;
  route: string;
  status: number;
  seconds: HistogramReading;
}

export interface ActuationSeries {
  action: string;
  way: string;
  outcome: string;
  seconds: HistogramReading;
}

export interface Meters {
  /** One answered request. `route` is the pattern. */
  request(method: string, route: string, status: number, milliseconds: number): void;
  /** One commit that is on the disk. */
  commit(jobs: number, milliseconds: number): void;
  /** What became of one actuation; `milliseconds` from its request. */
  actuation(labels: Omit<ActuationSeries, 'seconds'>, milliseconds: number): void;
  /** How one key ended; `milliseconds` since its request was accepted. */
  key(outcome: string, milliseconds: number): void;
  read(): {
    requests: RequestSeries[];
    commitSeconds: HistogramReading;
    commitJobs: HistogramReading;
    actuations: ActuationSeries[];
    keys: { outcome: string; seconds: HistogramReading }[];
  };
}

export function openMeters(): Meters {
  const requests = openSeries<Omit<RequestSeries, 'seconds'>>(REQUEST_SECONDS, REQUEST_SERIES_MAX);
  const actuations = openSeries<Omit<ActuationSeries, 'seconds'>>(ACTUATION_SECONDS, ACTUATION_SERIES_MAX);
  const keys = openSeries<{ outcome: string }>(KEY_SECONDS, KEY_OUTCOMES.length);
  for (const outcome of KEY_OUTCOMES) keys.of(outcome, { outcome });
  for (const [action, way] of ACTUATIONS) for (const outcome of ALARMING) actuation({ action, way, outcome });
  actuation(LATE_UNLOCK);
  const commitSeconds = openHistogram(COMMIT_SECONDS);
  const commitJobs = openHistogram(COMMIT_JOBS);

  function actuation(labels: Omit<ActuationSeries, 'seconds'>): Histogram | undefined {
    const { action, way, outcome } = labels;
    return actuations.of(`${action} ${way} ${outcome}`, { action, way, outcome });
  }

  return {
    request(sentMethod, route, status, milliseconds) {
      const method = METHODS.has(sentMethod) ? sentMethod : 'OTHER';
      requests.of(`${method} ${status} ${route}`, { method, route, status })?.observe(milliseconds / 1_000);
    },
    commit(jobs, milliseconds) {
      commitJobs.observe(jobs);
      commitSeconds.observe(milliseconds / 1_000);
    },
    actuation: (labels, milliseconds) => actuation(labels)?.observe(milliseconds / 1_000),
    key: (outcome, milliseconds) => keys.of(outcome, { outcome })?.observe(milliseconds / 1_000),
    read: () => ({
      requests: requests.read(),
      actuations: actuations.read(),
      keys: keys.read(),
      commitSeconds: commitSeconds.read(),
      commitJobs: commitJobs.read(),
    }),
  };
}

/** Histograms that differ by their labels; of `max` at most. */
function openSeries<Labels>(bounds: readonly number[], max: number) {
  const series = new Map<string, { labels: Labels; seconds: Histogram }>();
  return {
    of(key: string, labels: Labels): Histogram | undefined {
      const known = series.get(key);
      if (known) return known.seconds;
      if (series.size >= max) return undefined;
      const seconds = openHistogram(bounds);
      series.set(key, { labels, seconds });
      return seconds;
    },
    read: () => [...series.values()].map(({ labels, seconds }) => ({ ...labels, seconds: seconds.read() })),
  };
}
