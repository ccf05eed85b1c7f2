/** Callers who lack the role that an operation needs: counted, and put into the audit once a minute (upkeep.ts). */
import { randomUUID } from 'node:crypto';
import type { Principal } from '../../platform/principal.ts';
import type { Audit } from '../audit/audit.ts';
import type { Collect } from './upkeep.ts';

/** Callers times operations between two entries; beyond them all count as one, of the first such caller. */
const COUNTED_MAX = 256;
const THE_REST = 'others';

export interface Refusals {
  /** Costs no commit: a caller without the role may try as often as its rate allows. */
  count(principal: Principal, operation: string): void;
  collect: Collect;
}

interface Refused {
  principal: Principal;
  operation: string;
  times: number;
}

export function openRefusals(audit: Pick<Audit, 'record'>): Refusals {
  const refused = new Map<string, Refused>();
  return {
    count(principal, operation) {
      const exact = `${principal.id} ${operation}`;
      const isCounted = refused.has(exact) || refused.size < COUNTED_MAX;
      const key = isCounted ? exact : THE_REST;
      const first = { principal, operation: isCounted ? operation : THE_REST, times: 0 };
      const before = refused.get(key) ?? first;
      refused.set(key, { ...before, times: before.times + 1 });
    },
    collect() {
      if (refused.size === 0) return undefined;
      const batch = [...refused];
      return {
        write() {
          for (const [, { principal, operation, times }] of batch)
            audit.record({
              principal,
              action: 'operation.refuse',
              object: `operation/${operation}`,
              outcome: 'refused',
              detail: { reason: 'FORBIDDEN', times },
              correlationId: randomUUID(),
            });
        },
        // Some may have been counted while the commit was under way.
        written() {
          for (const [key, { times }] of batch) {
            const now = refused.get(key);
            if (!now || now.times <= times) refused.delete(key);
            else refused.set(key, { ...now, times: now.times - times });
          }
        },
      };
    },
  };
}
