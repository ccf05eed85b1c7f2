/** What the write requests need of the rest, and what they offer to the encoders' sessions; desk.ts joins them. */
import type { JobReport, ProgressReport } from '../../../drivers/encoder/messages.ts';

export interface EncoderLookup {
  exists(encoderId: string): boolean;
  /** Connected as docs/encoder-protocol.md, Connection, defines it. */
  connected(encoderId: string): boolean;
  upgrading(encoderId: string): boolean;
  /** The journal of the last birth. */
  journal(encoderId: string): string | null;
}

/** Called by the encoders' sessions. The first three run inside the commit that stores the message. */
export interface WriteReports {
  born(encoderId: string, journal: string): void;
  job(encoderId: string, report: JobReport): void;
  progress(encoderId: string, report: ProgressReport): void;
  /** After that commit, and once when an encoder has become connected: then nothing was sent on this connection yet. */
  wake(encoderId: string, cause: 'fresh-connection' | 'report'): void;
}
