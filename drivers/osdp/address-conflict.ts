/** Evidence of two devices at one address before either has a key: replies are garbled, or two identities alternate. */

/** Garbled exchanges in a row; a bad wire garbles one of ten. */
const GARBLED_TURNS = 5;
/** Changes of the identity without a silence between them; a technician who swaps a device causes a silence. */
const CHANGES = 2;
/** After so many replies with one identity in a row there is one device. */
const CALM_TURNS = 30;

export interface AddressConflict {
  /** After each exchange. */
  exchanged(answered: boolean, garbled: boolean): void;
  /** A reply in clear text has named this identity. */
  identified(hwId: string): void;
  /** No device answers any more: the next one may be another. */
  forget(): void;
  isGarbled(): boolean;
  isDuplicate(): boolean;
}

export function openAddressConflict(): AddressConflict {
  let garbledTurns = 0;
  let last: string | undefined;
  let changes = 0;
  let calm = 0;
  return {
    exchanged(answered, garbled) {
      if (answered) garbledTurns = 0;
      else if (garbled) garbledTurns += 1;
    },
    identified(hwId) {
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
    isDuplicate: () => changes >= CHANGES,
  };
}
