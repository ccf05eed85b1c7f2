/** Certificates in a PEM file (RFC 7468, 5), each with its own text. */
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

export function certificatesIn(text: string): string[] {
  return text.match(CERTIFICATE) ?? [];
}
