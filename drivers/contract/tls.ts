/**
 * What every TLS connection is made with, as server and as client: TLS 1.3, or 1.2 with forward secrecy and authenticated
 * encryption (RFC 9325, 4.2). Node's own list has suites with CBC, too.
 */
export const TLS = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'TLS_AES_128_GCM_SHA256',
    'ECDHE+AESGCM',
    'ECDHE+CHACHA20',
  ].join(':'),
} as const;
