/** What goes back: headers every answer has, and the one error body. */
import { randomUUID } from 'node:crypto';
import { constants, gzipSync } from 'node:zlib';
import { ERROR_STATUS, GatehouseError } from '../errors.ts';
import type { Log } from '../log.ts';
import { ClientGone } from './body.ts';
import type { ErrorBody } from './openapi-errors.ts';
import type { StoredBytes } from './operation.ts';

/** Names the protection space (RFC 6750, 3). */
const CHALLENGE = 'Bearer realm="gatehouse"';
/** The number other servers log for a client that left; no one receives it. */
const STATUS_CLIENT_GONE = 499;

/** On every answer. No HSTS: with a site CA, an expired certificate could then not be clicked past on the site. */
const FIXED_HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Content-Type': 'application/json',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/** What a client may choose as its correlation id. */
const CORRELATION_ID = /^[\w-]{1,64}$/;

/** From X-Request-Id, or drawn. */
export function correlationIdOf(offered: string | null | undefined): string {
  return offered && CORRELATION_ID.test(offered) ? offered : randomUUID();
}

export interface Reply {
  status: number;
  /** Goes out as it is when `headers` says of which type it is, else as JSON. */
  body: unknown;
  headers?: Record<string, string>;
}

export function responseOf(reply: Reply, correlationId: string, close: boolean): Response {
  const hasType = reply.headers?.['Content-Type'] !== undefined;
  return new Response(
    hasType
      ? (reply.body as ReadableStream | Uint8Array<ArrayBuffer> | string | null)
      : JSON.stringify(reply.body),
    {
      status: reply.status,
      headers: {
        ...FIXED_HEADERS,
        'X-Request-Id': correlationId,
        ...(close && { Connection: 'close' }),
        ...reply.headers,
      },
    },
  );
}

/** Compressed once, for storedReply. */
export function storedBytes(plain: Uint8Array<ArrayBuffer>): StoredBytes {
  return { plain, gzip: gzipSync(plain, { level: constants.Z_BEST_COMPRESSION }) };
}

/** Takes gzip, and does not say `gzip;q=0` (RFC 9110, 12.5.3). */
const TAKES_GZIP = /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i;

/** `more`: headers besides. */
export function storedReply(
  status: number,
  { plain, gzip }: StoredBytes,
  request: Request,
  more: Record<string, string> = {},
): Reply {
  const compressed = TAKES_GZIP.test(request.headers.get('accept-encoding') ?? '');
  const headers = {
    'Content-Type': 'application/json',
    Vary: 'Accept-Encoding',
    ...(compressed && { 'Content-Encoding': 'gzip' }),
    ...more,
  };
  return { status, body: compressed ? gzip : plain, headers };
}

/** A client that asked for what cannot be has its answer; of our own trouble the operator learns all there is. */
function logCause({ code, message, cause }: GatehouseError, correlationId: string, log: Log): void {
  if (ERROR_STATUS[code] >= 500) {
    log.warn({ err: cause, code, correlationId }, message);
  } else {
    const reason = cause instanceof Error ? cause.message : String(cause);
    log.info({ reason, code, correlationId }, message);
  }
}

export function errorBody(error: GatehouseError, correlationId: string): ErrorBody {
  const { code, message, details } = error;
  return { error: code, message, correlationId, ...(details && { details }) };
}

export interface Asked {
  correlationId: string;
  /** A wrong credential has another answer than none (RFC 6750, 3.1). */
  credentialsOffered: boolean;
}

/** Turns whatever was thrown into the error body; what was not meant for the client goes to the log alone. */
export function errorReply(error: unknown, asked: Asked, log: Log): Reply {
  const { correlationId, credentialsOffered } = asked;
  if (error instanceof ClientGone) {
    log.debug({ err: error.cause, correlationId }, error.message);
    return { status: STATUS_CLIENT_GONE, body: {} };
  }
  if (!(error instanceof GatehouseError)) {
    log.error({ err: error, correlationId }, 'a request failed for a reason that was not foreseen');
    const message = 'Something went wrong in the gateway. Give its operator the correlation id.';
    return { status: 500, body: errorBody(new GatehouseError('INTERNAL', message), correlationId) };
  }
  if (error.cause !== undefined) logCause(error, correlationId, log);
  const headers: Record<string, string> = {};
  if (error.retryAfterSeconds !== undefined) headers['Retry-After'] = String(error.retryAfterSeconds);
  if (error.code === 'UNAUTHORIZED') {
    headers['WWW-Authenticate'] = credentialsOffered ? `${CHALLENGE}, error="invalid_token"` : CHALLENGE;
  }
  if (error.code === 'FORBIDDEN') headers['WWW-Authenticate'] = `${CHALLENGE}, error="insufficient_scope"`;
  return { status: ERROR_STATUS[error.code], body: errorBody(error, correlationId), headers };
}
