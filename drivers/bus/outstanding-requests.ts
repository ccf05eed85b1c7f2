/**
 * The requests of one address whose replies may still come, oldest first. A device answers in the order in which it was
 * asked, and each request once at most. So an answer is to the oldest request of its operation or to a later one, and
 * what was asked before that is not answered any more. No time is assumed: however late replies are, a request that was
 * sent after all of another operation had their answers has only its own. Pure.
 */

export interface Owed {
  readonly operation: string;
  /** Monotonic. */
  readonly sentAt: number;
}

/** A device server that holds replies back for longer counts as gone. */
const OWED_FOR_MS = 5_000;
/** More than an address is asked meanwhile; the oldest are the most likely to be lost. */
const OWED_MAX = 256;

export type Ended = 'answered' | 'damaged' | 'missed';

/** `askedAt`: when the oldest request was sent that this answer may belong to. */
export function afterExchange(
  before: readonly Owed[],
  request: Owed,
  ended: Ended,
): { owed: readonly Owed[]; askedAt: number } {
  const recent = before.filter(({ sentAt }) => request.sentAt - sentAt <= OWED_FOR_MS);
  const all = [...recent, request].slice(-OWED_MAX);
  if (ended === 'missed') return { owed: all, askedAt: request.sentAt };
  // A damaged reply does not tell its operation: it was one of them.
  if (ended === 'damaged') return { owed: all.slice(1), askedAt: request.sentAt };
  const index = all.findIndex(({ operation }) => operation === request.operation);
  return { owed: all.slice(index + 1), askedAt: all[index]?.sentAt ?? request.sentAt };
}

/** A reply came outside an exchange: to the oldest, or to a later one. */
export function afterLate(owed: readonly Owed[]): readonly Owed[] {
  return owed.slice(1);
}
