/** What is measured as it happens; everything else in the metrics is looked up when it is asked for. */
import { type Histogram, type HistogramReading, openHistogram } from './histogram.ts';

/** Seconds: from a read in memory to the longest a request may take. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
/** Seconds: from a disk in a data centre to one that is dying. */
const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5];
/** Jobs in one commit, up to the most there can be (database/commit.ts). */
const COMMIT_JOBS = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/**
 * Combinations of method, route and status told apart: routes are patterns and methods a few, so that this is never
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

export interface Meters {
  /** One answered request. `route` is the pattern. */
  request(method: string, route: string, status: number, milliseconds: number): void;
  /** One commit that is on the disk. */
  commit(jobs: number, milliseconds: number): void;
  read(): { requests: RequestSeries[]; commitSeconds: HistogramReading; commitJobs: HistogramReading };
}

export function openMeters(): Meters {
  const requests = new Map<string, { method: string; route: string; status: number; seconds: Histogram }>();
  const commitSeconds = openHistogram(COMMIT_SECONDS);
  const commitJobs = openHistogram(COMMIT_JOBS);

  return {
    request(sentMethod, route, status, milliseconds) {
      const method = METHODS.has(sentMethod) ? sentMethod : 'OTHER';
      const key = `${method} ${status} ${route}`;
      let series = requests.get(key);
      if (!series) {
        if (requests.size >= REQUEST_SERIES_MAX) return;
        series = { method, route, status, seconds: openHistogram(REQUEST_SECONDS) };
        requests.set(key, series);
      }
      series.seconds.observe(milliseconds / 1_000);
    },
    commit(jobs, milliseconds) {
      commitJobs.observe(jobs);
      commitSeconds.observe(milliseconds / 1_000);
    },
    read: () => ({
      requests: [...requests.values()].map(({ seconds, ...labels }) => ({
        ...labels,
        seconds: seconds.read(),
      })),
      commitSeconds: commitSeconds.read(),
      commitJobs: commitJobs.read(),
    }),
  };
}
