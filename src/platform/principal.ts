/** Who is calling. Every principal has a UUID, so that createdBy, updatedBy and the audit can name it for good. */
import { randomUUID } from 'node:crypto';

/** The roles of the interface specification, section 5; and monitor, which reads the state of everything and changes nothing. */
export const ROLES = ['service-tool', 'front-desk-admin', 'front-desk', 'pms', 'monitor'] as const;
export type Role = (typeof ROLES)[number];

/** Who may read wiring: not the property management system, which has no business with it. */
export const WIRING_READERS: readonly [Role, ...Role[]] = [
  'service-tool',
  'front-desk-admin',
  'front-desk',
  'monitor',
];

/** Who changes doors and their locks, and has them move; and so may follow jobs of that. */
export const ADMINISTRATORS: readonly [Role, ...Role[]] = ['front-desk-admin', 'service-tool'];

/** Principals that may have hardware do what is not a clerk's business. */
export const TECHNICIANS: readonly [Role, ...Role[]] = ['service-tool'];

export interface Principal {
  /** Lower-case UUID. */
  id: string;
  /** What a person calls it; goes into logs and the audit. */
  label: string;
  roles: ReadonlySet<Role>;
  /**
   * `local`: came over the unix socket, whose file mode is the authentication; holds every role. `session`: the console,
   * by its cookie. `jwt`: a token of the site's identity provider.
   */
  via: 'token' | 'jwt' | 'session' | 'local' | 'system';
  /** When its credentials end, epoch milliseconds; absent when they do not. */
  expiresAt?: number;
}

/** On whose behalf something is done, and in which request, for createdBy and the audit. */
export interface Caller {
  principal: Principal;
  correlationId: string;
  /** Monotonic milliseconds: the request did not arrive before. Deadlines of an actuation count from here; absent: from now. */
  arrivedAt?: number | undefined;
  /** Whether the client has hung up. An actuation is not sent then: no one at the door expects it any more. */
  isGone?(): Promise<boolean>;
  /** Fires when the client hangs up, also while an actuation waits for its turn. */
  hungUp?: AbortSignal;
}

/** Who changes a resource; `ifMatch`: the version that was read, when the client says so. */
export interface Editor extends Caller {
  ifMatch: string | undefined;
}

/** The gateway itself, for what it does of its own accord. */
export const SYSTEM_PRINCIPAL: Principal = {
  id: '00000000-0000-4000-8000-000000000001',
  label: 'gatehouse',
  roles: new Set(),
  via: 'system',
};

/** The same, with a correlation id of its own. */
export const systemCaller = (): Caller => ({ principal: SYSTEM_PRINCIPAL, correlationId: randomUUID() });

/** Of what needs no credentials. */
export const ANYONE: Principal = {
  id: '00000000-0000-4000-8000-000000000000',
  label: 'anyone',
  roles: new Set(),
  via: 'system',
};

/** Anyone who can open the admin socket. */
export const LOCAL_ADMINISTRATOR: Principal = {
  id: '00000000-0000-4000-8000-000000000002',
  label: 'local administrator',
  roles: new Set(ROLES),
  via: 'local',
};

/** Whether log and audit would take a holder of this label for one of the gateway's own principals. */
export function isReserved(label: string): boolean {
  const plain = plainOf(label);
  return [ANYONE, SYSTEM_PRINCIPAL, LOCAL_ADMINISTRATOR].some((own) => plainOf(own.label) === plain);
}

/** Without what a reader does not see: case, spaces, and characters that only look different to a program (UAX 15). */
function plainOf(label: string): string {
  return label
    .normalize('NFKC')
    .replaceAll(/[\s\p{Cf}]+/gu, '')
    .toLowerCase();
}
