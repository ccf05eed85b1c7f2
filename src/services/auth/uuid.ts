/** Principals that are declared elsewhere have the same UUID whenever and wherever they come (RFC 9562, 5.5). */
import { uuidV5 } from '../../platform/uuid.ts';

/** The namespace of URLs (RFC 9562, 6.6); an issuer is one. */
const URL_NAMESPACE = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';

/** UUIDv5 of a subject, in the namespace of its issuer. */
export function uuidOf(issuer: string, subject: string): string {
  return uuidV5(uuidV5(URL_NAMESPACE, issuer), subject);
}
