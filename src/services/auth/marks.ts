/** When tokens were used or seen expired: known at once, written later (upkeep.ts). */
import type { TokenRow, TokenTable } from './table.ts';
import type { Collect } from './upkeep.ts';

export interface Marks {
  used(id: string): void;
  /** A use that is not written yet, epoch milliseconds. */
  lastUse(id: string): number | undefined;
  expired(row: TokenRow): void;
  /** Whether one was seen expired for the first time since this was asked. */
  takeNewlyExpired(): boolean;
  /** Of a renewed token: it has not expired. */
  renewed(id: string): void;
  /** Seen and not written yet. */
  seenExpired(id: string): boolean;
  collect: Collect;
}

/** Holds one mark per token that exists at most: only valid secrets leave one. */
export function openMarks(table: Pick<TokenTable, 'used' | 'expired'>, now: () => number): Marks {
  const uses = new Map<string, number>();
  const expirations = new Map<string, number>();
  let isNew = false;
  return {
    used(id) {
      uses.set(id, now());
    },
    lastUse: (id) => uses.get(id),
    expired({ id, expired_at }) {
      if (expired_at !== null || expirations.has(id)) return;
      expirations.set(id, now());
      isNew = true;
    },
    takeNewlyExpired() {
      const taken = isNew;
      isNew = false;
      return taken;
    },
    renewed: (id) => void expirations.delete(id),
    seenExpired: (id) => expirations.has(id),
    collect() {
      if (uses.size === 0 && expirations.size === 0) return undefined;
      const [usesNow, expirationsNow] = [[...uses], [...expirations]];
      return {
        write() {
          for (const [id, at] of usesNow) table.used(id, at);
          for (const [id, at] of expirationsNow) table.expired(id, at);
        },
        // Only then, so that a token is never unmarked in between; and only what has not changed since.
        written() {
          for (const [id, at] of usesNow) if (uses.get(id) === at) uses.delete(id);
          for (const [id] of expirationsNow) expirations.delete(id);
        },
      };
    },
  };
}
