/**
 * What may become of a write request: every transition of a job and of its entries, and nothing else. Pure: no clock,
 * no storage, no link; ledger.ts stores what follows, dispatch.ts says when. A job is a write request as the encoder has it;
 * "Rules" are those of docs/encoder-protocol.md, Rules.
 *
 * An entry only moves forward, queued → started → cardRequested → cardDetected → writing, may skip steps, and ends once:
 * written, failed, cancelled, expired or unknown. A job waits, is sent, and ends with its last entry. All of it is
 * durable, so a restart of the gateway is no input: it changes nothing but the deadlines (dispatch.ts).
 *
 * | input               | waiting                   | sent                                             | ended        |
 * |---------------------|---------------------------|--------------------------------------------------|--------------|
 * | sent                | sent                      | –                                                | –            |
 * | unreadable          | open entries: failed      | –                                                | –            |
 * | progress, held      | ignored, and said so      | entries move or end, as reported                 | late outcome |
 * | held, job not known | –                         | an entry had begun: unknown · cancelling:        | –            |
 * |                     |                           |   cancelled · else: sent, and dispatched again   |              |
 * | born, other journal | –                         | open entries: unknown                            | –            |
 * | cancel              | open entries: cancelled   | sent, cancelling: what the encoder says decides  | –            |
 * | deadline            | open entries: expired     | –                                                | –            |
 * | graceOver           | –                         | open entries: unknown                            | –            |
 */
import type { EncoderEntryStatus, EncoderErrorCode } from '../../../drivers/encoder/messages.ts';

/** In the order in which an entry moves. */
export const OPEN_STATUSES = ['queued', 'started', 'cardRequested', 'cardDetected', 'writing'] as const;
export type OpenStatus = (typeof OPEN_STATUSES)[number];
/** In the order of what a person must look at first: a finished job has the first of these that any entry has. */
export const TERMINAL_STATUSES = ['unknown', 'failed', 'expired', 'cancelled', 'written'] as const;
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];
export type EntryStatus = OpenStatus | TerminalStatus;
export const JOB_STATUSES = ['queued', 'inProgress', ...TERMINAL_STATUSES] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

export const ERROR_CODES_OF_THE_GATEWAY = ['CONNECTION_LOST', 'ENCODER_TIMEOUT'] as const;
export type WriteErrorCode = EncoderErrorCode | (typeof ERROR_CODES_OF_THE_GATEWAY)[number];
export interface WriteError {
  code: WriteErrorCode;
  message?: string;
}
export interface KeyOutcome {
  status: TerminalStatus;
  /** Of `failed` and `unknown` only. */
  error?: WriteError;
}

export type Entry = { keyId: string } & (
  | { ended: false; status: OpenStatus }
  /** `late`: the first report that said otherwise after the end. */
  | { ended: true; outcome: KeyOutcome; late: KeyOutcome | null }
);

export type Job =
  | { phase: 'waiting'; entries: Entry[] }
  /** `journal`: which journal of the encoder the job went to. */
  | { phase: 'sent'; journal: string; cancelling: boolean; entries: Entry[] }
  | { phase: 'ended'; entries: Entry[] };

/** What an encoder says of one entry. */
export interface EntryReport {
  keyId: string;
  status: EncoderEntryStatus;
  error?: { code: EncoderErrorCode; message?: string } | undefined;
}

export type Input =
  | { type: 'sent'; journal: string }
  /** The key data cannot be opened: the vault's key is another than the one that sealed it. */
  | { type: 'unreadable' }
  | { type: 'progress'; report: EntryReport }
  /** up/job: what the encoder holds of the job. */
  | { type: 'held'; known: boolean; entries: EntryReport[] }
  /** A connection of the encoder has begun; what it holds of sent jobs is in this journal. */
  | { type: 'born'; journal: string }
  | { type: 'cancel' }
  | { type: 'deadline' }
  /** So long after the deadline that the encoder is not expected to say anything any more (Rules 6). */
  | { type: 'graceOver' };

export type Step =
  | { type: 'moved'; index: number; entry: Entry }
  | { type: 'late'; index: number; outcome: KeyOutcome }
  /** Said of a key the job does not have, or of a job that was never sent. */
  | { type: 'ignored'; keyId: string; reason: 'unknown key' | 'never sent' };

export interface Transition {
  job: Job;
  steps: Step[];
}

const JOURNAL_REPLACED: KeyOutcome = {
  status: 'unknown',
  error: {
    code: 'CONNECTION_LOST',
    message:
      'The encoder lost its journal after the request was sent to it. Read the card before it is used.',
  },
};
const FORGOTTEN: KeyOutcome = {
  status: 'unknown',
  error: {
    code: 'CONNECTION_LOST',
    message: 'The encoder no longer knows a request it had begun. Read the card before it is used.',
  },
};
const UNREADABLE: KeyOutcome = {
  status: 'failed',
  error: {
    code: 'INTERNAL',
    message: 'The gateway can no longer read the key data: its vault key was replaced. Send a new request.',
  },
};
const SILENT: KeyOutcome = {
  status: 'unknown',
  error: {
    code: 'ENCODER_TIMEOUT',
    message: 'The encoder did not say in time what became of this key. Read the card before it is used.',
  },
};

export function transition(job: Job, input: Input): Transition {
  switch (input.type) {
    case 'sent':
      if (job.phase !== 'waiting') return unchanged(job);
      return unchanged({ phase: 'sent', journal: input.journal, cancelling: false, entries: job.entries });
    case 'unreadable':
      return job.phase === 'waiting' ? endOpenEntries(job, UNREADABLE) : unchanged(job);
    case 'progress':
      return reported(job, [input.report]);
    case 'held':
      return input.known ? reported(job, input.entries) : notHeld(job);
    case 'born':
      // Rules 2: what the old journal knew is lost, and the new one would let the entry be written again.
      if (job.phase !== 'sent' || job.journal === input.journal) return unchanged(job);
      return endOpenEntries(job, JOURNAL_REPLACED);
    case 'cancel':
      if (job.phase === 'waiting') return endOpenEntries(job, { status: 'cancelled' });
      return unchanged(job.phase === 'sent' ? { ...job, cancelling: true } : job);
    case 'deadline':
      return job.phase === 'waiting' ? endOpenEntries(job, { status: 'expired' }) : unchanged(job);
    case 'graceOver':
      return job.phase === 'sent' ? endOpenEntries(job, SILENT) : unchanged(job);
  }
}

/**
 * An entry that up/job does not list is left as it is: the encoder has no word for "held, not begun", so its silence
 * proves nothing, and the deadline settles what it never mentions.
 */
function reported(job: Job, reports: EntryReport[]): Transition {
  if (job.phase === 'waiting') {
    // "Sent" is stored before anything is sent (Rules 4), so this job is one that a restored backup knows less of. The
    // encoder reports it again when the job is sent: its journal has the same jobId.
    return {
      job,
      steps: reports.map(({ keyId }) => ({ type: 'ignored', keyId, reason: 'never sent' }) as const),
    };
  }
  const entries = [...job.entries];
  const steps: Step[] = [];
  for (const report of reports) {
    const index = entries.findIndex(({ keyId }) => keyId === report.keyId);
    const entry = entries[index];
    if (!entry) {
      steps.push({ type: 'ignored', keyId: report.keyId, reason: 'unknown key' });
      continue;
    }
    const next = afterReport(entry, report);
    if (next === entry) continue;
    entries[index] = next;
    if (next.ended && next.late) steps.push({ type: 'late', index, outcome: next.late });
    else steps.push({ type: 'moved', index, entry: next });
  }
  return { job: withEntries(job, entries), steps };
}

/** Returns the same object when the report says nothing new: doubled, overtaken by a later one, or late and alike. */
function afterReport(entry: Entry, report: EntryReport): Entry {
  const said = meaning(report);
  if (!entry.ended) {
    if (typeof said !== 'string') return ended(entry.keyId, said);
    const isForward = OPEN_STATUSES.indexOf(said) > OPEN_STATUSES.indexOf(entry.status);
    return isForward ? { keyId: entry.keyId, ended: false, status: said } : entry;
  }
  if (typeof said === 'string' || said.status === entry.outcome.status || entry.late) return entry;
  return { ...entry, late: said };
}

/** Rules 7. An error belongs to `failed` and `unknown`; elsewhere the status says all. */
function meaning({ status, error }: EntryReport): OpenStatus | KeyOutcome {
  switch (status) {
    case 'written':
      return { status };
    case 'unknown':
      return error ? { status, error } : { status };
    case 'failed':
      if (error?.code === 'CANCELLED') return { status: 'cancelled' };
      if (error?.code === 'EXPIRED') return { status: 'expired' };
      return { status, error: error ?? { code: 'INTERNAL', message: 'The encoder gave no reason.' } };
    default:
      return status;
  }
}

/**
 * The encoder says that it does not have the job, in the journal the job went to. Down messages of one connection
 * arrive in order and a cancel is never followed by a write, so a write that was lost will not turn up any more: when
 * cancelling, the job is cancelled; otherwise the write is repeated (dispatch.ts) and nothing changes here. But an
 * encoder that has reported on the job and then forgot it would write its keys again.
 */
function notHeld(job: Job): Transition {
  if (job.phase !== 'sent') return unchanged(job);
  const isBegun = job.entries.some((entry) => entry.ended || entry.status !== 'queued');
  if (isBegun) return endOpenEntries(job, FORGOTTEN);
  return job.cancelling ? endOpenEntries(job, { status: 'cancelled' }) : unchanged(job);
}

function endOpenEntries(job: Job, outcome: KeyOutcome): Transition {
  const steps: Step[] = [];
  const entries = job.entries.map((entry, index) => {
    if (entry.ended) return entry;
    const next = ended(entry.keyId, outcome);
    steps.push({ type: 'moved', index, entry: next });
    return next;
  });
  return { job: withEntries(job, entries), steps };
}

function withEntries(job: Job, entries: Entry[]): Job {
  if (entries.every((entry) => entry.ended)) return { phase: 'ended', entries };
  return { ...job, entries };
}

const ended = (keyId: string, outcome: KeyOutcome): Entry => ({ keyId, ended: true, outcome, late: null });
const unchanged = (job: Job): Transition => ({ job, steps: [] });

/** The status of the whole, from those of its entries: see JOB_STATUSES. */
export function jobStatus(entries: Entry[]): JobStatus {
  const statuses = entries.map(entryStatus);
  if (entries.every((entry) => entry.ended)) {
    return TERMINAL_STATUSES.find((status) => statuses.includes(status)) ?? 'unknown';
  }
  return statuses.every((status) => status === 'queued') ? 'queued' : 'inProgress';
}

export function entryStatus(entry: Entry): EntryStatus {
  return entry.ended ? entry.outcome.status : entry.status;
}
