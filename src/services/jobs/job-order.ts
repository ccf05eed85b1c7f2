/** How a slice has long work done without knowing the slice that does it (src/services/jobs/jobs.ts). */
import type { DriverError } from '../../../drivers/contract/driver.ts';
import type { GatehouseError } from '../../platform/errors.ts';
import type { Caller, Role } from '../../platform/principal.ts';

export interface Progress {
  done: number;
  /** null while no one knows. */
  total: number | null;
}

export type ReportProgress = (progress: Progress) => void;

export interface JobOrder extends Caller {
  /** One word, such as backup. */
  kind: string;
  /** What it works on: one job of a kind at a time on each. */
  object: string;
  /** Who may start such a job, and so see and cancel it; none: anyone who can open the admin socket. */
  roles: readonly Role[];
  /**
   * Jobs of one queue run one after the other, in the order in which they were accepted, also across restarts; absent: it
   * begins at once. `input` is all that its work needs after a restart (ResumeJob): it is stored, so it holds no secret.
   */
  queue?: { name: string; input: Record<string, unknown> };
  /**
   * What the audit keeps of the work beside the job: `accepted` in the commit that begins the job, one outcome in the commit
   * that ends it. A job that a restart ends has the outcome `unknown`. It is stored, so `detail` holds no secret.
   */
  intent?: { action: string; object: string; detail: Record<string, unknown> };
  run: JobWork;
}

/** What became of the intent of a job. */
export interface Conclusion {
  outcome: string;
  /** Beside that of the intent. */
  detail?: Record<string, unknown>;
  /** Inside the commit job that stores the end. */
  also?(): void;
  /** After that. */
  stored?(): void;
}

/** The last call before the end counts; without one the outcome is `done`, or `failed` with the reason. */
export type Conclude = (conclusion: Conclusion) => void;

/** Resolves with what it made, for the client. Ends soon after the signal fired. */
export type JobWork = (
  progress: ReportProgress,
  signal: AbortSignal,
  conclude: Conclude,
) => Promise<Record<string, unknown> | null>;

/** Makes the work of a queued job again, from its `input` and id. Throws when another version stored that differently. */
export type ResumeJob = (input: unknown, id: string) => JobWork;

/** Resolves with the job as the interface shows it, once it is stored and has begun. Throws QUEUE_FULL, or IN_PROGRESS where the same job is under way. */
export type StartJob = (order: JobOrder) => Promise<unknown>;

/** Ends the job of this kind on this object with the error, if it waits in a queue. Resolves once that is stored. */
export type FailQueuedJob = (
  kind: string,
  object: string,
  error: GatehouseError | DriverError,
) => Promise<void>;
