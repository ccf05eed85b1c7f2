/** One entry of the audit. */
import type { Principal } from '../../platform/principal.ts';

export interface AuditEntry {
  principal: Pick<Principal, 'id' | 'label'>;
  /** Dotted verb, such as encoder.register. */
  action: string;
  /** What it was done to, such as encoder/desk-1. */
  object: string;
  /** accepted, done, refused, failed, unknown … one word. */
  outcome: string;
  /** Never a secret. */
  detail?: Record<string, unknown>;
  correlationId: string;
}
