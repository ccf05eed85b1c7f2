/**
 * The closed list of error codes a client can meet, each with its HTTP status. What the client reads is the code, the
 * message and the details; what the operator reads is the `cause`, which never leaves the log.
 */
export const ERROR_STATUS = {
  INVALID_JSON: 400,
  VALIDATION_FAILED: 400,
  UNKNOWN_FIELD: 400,
  ID_MISMATCH: 400,
  CERT_INVALID: 400,
  CERT_UNTRUSTED: 400,
  CERT_EXPIRED: 400,
  CN_MISMATCH: 400,
  SIGNATURE_INVALID: 400,
  DUPLICATE_KEY_ID: 400,
  CONFIGURATION_INVALID: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  VERSION_CONFLICT: 409,
  ALREADY_EXISTS: 409,
  RELAY_IN_USE: 409,
  IN_USE: 409,
  NO_RELAY: 409,
  WATCHDOG_NOT_PROVEN: 409,
  READER_REFUSED: 409,
  NO_LOCK: 409,
  IN_PROGRESS: 409,
  CONFIRMATION_NEEDED: 409,
  BATTERY_LOW: 409,
  PUBLIC_KEY_REUSED: 409,
  NOTHING_APPLIED: 409,
  CATALOGUE_PENDING: 409,
  OUTCOME_UNKNOWN: 409,
  STAND_OPEN_NOT_ALLOWED: 409,
  STANDS_OPEN: 409,
  PIN_REQUIRED: 409,
  PRECONDITION_FAILED: 412,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  EXPECTATION_FAILED: 417,
  NOT_CONNECTED: 422,
  QUEUE_FULL: 422,
  ENCODER_UPGRADING: 422,
  REQUEST_ID_REUSED: 422,
  IDEMPOTENCY_KEY_REUSED: 422,
  NOT_SUPPORTED: 422,
  RATE_LIMITED: 429,
  HEADERS_TOO_LARGE: 431,
  INTERNAL: 500,
  ROW_DAMAGED: 500,
  STORAGE_UNAVAILABLE: 503,
  SHUTTING_DOWN: 503,
  DEVICE_OFFLINE: 503,
} as const;

export type ErrorCode = keyof typeof ERROR_STATUS;

/** One thing wrong with one field: `path` is a JSON pointer ("" is the whole body), `code` is stable. */
export interface ErrorDetail {
  path: string;
  code: string;
  message: string;
  /** What the code is about, where it is about more than the place. */
  parameters?: Readonly<Record<string, string | number>>;
}

export interface GatehouseErrorOptions {
  details?: ErrorDetail[];
  /** Whole seconds, for Retry-After. */
  retryAfterSeconds?: number;
  cause?: unknown;
}

/** An answer other than the one hoped for. `message` says what to do next; it is read by a person at a desk. */
export class GatehouseError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetail[] | undefined;
  readonly retryAfterSeconds: number | undefined;
  constructor(code: ErrorCode, message: string, options: GatehouseErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GatehouseError';
    this.code = code;
    this.details = options.details;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** VALIDATION_FAILED: what the field says cannot be. `path` is a JSON pointer, `message` goes on from it. */
export function notPossible(path: string, message: string, cause?: unknown): GatehouseError {
  return new GatehouseError('VALIDATION_FAILED', `Not valid: ${path} ${message}.`, {
    details: [{ path, code: 'NOT_POSSIBLE', message }],
    cause,
  });
}

/** A driver did not take what the gateway made for it: `refused` says what was not done; nothing is wrong with the device. */
export function ownFault(refused: string, cause: Error): GatehouseError {
  return new GatehouseError(
    'INTERNAL',
    `${refused}: the driver does not take this command (${cause.message}). The fault is in Gatehouse, not in the device: report it, with the log of this minute.`,
    { cause },
  );
}
