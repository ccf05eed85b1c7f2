/** Replies that come after their exchange has ended, by device: they count neither as noise nor as collisions. */

/** The address of the device whose sound frame is in what was received; undefined: none is. Pure. */
export type Sender = (received: Uint8Array) => number | undefined;

export interface Late {
  address: number;
  /** From when its request was sent until the end of its reply. */
  delayMs: number;
}

/** Times are monotonic. */
export interface Latecomers {
  /** An exchange with it is over. */
  asked(address: number, answered: boolean, sentAt: number): void;
  /**
   * Bytes outside a reply, in pieces. Returns how many of them, and of the pieces before, were a late reply. `asked`: the
   * address of the open exchange; what looks like its reply is an echo or noise.
   */
  stray(bytes: Uint8Array, at: number, asked: number | undefined): number;
  /** What was heard instead of a reply of `asked`. True: the late one of another device. */
  isLate(received: Uint8Array, at: number, asked: number | undefined): boolean;
  /** Those since the last time. */
  take(): Late[];
}

/** A device server that holds replies back for longer counts as gone. */
const LATE_FOR_MS = 5_000;
/** Longer than the pauses within a frame, with what adapters add (recording.ts). */
const PIECES_MS = 50;
/** The longest frame, of OSDP. */
const PIECES_MAX_BYTES = 1_440;

export function openLatecomers(sender: Sender | undefined): Latecomers {
  /** By address: when the request was sent that was not answered. */
  const missed = new Map<number, number>();
  let late: Late[] = [];
  let pieces: number[] = [];
  let heardAt = Number.NEGATIVE_INFINITY;

  function isLate(received: Uint8Array, at: number, asked: number | undefined): boolean {
    const address = sender?.(received);
    if (address === asked) return false;
    const sentAt = address === undefined ? undefined : missed.get(address);
    if (address === undefined || sentAt === undefined || at - sentAt > LATE_FOR_MS) return false;
    missed.delete(address);
    late.push({ address, delayMs: at - sentAt });
    return true;
  }

  return {
    asked(address, answered, sentAt) {
      if (answered) missed.delete(address);
      else missed.set(address, sentAt);
    },
    stray(bytes, at, asked) {
      if (!sender || missed.size === 0) return 0;
      if (at - heardAt > PIECES_MS || pieces.length + bytes.length > PIECES_MAX_BYTES) pieces = [];
      heardAt = at;
      pieces.push(...bytes.subarray(0, PIECES_MAX_BYTES));
      if (!isLate(Uint8Array.from(pieces), at, asked)) return 0;
      const { length } = pieces;
      pieces = [];
      return length;
    },
    isLate,
    take() {
      const taken = late;
      late = [];
      return taken;
    },
  };
}
