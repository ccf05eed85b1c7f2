/**
 * The site's certificate authority: one root, and below it two issuing intermediates with separate uses, HTTPS
 * (serverAuth) and encoders (clientAuth, no subject alternative name).
 */

export interface IssuedCertificate {
  /** PEM of the certificate alone. */
  certificate: string;
  /** As node:crypto writes it: AA:BB:… */
  fingerprint256: string;
  serialNumber: string;
  /** Epoch milliseconds. */
  notAfter: number;
}

export interface SiteCa {
  /** PEM of the root: the trust anchor for HTTPS clients and encoders. */
  readonly root: string;
  /** PEM of the intermediate that issues encoder certificates. */
  readonly encoderIssuer: string;
  /** PEM of the intermediate that issues server certificates. */
  readonly serverIssuer: string;
  /** Subject `CN=<encoderId>, OU=g<generation>`, clientAuth only, no SAN. `spki` is the operational key's DER. */
  issueForEncoder(request: {
    encoderId: string;
    generation: number;
    spki: Uint8Array;
  }): Promise<IssuedCertificate>;
  /** The server certificate in force (leaf, then serverIssuer) with its private key, for HTTPS and the encoders' port. Renewed at two thirds of its life or when the names change. */
  serverIdentity(names: readonly string[]): Promise<{ chain: string; key: string; notAfter: number }>;
  /** Compact JWS (ES256) by the encoder issuer's key over a JSON document; the header's x5c carries the issuer. */
  sign(document: Record<string, unknown>): Promise<string>;
}
