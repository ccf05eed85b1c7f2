/** Replies that arrive after their exchange has ended, by device. They count neither as noise nor as collisions. */

/** The addresses of the devices whose sound replies are in what was received, in order. Pure. */
export type Senders = (received: Uint8Array) => readonly number[];

export interface Late {
  address: number;
  /** From when its request was sent until the end of its reply. */
  delayMs: number;
}

export interface Taken {
  late: readonly Late[];
  /** Addresses that answered again with no question open; a second device may have them. */
  unasked: readonly number[];
}

const NOTHING: Taken = { late: [], unasked: [] };

/** Times are monotonic. */
export interface LateReplies {
  /** An exchange with it is over. */
  asked(address: number, answered: boolean, sentAt: number): void;
  /**
   * Bytes outside a reply, in pieces. Returns how many of them, and of the pieces before, were a late reply. `asked`: the
   * address of the open exchange; what looks like its reply is an echo or noise.
   */
  stray(bytes: Uint8Array, at: number, asked: number | undefined): number;
  /** What was heard instead of a reply of `asked`. True: the late one of another device. */
  isLate(received: Uint8Array, at: number, asked: number | undefined): boolean;
  /**
   * Bytes came behind the reply of `asked`; call before `asked` of that exchange. True: only a second device at
   * this address explains them. Undefined: they cannot be attributed, and a question that was missed explains them.
   */
  isSecondDevice(received: Uint8Array, at: number, asked: number): boolean | undefined;
  /** Sound replies of other addresses are in what was received. */
  otherSenders(received: Uint8Array, asked: number): readonly number[];
  /** Since the last time. */
  take(): Taken;
}

/** A device server that holds replies back for longer counts as gone. */
const LATE_FOR_MS = 5_000;
/** Longer than the pauses within a frame, with what adapters add (trace.ts). */
const PIECES_MS = 50;
/** The longest frame, of OSDP. */
const PIECES_MAX_BYTES = 1_440;

export function openLateReplies(senders: Senders | undefined): LateReplies {
  /** By address: when the request was sent that was not answered. */
  const missed = new Map<number, number>();
  let late: Late[] = [];
  const unasked = new Set<number>();
  let pieces: number[] = [];
  let heardAt = Number.NEGATIVE_INFINITY;

  function isLate(received: Uint8Array, at: number, asked: number | undefined): boolean {
    const addresses = senders?.(received) ?? [];
    if (asked !== undefined && addresses.includes(asked)) return false;
    return addresses.filter((address) => noteLate(address, at)).length > 0;
  }

  function isOwed(address: number, at: number): boolean {
    return at - (missed.get(address) ?? Number.NEGATIVE_INFINITY) <= LATE_FOR_MS;
  }

  function noteLate(address: number, at: number): boolean {
    const sentAt = missed.get(address);
    if (sentAt === undefined || !isOwed(address, at)) return false;
    missed.delete(address);
    late.push({ address, delayMs: at - sentAt });
    return true;
  }

  function isSecondDevice(received: Uint8Array, at: number, asked: number): boolean | undefined {
    const addresses = senders?.(received) ?? [];
    const others = addresses.filter((address) => address !== asked);
    for (const address of others) noteLate(address, at);
    if (addresses.length - others.length > 1) return isOwed(asked, at) ? undefined : true;
    if (others.length > 0) return false;
    const owing = [...missed.keys()].filter((address) => isOwed(address, at));
    if (owing.length === 0) return true;
    // Replies without an address (DCON) are attributed only where one device alone can have sent them.
    const [only] = owing;
    if (!senders && owing.length === 1 && only !== undefined && only !== asked) noteLate(only, at);
    return undefined;
  }

  return {
    asked(address, answered, sentAt) {
      if (answered) missed.delete(address);
      else missed.set(address, sentAt);
    },
    stray(bytes, at, asked) {
      if (!senders) return 0;
      if (at - heardAt > PIECES_MS || pieces.length + bytes.length > PIECES_MAX_BYTES) pieces = [];
      heardAt = at;
      pieces.push(...bytes.subarray(0, PIECES_MAX_BYTES));
      const received = Uint8Array.from(pieces);
      if (!isLate(received, at, asked)) {
        if (asked === undefined) for (const address of senders(received)) unasked.add(address);
        return 0;
      }
      const { length } = pieces;
      pieces = [];
      return length;
    },
    isLate,
    isSecondDevice,
    otherSenders: (received, asked) => (senders?.(received) ?? []).filter((address) => address !== asked),
    take() {
      // V8 gives a Set that is cleared a new table, an empty one too, and keeps the one before until a full garbage collection.
      if (late.length === 0 && unasked.size === 0) return NOTHING;
      const taken = { late, unasked: [...unasked] };
      late = [];
      unasked.clear();
      return taken;
    },
  };
}
