/**
 * Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): a POST that is repeated with its key is answered as the
 * first one was and is not carried out again.
 *
 *   no row → row without an answer (durable before the handler begins) → row with the answer (durable before it is sent)
 *
 * A row without an answer whose request is not running was cut short, by the end of the gateway or by a fault: whether it
 * was carried out is not known, and it is not tried again. An answer that says that nothing was done and asks for a
 * repetition removes the row. Where the disk fails at that, too, this process knows that nothing was done.
 *
 * A request that may be carried out twice, such as one that closes a door, waits for no row: while the disk fails it is
 * carried out without its key, and one that was cut short is carried out again.
 */
import type { Database } from '../database/database.ts';
import { type ErrorCode, type ErrorDetail, GatehouseError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Vault } from '../vault.ts';
import { idempotencyTable, type KeyRow } from './idempotency-table.ts';
import type { Reply } from './reply.ts';

/** Far longer than any client repeats a request by itself. */
const KEPT_MS = 86_400_000;
/** Of one principal, some 10 MB. More are refused: without an early key its request would be carried out twice. */
const KEYS_MAX = 10_000;
/** Rows removed with each new one: more than come in, and a bounded time. */
const FORGOTTEN_AT_ONCE = 100;

/** 1 to 128 visible ASCII characters but `"` and `,`, bare or as a string of RFC 9651, 3.3.3. A comma would join two headers. */
const KEY = /^(?:"([\x21\x23-\x2b\x2d-\x7e]{1,128})"|([\x21\x23-\x2b\x2d-\x7e]{1,128}))$/;

/** They are answered before anything is done, and ask for the same request once more. */
const ASKS_FOR_REPETITION: readonly ErrorCode[] = ['RATE_LIMITED', 'SHUTTING_DOWN', 'STORAGE_UNAVAILABLE'];

const REUSED =
  'This Idempotency-Key was sent before with another request. Send each request with a key of its own.';
const CUT_SHORT =
  'The first request with this Idempotency-Key was cut short: whether it was carried out is not known, and it is not carried out again. Read the state of the resource, then send what is still needed with a new key.';

/** The key in the header. Throws VALIDATION_FAILED. */
export function idempotencyKeyOf(header: string): string {
  const [, quoted, bare] = KEY.exec(header) ?? [];
  const key = quoted ?? bare;
  if (key !== undefined) return key;
  const message = 'expected 1 to 128 visible ASCII characters without " and ,';
  throw new GatehouseError('VALIDATION_FAILED', `Not valid: Idempotency-Key: ${message}.`, {
    details: [{ path: 'Idempotency-Key', code: 'INVALID_FORMAT', message }],
  });
}

export interface KeyedRequest {
  principalId: string;
  key: string;
  /** All that makes it this request and no other: operation, path, query, If-Match, body. */
  content: string;
  /** As the operation has it. */
  mayRunTwice: boolean;
}

export interface Idempotency {
  /**
   * Carries `work` out unless this key was used: then resolves or rejects as the first one did, also while that is still
   * running. Throws IDEMPOTENCY_KEY_REUSED, OUTCOME_UNKNOWN or STORAGE_UNAVAILABLE.
   */
  once(request: KeyedRequest, work: () => Promise<Reply>): Promise<Reply>;
}

export interface IdempotencyOptions {
  database: Database;
  digest: Vault['digest'];
  /** The known time (known-time.ts): a wall clock that jumps must end no key. */
  now(): number;
  log: Log;
}

type KeyedOutcome =
  | { reply: Reply }
  | { error: { code: ErrorCode; message: string; details?: ErrorDetail[] } };

interface Running {
  digest: string;
  reply: Promise<Reply>;
}

export function openIdempotency({ database, digest, now, log }: IdempotencyOptions): Idempotency {
  const table = idempotencyTable(database);
  const running = new Map<string, Running>();
  /** Nothing was done, and their row could not be removed. Each has a row, of which there are a bounded number. */
  const notDone = new Set<string>();

  /** Inside a commit job. Throws RATE_LIMITED. */
  function reserve({ principalId, key }: KeyedRequest, requestDigest: string): void {
    const at = now();
    table.forgetBefore.run(at - KEPT_MS, FORGOTTEN_AT_ONCE);
    const { count = 0, oldest } = table.ofPrincipal.get(principalId, at - KEPT_MS) ?? {};
    if (count >= KEYS_MAX) throw tooMany((oldest ?? at) + KEPT_MS - at);
    table.insert.run(principalId, key, requestDigest, at);
  }

  async function keep({ principalId, key }: KeyedRequest, outcome: KeyedOutcome | undefined): Promise<void> {
    try {
      await database.commit(() => {
        if (outcome) table.setAnswer.run(JSON.stringify(outcome), principalId, key);
        else table.release.run(principalId, key);
      }, 'urgent');
    } catch (error) {
      if (!outcome) notDone.add(nameOf({ principalId, key }));
      log.error(
        { err: error },
        'the answer to an Idempotency-Key was not stored: its outcome counts as unknown',
      );
    }
  }

  async function carryOut(
    request: KeyedRequest,
    requestDigest: string,
    work: () => Promise<Reply>,
  ): Promise<Reply> {
    // Urgent: it precedes the actuations, which go on while the disk is full.
    const reserved = database.commit(() => reserve(request, requestDigest), 'urgent');
    const isReserved = await reserved.then(
      () => true,
      (error: unknown) => {
        if (!request.mayRunTwice || !isStorageUnavailable(error)) throw error;
        return false;
      },
    );
    if (!isReserved) return work();
    notDone.delete(nameOf(request));
    try {
      const reply = await work();
      await keep(request, { reply });
      return reply;
    } catch (error) {
      // Of any other fault the row without an answer says what is known.
      if (error instanceof GatehouseError) await keep(request, outcomeOf(error));
      throw error;
    }
  }

  return {
    async once(request, work) {
      const requestDigest = digest('idempotency key', request.content);
      const name = nameOf(request);
      const first = running.get(name);
      const stored = table.get.get(request.principalId, request.key, now() - KEPT_MS);
      const row = notDone.has(name) ? undefined : stored;
      const known = first ?? row;
      if (known && known.digest !== requestDigest) throw new GatehouseError('IDEMPOTENCY_KEY_REUSED', REUSED);
      if (first) return first.reply;
      if (row && !(row.answer === null && request.mayRunTwice)) return replay(row);
      const reply = carryOut(request, requestDigest, work);
      running.set(name, { digest: requestDigest, reply });
      return reply.finally(() => running.delete(name));
    },
  };
}

function nameOf({ principalId, key }: Pick<KeyedRequest, 'principalId' | 'key'>): string {
  return `${principalId} ${key}`;
}

function isStorageUnavailable(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'STORAGE_UNAVAILABLE';
}

/** Undefined: nothing was done, and the same request may be sent again. */
function outcomeOf({ code, message, details }: GatehouseError): KeyedOutcome | undefined {
  const isUnknown = details?.some((detail) => detail.code === 'OUTCOME_UNKNOWN');
  if (ASKS_FOR_REPETITION.includes(code) && !isUnknown) return undefined;
  return { error: { code, message, ...(details && { details }) } };
}

function replay({ answer }: KeyRow): Reply {
  if (answer === null) throw new GatehouseError('OUTCOME_UNKNOWN', CUT_SHORT);
  const outcome = JSON.parse(answer) as KeyedOutcome;
  if ('reply' in outcome) return outcome.reply;
  const { code, message, details } = outcome.error;
  throw new GatehouseError(code, message, { ...(details && { details }) });
}

function tooMany(waitMs: number): GatehouseError {
  return new GatehouseError(
    'RATE_LIMITED',
    `${KEYS_MAX} requests of this caller in a day had an Idempotency-Key; nothing was done. Wait, or send the request without a key.`,
    { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) },
  );
}
