/**
 * The write requests as they are stored: reads a job for machine.ts and stores what follows from an input, with its
 * events and its audit, all inside the caller's commit. Nothing else changes a job.
 */
import { storedTime } from '../../platform/database/damaged-rows.ts';
import type { Database } from '../../platform/database/database.ts';
import { SYSTEM_PRINCIPAL } from '../../platform/principal.ts';
import type { AuditEntry } from '../../services/audit/entry.ts';
import type { WriteContext } from './context.ts';
import {
  type Entry,
  entryStatus,
  type Input,
  type Job,
  jobStatus,
  type KeyOutcome,
  OPEN_STATUSES,
  type Step,
  TERMINAL_STATUSES,
  type TerminalStatus,
  transition,
  type WriteError,
  type WriteErrorCode,
} from './machine.ts';
import type { WriteRequestStatus } from './schema.ts';
import type { EntryRow, RequestRow } from './table.ts';

export interface Ledger {
  /** Inside the commit job that accepts it. */
  accepted(jobId: string): void;
  /** Inside a commit job. Returns what was ignored, for the log. */
  apply(
    request: RequestRow,
    input: Input,
  ): Extract<
    Step,
    {
      type: 'ignored';
    }
  >[];
  /** The status resource, of committed content or inside a commit job. */
  status(request: RequestRow): WriteRequestStatus;
}

export function openLedger(options: WriteContext): Ledger {
  const { table, database } = options;
  const lateOf = lateOutcomes(database);
  const measured = openMeasured(options);
  return {
    accepted: measured.accepted,
    apply(request, input) {
      const before = toJob(request, table.entries.all(request.job_id), lateOf);
      const { job: after, steps } = transition(before, input);
      const entries = [...before.entries];
      for (const step of steps) {
        if (step.type === 'moved') {
          entries[step.index] = step.entry;
          storeMove(options, request, entries, step);
          if (step.entry.ended) measured.ended(request, step.entry.outcome.status);
        } else if (step.type === 'late') storeLate(options, request, entries, step);
      }
      storeJob(options, request, before, after);
      if (after.phase === 'ended') measured.finished(request);
      return steps.filter((step) => step.type === 'ignored');
    },

    status: (request) => ({
      encoderId: request.encoder_id,
      requestId: request.request_id,
      description: request.description,
      status: request.status as WriteRequestStatus['status'],
      acceptedAt: storedTime(auditName(request), request.accepted_at),
      expiresAt: storedTime(auditName(request), request.expires_at),
      position:
        request.finished_at === null
          ? (table.openAhead.get(request.encoder_id, request.seq)?.count ?? 0)
          : null,
      entries: table.entries.all(request.job_id).map((row) => {
        const late = lateOf(request, row);
        return {
          keyId: row.key_id,
          status: row.status as WriteRequestStatus['entries'][number]['status'],
          ...errorOf(row),
          ...(late && { lateOutcome: late }),
        };
      }),
    }),
  };
}

/** Counts what is on the disk alone, each key once, as it ended first. */
function openMeasured({ database, clock, knownTime, meter }: WriteContext) {
  /** Monotonic, by jobId: open requests that this run of the gateway accepted. */
  const acceptedAt = new Map<string, number>();

  /** Of an earlier run the wall clock alone knows; then never more than the request was given. */
  function elapsedMs({ job_id, accepted_at, expires_at }: RequestRow): number {
    const since = acceptedAt.get(job_id);
    if (since !== undefined) return clock.monotonic() - since;
    return Math.max(0, Math.min(knownTime() - accepted_at, expires_at - accepted_at));
  }
  return {
    accepted(jobId: string): void {
      const now = clock.monotonic();
      database.whenStored(() => void acceptedAt.set(jobId, now));
    },
    ended(request: RequestRow, outcome: TerminalStatus): void {
      const milliseconds = elapsedMs(request);
      database.whenStored(() => meter.key(outcome, milliseconds));
    },
    finished: ({ job_id }: RequestRow): void => database.whenStored(() => void acceptedAt.delete(job_id)),
  };
}

/** What the audit calls a write request. */
export const auditName = (request: Pick<RequestRow, 'encoder_id' | 'request_id'>): string =>
  `encoder/${request.encoder_id}/write-request/${request.request_id}`;

function storeMove(
  { table, events, clock }: WriteContext,
  request: RequestRow,
  entries: Entry[],
  { index, entry }: Extract<Step, { type: 'moved' }>,
): void {
  const error = entry.ended ? entry.outcome.error : undefined;
  const { job_id: jobId } = request;
  if (entry.ended) {
    const { status } = entry.outcome;
    table.endEntry.run(status, error?.code ?? null, error?.message ?? null, clock.now(), jobId, index);
  } else table.setEntryStatus.run(entry.status, clock.now(), jobId, index);
  events.writeProgress({
    encoderId: request.encoder_id,
    requestId: request.request_id,
    jobId,
    keyId: entry.keyId,
    entryIndex: index,
    entryCount: entries.length,
    status: entryStatus(entry),
    ...(error && { error }),
    totals: totals(entries),
    correlationId: request.correlation_id,
  });
}

function storeLate(
  { table, audit, clock }: WriteContext,
  request: RequestRow,
  entries: Entry[],
  { index, outcome }: Extract<Step, { type: 'late' }>,
): void {
  const late = { ...outcome, reportedAt: new Date(clock.now()).toISOString() };
  table.setLateOutcome.run(JSON.stringify(late), request.job_id, index);
  const entry = entries[index];
  audit.record(
    ofTheGateway(request, 'late-outcome', outcome.status, {
      keyId: entry?.keyId,
      endedAs: entry && entryStatus(entry),
      errorCode: outcome.error?.code,
    }),
  );
}

function storeJob({ table, audit, clock }: WriteContext, request: RequestRow, before: Job, after: Job): void {
  const { job_id: jobId } = request;
  const status = jobStatus(after.entries);
  if (status !== request.status) table.setStatus.run(status, jobId);
  if (before.phase === after.phase) {
    const wasCancelling = before.phase === 'sent' && before.cancelling;
    const isCancelling = after.phase === 'sent' && after.cancelling;
    if (isCancelling && !wasCancelling) table.setCancelRequested.run(clock.now(), jobId);
  } else if (after.phase === 'sent') table.setSent.run(after.journal, clock.now(), jobId);
  else {
    table.setFinished.run(clock.now(), jobId);
    audit.record(ofTheGateway(request, 'finish', status, { totals: totals(after.entries) }));
  }
}

function ofTheGateway(
  request: RequestRow,
  verb: string,
  outcome: string,
  detail: Record<string, unknown>,
): AuditEntry {
  return {
    principal: SYSTEM_PRINCIPAL,
    action: `write-request.${verb}`,
    object: auditName(request),
    outcome,
    detail: { jobId: request.job_id, ...detail },
    correlationId: request.correlation_id,
  };
}

/** How many entries ended how, and how many have not. */
function totals(entries: Entry[]): Record<string, number> {
  const counts: Record<string, number> = { open: 0 };
  for (const status of TERMINAL_STATUSES) counts[status] = 0;
  for (const entry of entries) {
    const key = entry.ended ? entry.outcome.status : 'open';
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

/** As it is stored. */
type LateOutcome = NonNullable<WriteRequestStatus['entries'][number]['lateOutcome']> & KeyOutcome;
type LateOf = (request: RequestRow, row: EntryRow) => LateOutcome | null;

/** A damaged one is named in the status and counts as none, so that the next report is stored in its place. */
function lateOutcomes(database: Pick<Database, 'legible'>): LateOf {
  return (request, { key_id, late_outcome: text }) => {
    if (text === null) return null;
    const [late = null] = database.legible(
      `${auditName(request)}/${key_id}`,
      () => JSON.parse(text) as LateOutcome,
    );
    return late;
  };
}

function toJob(request: RequestRow, rows: EntryRow[], lateOf: LateOf): Job {
  const entries = rows.map((row) => toEntry(row, lateOf(request, row)));
  if (request.finished_at !== null) return { phase: 'ended', entries };
  if (request.sent_journal === null) return { phase: 'waiting', entries };
  return {
    phase: 'sent',
    journal: request.sent_journal,
    cancelling: request.cancel_requested_at !== null,
    entries,
  };
}

function toEntry(row: EntryRow, late: LateOutcome | null): Entry {
  const keyId = row.key_id;
  const open = OPEN_STATUSES.find((status) => status === row.status);
  if (open) return { keyId, ended: false, status: open };
  return {
    keyId,
    ended: true,
    outcome: { status: row.status as TerminalStatus, ...errorOf(row) },
    late,
  };
}

function errorOf(row: EntryRow): { error?: WriteError } {
  if (row.error_code === null) return {};
  const code = row.error_code as WriteErrorCode;
  return { error: row.error_message === null ? { code } : { code, message: row.error_message } };
}
