/**
 * The requests whose replies were not heard, by address. Each has one reply at most, however late that is: it explains
 * one disturbed exchange, and no second one.
 */

export interface Unheard {
  /** Times are monotonic. */
  missed(address: number, sentAt: number): void;
  /** A reply of this address was heard late. */
  spokeLate(address: number): void;
  /** A late reply of this address may be what was heard. It explains nothing else from now on. */
  explains(address: number, at: number): boolean;
  /** Of all addresses. */
  count(at: number): number;
}

/** A device server that holds replies back for longer counts as gone. */
const LATE_FOR_MS = 5_000;

export function openUnheard(): Unheard {
  let all: readonly { readonly address: number; readonly sentAt: number }[] = [];

  function forget(at: number): void {
    all = all.filter(({ sentAt }) => at - sentAt <= LATE_FOR_MS);
  }

  function takeOldest(address: number): boolean {
    const found = all.find((one) => one.address === address);
    all = all.filter((one) => one !== found);
    return found !== undefined;
  }

  return {
    missed(address, sentAt) {
      forget(sentAt);
      all = [...all, { address, sentAt }];
    },
    spokeLate: (address) => void takeOldest(address),
    explains(address, at) {
      forget(at);
      return takeOldest(address);
    },
    count(at) {
      forget(at);
      return all.length;
    },
  };
}
