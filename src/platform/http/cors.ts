/**
 * Pages of the origins that the configuration names may read answers (Fetch Standard, 3.2). They send a token: no cookie
 * goes with them, for Access-Control-Allow-Credentials is never sent, and what the cookie changes stays with the console's
 * own pages (same-origin.ts).
 */

/** Seconds for which a browser need not ask again; browsers cut longer times. */
const MAX_AGE = '600';

export interface Cors {
  /** What the answer to this request has besides. */
  headersFor(request: Request): Record<string, string>;
  /** A browser asks whether it may send a request; the answer is headersFor alone. */
  isPreflight(request: Request): boolean;
}

/** `origins` as browsers write them, such as `https://desk.example:8443`. */
export function openCors(origins: readonly string[]): Cors {
  const named = new Set(origins);
  const isNamed = ({ headers }: Request) => named.has(headers.get('origin') ?? '');
  const isPreflight = (request: Request) =>
    request.method === 'OPTIONS' && isNamed(request) && request.headers.has('access-control-request-method');
  return {
    isPreflight,
    headersFor(request) {
      if (named.size === 0) return {};
      // Also for others: what a cache keeps for one origin is not for the next.
      const headers = { Vary: 'Origin, Accept-Encoding' };
      if (!isNamed(request)) return headers;
      return {
        ...headers,
        'Access-Control-Allow-Origin': request.headers.get('origin') ?? '',
        ...(isPreflight(request)
          ? {
              'Access-Control-Allow-Methods': 'GET, PUT, POST, DELETE',
              'Access-Control-Allow-Headers':
                'Authorization, Content-Type, If-Match, Idempotency-Key, Last-Event-ID, X-Request-Id',
              'Access-Control-Max-Age': MAX_AGE,
            }
          : {
              'Access-Control-Expose-Headers': 'ETag, Location, Retry-After, WWW-Authenticate, X-Request-Id',
            }),
      };
    },
  };
}
