/** Who may read which events. Pure. */
import { type Principal, ROLES, type Role, WIRING_READERS } from '../../platform/principal.ts';

/**
 * Who may read events of a kind: those who may read the resource. Of any other kind, those who run the site; and so of what
 * readers read, for who has the bits of a card can make another one.
 */
const READERS: Readonly<Record<string, readonly Role[]>> = {
  encoder: ROLES,
  door: ROLES,
  rs485: WIRING_READERS,
  zgate: WIRING_READERS,
  network: WIRING_READERS,
};
const OF_THE_REST: readonly string[] = ['gatehouse.rs485.credential.v1'];
const READERS_OF_THE_REST: readonly Role[] = ['service-tool', 'front-desk-admin'];

/** `type` is gatehouse.<kind>.… */
export function mayRead({ roles }: Pick<Principal, 'roles'>, type: string): boolean {
  const kind = OF_THE_REST.includes(type) ? '' : (type.split('.')[1] ?? '');
  const readers = READERS[kind] ?? READERS_OF_THE_REST;
  return readers.some((role) => roles.has(role));
}
