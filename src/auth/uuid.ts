/** Principals that are declared elsewhere have the same UUID whenever and wherever they come (RFC 9562, 5.5). */
import { createHash } from 'node:crypto';

/** The namespace of URLs (RFC 9562, 6.6); an issuer is one. */
const URL_NAMESPACE = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';

/** UUIDv5 of a subject, in the namespace of its issuer. */
export function uuidOf(issuer: string, subject: string): string {
  return uuidV5(uuidV5(URL_NAMESPACE, issuer), subject);
}

export function uuidV5(namespace: string, name: string): string {
  const bytes = createHash('sha1')
    .update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
    .update(name)
    .digest()
    .subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
