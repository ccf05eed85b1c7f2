/**
 * What of a configured address may be said in a log, a status or a support bundle: where it leads. A name and a password may stand before its host
 * (RFC 3986, 3.2.1), and the path or the query of a webhook is often its only credential.
 */
export function shownUrl(address: string): string {
  const { protocol, host, pathname, search, hash } = new URL(address);
  const isMore = pathname.length > 1 || search !== '' || hash !== '';
  return `${protocol}//${host}${isMore ? '/…' : ''}`;
}
