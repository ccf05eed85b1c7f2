/** Longer than what several servers of a site say one after the other. */
const WORDS_MAX = 500;

/** What a far end says goes into the status, the log and a terminal: one line of it, without control characters. */
export function peersWords(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, WORDS_MAX);
}

/** Of the network or the far end, not of this program: where it was noticed says nothing. */
export class ConnectionFailure extends Error {
  override stack = '';
  constructor(message: string, options?: ErrorOptions) {
    super(peersWords(message), options);
  }
}
