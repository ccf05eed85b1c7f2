/** How much security a device must have. Less is spoken to it in a pairing window alone. */
import type { Security, Session } from './protocol/state.ts';

export type Policy =
  | { kind: 'off' }
  | { kind: 'required'; key: Uint8Array }
  /** Security is required, and the device has no key yet: it is asked who it is, and nothing else. */
  | { kind: 'unpaired' };

export function securityOf(policy: Policy): Security {
  return policy.kind === 'required' ? { secure: 'required', key: policy.key } : { secure: 'off' };
}

export function isSamePolicy(one: Policy, other: Policy): boolean {
  if (one.kind !== other.kind) return false;
  return one.kind !== 'required' || other.kind !== 'required' || Buffer.compare(one.key, other.key) === 0;
}

/** A pairing has just succeeded: the session that stands is under the key that is required from now on. */
export function isProvenUnder({ stage, options }: Session, policy: Policy): boolean {
  const { security } = options;
  if (stage.kind !== 'online' || policy.kind !== 'required' || security.secure === 'off') return false;
  return Buffer.compare(security.key, policy.key) === 0;
}
