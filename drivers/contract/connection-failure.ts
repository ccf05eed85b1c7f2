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

/** What the far end means by its alert (RFC 8446, 6.2), by the name that OpenSSL has for it. */
const ALERTS: Readonly<Record<string, string>> = {
  'certificate required': 'it wants a client certificate',
  'handshake failure': 'it agrees to nothing that is offered, or wants a client certificate',
  'unknown ca': 'it does not know the authority of the certificate that it was shown',
  'bad certificate': 'it refuses the certificate that it was shown',
  'unsupported certificate': 'it refuses the certificate that it was shown',
  'certificate unknown': 'it refuses the certificate that it was shown',
  'certificate revoked': 'the certificate that it was shown is revoked',
  'certificate expired': 'the certificate that it was shown has expired',
  'access denied': 'the certificate that it was shown has no access',
  'protocol version': 'it takes neither TLS 1.2 nor 1.3',
};
/** What OpenSSL makes of the first bytes of a peer that sends clear text. */
const NO_TLS = new Set(['wrong version number', 'packet length too long', 'http request']);

/** In words for an operator; OpenSSL's own line names its source file. An error of several addresses has a code and no message. */
export function failureWords(error: Error): string {
  const { library, reason, code } = error as { library?: unknown; reason?: unknown; code?: unknown };
  if (library !== 'SSL routines' || typeof reason !== 'string') return error.message || String(code ?? '');
  if (NO_TLS.has(reason)) return 'it does not speak TLS';
  const [, alert = ''] = / alert (.+)$/.exec(reason) ?? [];
  const meaning = ALERTS[alert];
  return `TLS failed: ${meaning ? `${meaning} (${alert})` : reason}`;
}
