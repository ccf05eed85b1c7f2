/** The security that a device must have. Only a pairing window allows less. */
import { keyFingerprint } from '../contract/osdp.ts';
import type { Security, Session } from './protocol/state.ts';

export type Policy =
  | { kind: 'off' }
  /** `pending`: a key that the device may have instead, from a window that ended before a handshake proved it. */
  | { kind: 'required'; key: Uint8Array; pending?: Uint8Array }
  /**
   * Security is required, and the device has no key yet: it is asked for its identity only. `pending`: a key that it may have
   * been given; tried first.
   */
  | { kind: 'unpaired'; pending?: Uint8Array };

export function securityOf(policy: Policy): Security {
  if (policy.kind === 'required') {
    const { key, pending } = policy;
    return { secure: 'required', key, ...(pending && { pending }) };
  }
  return policy.kind === 'unpaired' && policy.pending
    ? { secure: 'required', key: policy.pending, isTentative: true }
    : { secure: 'off' };
}

export function isSamePolicy(one: Policy, other: Policy): boolean {
  return (
    one.kind === other.kind &&
    isSameKey(keyOf(one), keyOf(other)) &&
    isSameKey(pendingOf(one), pendingOf(other))
  );
}

/** The key of the session, if it is one of this policy: the device has just been paired. */
export function keyProvenUnder(session: Session, policy: Policy): Uint8Array | undefined {
  const proven = provenKey(session);
  return [keyOf(policy), pendingOf(policy)].some((key) => isSameKey(proven, key)) ? proven : undefined;
}

/** Fingerprint of the pending key, if the session proves it. */
export function provenPending(session: Session, policy: Policy): string | undefined {
  const proven = provenKey(session);
  return proven && isSameKey(proven, pendingOf(policy)) ? keyFingerprint(proven) : undefined;
}

/** The key of a secure session; undefined in clear text, or offline. */
export function provenKey({ stage, options }: Session): Uint8Array | undefined {
  const { security } = options;
  return stage.kind === 'online' && stage.channel && security.secure !== 'off' ? security.key : undefined;
}

const keyOf = (policy: Policy) => (policy.kind === 'required' ? policy.key : undefined);
const pendingOf = (policy: Policy) => (policy.kind === 'off' ? undefined : policy.pending);

export function isSameKey(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  return one && other ? Buffer.compare(one, other) === 0 : one === other;
}
