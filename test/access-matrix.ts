/** Every operation against every role: who may call what, to be asked of a running app. */
import type { Operation } from '../src/platform/http/operation.ts';
import { type Principal, ROLES, type Role } from '../src/platform/principal.ts';

export interface AccessCase {
  operation: string;
  method: string;
  /** With parameters filled in. */
  path: string;
  role: Role;
  allowed: boolean;
}

/** What stands in place of each path parameter; valid for every kind of identifier but a number. */
const ANY_ID = '6f1c2a9e-58d4-4a39-9d41-0c5f7a1f3b2d';

/** One case per role and operation that asks for roles. */
export function accessMatrix(operations: readonly Operation[]): AccessCase[] {
  return operations.flatMap(({ id, method, path, access }) =>
    typeof access === 'string'
      ? []
      : ROLES.map((role) => ({
          operation: id,
          method: method.toUpperCase(),
          path: path.replaceAll(/\{\w+\}/g, ANY_ID),
          role,
          allowed: access.includes(role),
        })),
  );
}

/** A caller with exactly these roles. */
export function principalWith(...roles: Role[]): Principal {
  return { id: `test-${roles.join('-')}`, label: roles.join(' and '), roles: new Set(roles), via: 'token' };
}
