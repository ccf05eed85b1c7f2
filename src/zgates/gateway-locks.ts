/** The locks of a gateway, as far as this slice has to know them. */
export interface GatewayLock {
  doorId: string;
  name: string | null;
  mac: string;
  /** Epoch milliseconds; null: never. */
  lastSeen: number | null;
  isSeenLately: boolean;
}

export type LocksOf = (gatewayId: string) => GatewayLock[];

/** As the interface shows one. */
export function shownLock({ doorId, name, mac, lastSeen }: GatewayLock) {
  return { doorId, name, mac, lastSeen };
}
