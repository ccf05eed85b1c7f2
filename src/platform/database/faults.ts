/** What can be wrong with the disk or the file, as against a mistake in a statement, and the error that a client receives. */
import { GatehouseError } from '../errors.ts';

const RETRY_SECONDS = 5;

export function isStorageFault(error: unknown): boolean {
  return /^SQLITE_(FULL|IOERR|CORRUPT|NOTADB|READONLY|CANTOPEN|NOMEM|BUSY)/.test(codeOf(error));
}

/** There is no room, and that is all: an open connection is as good as before. SHMSIZE: not even room to open one. */
export function isDiskFull(error: unknown): boolean {
  return ['SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE', 'ENOSPC'].includes(codeOf(error));
}

/** The same of what an error was caused by. */
export function isFullWithin(error: unknown): boolean {
  return isDiskFull(error) || (error instanceof Error && isFullWithin(error.cause));
}

/** The log has no room for the whole of a commit: what was written of it counts for nothing. */
export function isCutShort(error: unknown): boolean {
  return codeOf(error) === 'SQLITE_FULL';
}

/** Another program holds it: an open connection is as good as before. */
export function isHeld(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY');
}

/** Refused before it was tried. */
export function diskFull(cause?: unknown): GatehouseError {
  return new GatehouseError(
    'STORAGE_UNAVAILABLE',
    "The gateway's disk is full; nothing was changed. Make room on it (df -h, gatehouse doctor), then try again.",
    { retryAfterSeconds: RETRY_SECONDS, cause },
  );
}

export function storageUnavailable(cause: unknown): GatehouseError {
  if (isDiskFull(cause)) return diskFull(cause);
  return new GatehouseError(
    'STORAGE_UNAVAILABLE',
    isHeld(cause)
      ? "Another program holds the gateway's database; nothing was changed. End that program (fuser -v gatehouse.db), then try again."
      : 'The gateway could not use its database; nothing was changed. Check its disk (gatehouse doctor), then try again.',
    { retryAfterSeconds: RETRY_SECONDS, cause },
  );
}

/** A COMMIT failed, and what it wrote could not be removed again: a power cut may bring it back. */
export function outcomeUnknown(cause: unknown): GatehouseError {
  const message =
    "The gateway's disk failed while this was being stored: whether it is stored is not known. Check the disk (gatehouse doctor); once gatehouse status shows no unknown outcome, read what you wanted to change before you repeat it.";
  return new GatehouseError('STORAGE_UNAVAILABLE', message, {
    retryAfterSeconds: RETRY_SECONDS,
    details: [{ path: '', code: 'OUTCOME_UNKNOWN', message: 'This may be stored, or not.' }],
    cause,
  });
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}
