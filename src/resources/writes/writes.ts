/**
 * Write requests (interface specification 4.3): accepts, cancels and shows them, and takes what encoders report.
 * machine.ts says what may become of a request, ledger.ts stores it, dispatch.ts sends it and minds its deadline.
 */
import { randomUUID } from 'node:crypto';
import { GatehouseError } from '../../platform/errors.ts';
import type { Caller } from '../../platform/principal.ts';
import type { EncoderReports } from '../encoders/connections.ts';
import type { WriteContext } from './context.ts';
import { Dispatch, sealContext } from './dispatch.ts';
import { auditName, type Ledger, openLedger } from './ledger.ts';
import type { Input } from './machine.ts';
import type { ListQuery, WriteRequestBody, WriteRequestPage, WriteRequestStatus } from './schema.ts';
import { openWriteTable, type RequestRow } from './table.ts';

/** Requests of one encoder that wait behind the one under way: an hour of work at a busy desk. */
const WAITING_MAX = 8;
/** One line per encoder and minute about reports that fit nothing: a confused encoder must not fill the log. */
const WARN_EVERY_MS = 60_000;

export interface RequestPath {
  encoderId: string;
  requestId: string;
}
export interface Writes {
  /** Durable when it resolves. Throws NOT_FOUND, or REQUEST_ID_REUSED, NOT_CONNECTED, ENCODER_UPGRADING, QUEUE_FULL … */
  accept(path: RequestPath, body: WriteRequestBody, caller: Caller): Promise<WriteRequestStatus>;
  /** Of a finished request: changes nothing. */
  cancel(path: RequestPath, caller: Caller): Promise<WriteRequestStatus>;
  get(path: RequestPath): WriteRequestStatus;
  list(encoderId: string, query: ListQuery): WriteRequestPage;
  /** Requests accepted and not finished. */
  openCount(): number;
  /** Of one encoder. */
  openOf(encoderId: string): number;
  /** Those not finished, and those finished since then (epoch milliseconds). */
  counts(finishedSince: number): { status: string; count: number }[];
  reports: EncoderReports;
  /** Sends and minds deadlines until the signal fires; throws when the storage fails, and may then be run again. */
  run(signal: AbortSignal): Promise<never>;
}

interface Parts extends WriteContext {
  ledger: Ledger;
  dispatch: Dispatch;
}

export function openWrites(below: Omit<WriteContext, 'table'>): Writes {
  const context: WriteContext = { ...below, table: openWriteTable(below.database) };
  const { table } = context;
  const ledger = openLedger(context);
  const dispatch = new Dispatch(context, ledger);
  const parts: Parts = { ...context, ledger, dispatch };
  return {
    accept: (path, body, caller) => accept(parts, path, body, caller),
    cancel: (path, caller) => cancel(parts, path, caller),
    get: (path) => ledger.status(existing(parts, path)),
    list: (encoderId, query) => list(parts, encoderId, query),
    openCount: () => table.countOpen.get()?.count ?? 0,
    openOf: (encoderId) => table.open.all(encoderId).length,
    counts: (finishedSince) => table.countByStatus.all(finishedSince),
    reports: openEncoderReports(parts),
    run: (signal) => dispatch.run(signal),
  };
}

async function accept(
  parts: Parts,
  { encoderId, requestId }: RequestPath,
  body: WriteRequestBody,
  caller: Caller,
): Promise<WriteRequestStatus> {
  const { database, vault, table, ledger, dispatch } = parts;
  assertUniqueKeys(body);
  const content = canonical(body);
  const digest = vault.digest('write request', `${encoderId}\n${requestId}\n${content}`);
  let hasEnded = false;
  const status = await database.commit(() => {
    assertEncoder(parts, encoderId);
    const known = table.byRequest.get(encoderId, requestId);
    if (!known) {
      const accepted = ledger.status(insert(parts, { encoderId, requestId, body, digest, ...caller }));
      hasEnded = dispatch.advance(encoderId);
      return accepted;
    }
    if (known.digest === digest) return ledger.status(known);
    throw new GatehouseError(
      'REQUEST_ID_REUSED',
      `Request ${requestId} of encoder ${encoderId} was sent before with another content. Choose a new requestId.`,
    );
  });
  if (hasEnded) parts.events.wake();
  dispatch.accepted(encoderId);
  return status;
}

/** Inside the commit. */
function insert(
  parts: Parts,
  request: RequestPath & { body: WriteRequestBody; digest: string } & Caller,
): RequestRow {
  const { vault, audit, table, ledger, clock, expiryMs } = parts;
  const { encoderId, requestId, body, digest, principal, correlationId } = request;
  assertReady(parts, encoderId);
  const jobId = randomUUID();
  const now = clock.now();
  table.insertRequest.run(
    jobId,
    encoderId,
    requestId,
    body.description ?? null,
    digest,
    'queued',
    now,
    correlationId,
    now + expiryMs,
  );
  ledger.accepted(jobId);
  for (const [index, { keyId, blocks }] of body.data.entries()) {
    const sealed = vault.seal(Buffer.from(JSON.stringify(blocks)), sealContext(jobId, keyId));
    table.insertEntry.run(jobId, index, keyId, sealed, 'queued', now);
  }
  audit.record({
    principal,
    action: 'write-request.accept',
    object: auditName({ encoder_id: encoderId, request_id: requestId }),
    outcome: 'accepted',
    detail: { jobId, keyIds: body.data.map(({ keyId }) => keyId) },
    correlationId,
  });
  return existing(parts, { encoderId, requestId });
}

async function cancel(parts: Parts, path: RequestPath, caller: Caller): Promise<WriteRequestStatus> {
  const { database, audit, events, ledger, dispatch } = parts;
  const status = await database.commit(() => {
    const request = existing(parts, path);
    const isNew = request.finished_at === null && request.cancel_requested_at === null;
    if (!isNew) return ledger.status(request);
    audit.record({
      principal: caller.principal,
      action: 'write-request.cancel',
      object: auditName(request),
      outcome: 'accepted',
      detail: { jobId: request.job_id },
      correlationId: caller.correlationId,
    });
    ledger.apply(request, { type: 'cancel' });
    return ledger.status(existing(parts, path));
  });
  dispatch.look(path.encoderId);
  events.wake();
  return status;
}

function list(parts: Parts, encoderId: string, query: ListQuery): WriteRequestPage {
  const { database, table, ledger } = parts;
  const { cursor, limit, status, keyId } = query;
  assertEncoder(parts, encoderId);
  const below = cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(cursor);
  const page = () =>
    status
      ? table.pageOfStatus.all(encoderId, below, status, limit + 1)
      : table.page.all(encoderId, below, limit + 1);
  const rows = keyId ? table.pageOfKey.all(keyId, encoderId, below, status ?? null, limit + 1) : page();
  const shown = rows.slice(0, limit);
  return {
    items: shown.flatMap((row) => database.legible(auditName(row), () => ledger.status(row))),
    next: rows.length > limit ? String(shown.at(-1)?.seq) : null,
  };
}

function openEncoderReports({ table, ledger, dispatch, events, clock, log }: Parts): EncoderReports {
  const quietUntil = new Map<string, number>();

  function warn(encoderId: string, fields: Record<string, unknown>, message: string): void {
    const now = clock.monotonic();
    if (now < (quietUntil.get(encoderId) ?? 0)) return;
    quietUntil.set(encoderId, now + WARN_EVERY_MS);
    log.warn({ encoderId, ...fields }, message);
  }

  /** What fits nothing is logged and acknowledged all the same: the encoder would repeat it for ever. */
  function apply(encoderId: string, jobId: string, input: Input): void {
    const request = table.byJob.get(jobId);
    // An encoder has a say in its own jobs only.
    if (request?.encoder_id !== encoderId) {
      warn(encoderId, { jobId }, 'report on a write request that is not known here');
      return;
    }
    const ignored = ledger.apply(request, input);
    if (ignored[0]) warn(encoderId, { jobId, ...ignored[0] }, 'report on a write request ignored');
  }

  return {
    born(encoderId, journal) {
      for (const request of table.open.all(encoderId)) ledger.apply(request, { type: 'born', journal });
    },
    job(encoderId, { jobId, known, entries }) {
      apply(encoderId, jobId, { type: 'held', known, entries });
      if (known) dispatch.answered(encoderId, jobId);
    },
    progress(encoderId, { jobId, keyId, status, error }) {
      apply(encoderId, jobId, { type: 'progress', report: { keyId, status, error } });
    },
    wake(encoderId, cause) {
      if (cause === 'fresh-connection') dispatch.connectionIsFresh(encoderId);
      dispatch.look(encoderId);
      events.wake();
    },
  };
}

function existing(parts: Parts, { encoderId, requestId }: RequestPath): RequestRow {
  assertEncoder(parts, encoderId);
  const request = parts.table.byRequest.get(encoderId, requestId);
  if (request) return request;
  throw new GatehouseError(
    'NOT_FOUND',
    `Encoder ${encoderId} has no write request ${requestId}. Finished ones are kept for 30 days.`,
  );
}

function assertEncoder({ encoders }: Parts, encoderId: string): void {
  if (encoders.exists(encoderId)) return;
  throw new GatehouseError(
    'NOT_FOUND',
    `There is no encoder ${encoderId}. Check its id, or register it first.`,
  );
}

function assertReady({ encoders, connections, table }: Parts, encoderId: string): void {
  if (!connections.connected(encoderId)) {
    throw new GatehouseError(
      'NOT_CONNECTED',
      `Encoder ${encoderId} is not connected. Check its power and network (one that was revoked has to be registered again), then send the request again.`,
    );
  }
  if (encoders.upgrading(encoderId)) {
    throw new GatehouseError(
      'ENCODER_UPGRADING',
      `Encoder ${encoderId} is installing new software. Send the request again when it has finished.`,
    );
  }
  if (table.open.all(encoderId).length > WAITING_MAX) {
    throw new GatehouseError(
      'QUEUE_FULL',
      `${WAITING_MAX} requests already wait for encoder ${encoderId}. Send this one again when some have finished.`,
    );
  }
}

function assertUniqueKeys({ data }: WriteRequestBody): void {
  const seen = new Set<string>();
  const details = data.flatMap(({ keyId }, index) => {
    if (!seen.has(keyId)) {
      seen.add(keyId);
      return [];
    }
    return [{ path: `/data/${index}/keyId`, code: 'DUPLICATE_KEY_ID', message: `${keyId} was used before` }];
  });
  if (details.length === 0) return;
  throw new GatehouseError('DUPLICATE_KEY_ID', 'Every entry needs a keyId of its own.', { details });
}

/** The same text for the same content, whatever the order of fields and the case of UUIDs in the body. */
function canonical({ data, description }: WriteRequestBody): string {
  return JSON.stringify([description ?? null, data.map(({ keyId, blocks }) => [keyId, blocks])]);
}
