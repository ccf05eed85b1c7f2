/** The log of events: recorded in the transaction of the fact, forwarded upstream by forward.ts. */

/** A step of one key of one write request (interface specification, section 6). */
export interface WriteProgress {
  encoderId: string;
  requestId: string;
  jobId: string;
  keyId: string;
  /** From 0, in the order of the request's data. */
  entryIndex: number;
  entryCount: number;
  status: string;
  error?: { code: string; message?: string };
  /** The whole request: how many entries are in which terminal status, and how many in none. */
  totals: Record<string, number>;
  correlationId: string;
}

export interface Events {
  /** Inside a commit job. The event's id derives from (jobId, keyId, status): a second record of it throws nothing and stores nothing. */
  writeProgress(progress: WriteProgress): void;
  /** After the commit: tells the forwarder that there is something to send. */
  wake(): void;
}
