/**
 * The cookie of the console. The prefix makes browsers take it only over TLS, for this host alone and for all of its
 * paths (RFC 6265bis, 4.1.3.2); scripts do not see it, and no other site's page sends it.
 */
const NAME = '__Host-gatehouse';
const ATTRIBUTES = 'HttpOnly; Secure; SameSite=Strict; Path=/';

/** The value of Set-Cookie; an age of 0 removes it. */
export function sessionCookie(secret: string, maxAgeMs: number): string {
  return `${NAME}=${secret}; Max-Age=${Math.floor(maxAgeMs / 1_000)}; ${ATTRIBUTES}`;
}

/** From the Cookie header; undefined when it is absent, or there twice: then it is unclear which one is ours. */
export function sessionSecret(header: string | undefined): string | undefined {
  const values = (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${NAME}=`));
  return values.length === 1 ? values[0]?.slice(NAME.length + 1) : undefined;
}
