/** Addresses from which a caller was authenticated: room is kept for them while others flood the server. */

/** A PMS that was quiet over the weekend's nights is still known; an address handed on to another host soon is not. */
const KNOWN_FOR_MS = 24 * 3_600_000;
/** A campus has fewer desks; the one seen longest ago is forgotten first. */
const ADDRESSES_MAX = 1_024;

export interface KnownAddresses {
  /** Someone at this address has just been authenticated. */
  note(address: string): void;
  has(address: string): boolean;
}

/** `monotonic` in milliseconds. */
export function knownAddresses(monotonic: () => number): KnownAddresses {
  const seen = new Map<string, number>();
  return {
    note(address) {
      // Deleting first makes the map's order that of the last time.
      seen.delete(address);
      const oldest = seen.size >= ADDRESSES_MAX ? seen.keys().next().value : undefined;
      if (oldest !== undefined) seen.delete(oldest);
      seen.set(address, monotonic());
    },
    has: (address) => monotonic() - (seen.get(address) ?? Number.NEGATIVE_INFINITY) < KNOWN_FOR_MS,
  };
}
