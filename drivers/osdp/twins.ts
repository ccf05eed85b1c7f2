/** Two devices at one address, as far as that shows before either has a key: what they say is garbled, or takes turns. */

/** Turns in a row in which something was heard and nothing understood; a bad wire spoils one of ten. */
const GARBLED_TURNS = 5;
/** Names in turn, without a silence between that a technician needs to swap a device. */
const CHANGES = 2;
/** The same name so often in a row, and there is one device. */
const CALM_TURNS = 30;

export interface Twins {
  /** After each turn. */
  turned(answered: boolean, garbled: boolean): void;
  /** What one says in clear text to be. */
  said(hwId: string): void;
  /** No device answers any more: the next one may be another one. */
  forget(): void;
  isGarbled(): boolean;
  takeTurns(): boolean;
}

export function openTwins(): Twins {
  let garbledTurns = 0;
  let last: string | undefined;
  let changes = 0;
  let calm = 0;
  return {
    turned(answered, garbled) {
      if (answered) garbledTurns = 0;
      else if (garbled) garbledTurns += 1;
    },
    said(hwId) {
      calm = hwId === last ? calm + 1 : 0;
      if (last !== undefined && hwId !== last) changes += 1;
      if (calm >= CALM_TURNS) changes = 0;
      last = hwId;
    },
    forget() {
      last = undefined;
      changes = 0;
    },
    isGarbled: () => garbledTurns >= GARBLED_TURNS,
    takeTurns: () => changes >= CHANGES,
  };
}

export function twinsAt(address: number): string {
  return `two devices answer at address ${address}: disconnect one, give the other one another address (gatehouse osdp pair, osdp set), and connect it again.`;
}

export function garbledAt(address: number): string {
  return `what answers at address ${address} cannot be read: two devices may have this address (disconnect one of them), or the wires are bad.`;
}
