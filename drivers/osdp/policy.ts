/** The security that a device must have, and how it is held to it. Only a pairing window allows less. */
import { keyFingerprint } from '../contract/osdp.ts';
import type { DeviceSession } from './device-session.ts';
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

function isSamePolicy(one: Policy, other: Policy): boolean {
  return (
    one.kind === other.kind &&
    isSameKey(keyOf(one), keyOf(other)) &&
    isSameKey(pendingOf(one), pendingOf(other))
  );
}

/** The key of the session, if it is one of this policy: the device has just been paired. */
function keyProvenUnder(session: Session, policy: Policy): Uint8Array | undefined {
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

/** Holds a device to its policy, except in a pairing window. */
export interface Enforcement {
  policy(): Policy;
  /** The device is asked for its identity only. */
  isLooking(): boolean;
  /** Takes effect now, or at the end of a pairing window. The same policy again changes nothing. */
  setPolicy(policy: Policy): void;
  /** The device does not have the pending key. */
  unproven(): void;
  /** The device is silent; the one that answers next may have the pending key. */
  isAway(): void;
  /** Opens a pairing window: starts a new session under this security. */
  beginPairing(security: Security): void;
  /** Ends the window. The session goes on if the device has proved the key of its policy; else a new one begins. */
  endPairing(): void;
  /** Starts a new session: the device may have moved to another address. */
  restart(): void;
}

/** `begin` starts a new session under this security. */
export function openEnforcement(
  first: Policy,
  begin: (security: Security) => void,
  session: () => Pick<DeviceSession, 'state' | 'keepTo'>,
): Enforcement {
  let policy = first;
  let isPairing = false;
  /** The pending key is tried, until a few handshakes have shown that the device does not have it. */
  const hasTentativeKey = () => policy.kind === 'unpaired' && policy.pending !== undefined;
  let isTentative = hasTentativeKey();
  const isLooking = () => policy.kind === 'unpaired' && !isPairing && !isTentative;

  function enforce(): void {
    isTentative = hasTentativeKey();
    begin(securityOf(policy));
  }

  return {
    policy: () => policy,
    isLooking,
    setPolicy(next) {
      const isSame = isSamePolicy(policy, next);
      policy = next;
      if (isSame || isPairing) return;
      if (keyProvenUnder(session().state(), policy)) isTentative = policy.kind === 'unpaired';
      else enforce();
    },
    unproven() {
      isTentative = false;
      begin({ secure: 'off' });
    },
    isAway() {
      if (isLooking() && hasTentativeKey()) enforce();
    },
    beginPairing(security) {
      isPairing = true;
      begin(security);
    },
    endPairing() {
      isPairing = false;
      const proven = keyProvenUnder(session().state(), policy);
      if (proven) session().keepTo({ secure: 'required', key: proven });
      else enforce();
    },
    restart: enforce,
  };
}
