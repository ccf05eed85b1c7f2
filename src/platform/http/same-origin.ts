/**
 * A browser sends a cookie along with whatever page asks for it. So a change asked for with the console's cookie must
 * come from a page of this origin; a bearer token is sent by no browser of its own accord and needs no such check.
 */
import { GatehouseError } from '../errors.ts';

const SAFE_METHODS: readonly string[] = ['GET', 'HEAD'];

/**
 * Throws FORBIDDEN unless the request is safe or from a page of ours: Sec-Fetch-Site says so, or in older browsers
 * Origin. `same-site` is not enough: cookies know no ports, so another service on this host is of the same site.
 */
export function refuseForeignPage({ method, headers, url }: Request): void {
  if (SAFE_METHODS.includes(method)) return;
  const site = headers.get('sec-fetch-site');
  const own = site === null ? hostOf(headers.get('origin') ?? '') === hostOf(url) : site === 'same-origin';
  if (own) return;
  throw new GatehouseError(
    'FORBIDDEN',
    'With the cookie of the console, changes are taken from its own pages only; a program uses a token.',
  );
}

/** The same, for a request that brings no cookie yet: anyone who says nothing of a page is no browser. */
export function refuseForeignSignIn(request: Request): void {
  const { headers } = request;
  if (headers.has('sec-fetch-site') || headers.has('origin')) refuseForeignPage(request);
}

/** Without the scheme, which a proxy on this host may have taken off. */
function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).host : undefined;
}
