/**
 * Whether bytes really take the time that the baud rate says. Ports say so by their names; the UART of a virtual machine
 * has such a name and no wire. Early bytes time after time, and never a reply in its time, distinguish the two.
 */

export interface BaudRateCheck {
  /** Early bytes are no reply. */
  isKept(): boolean;
  /** An exchange is over in which bytes came too early, or none. */
  ended(exchange: { early: boolean; answered: boolean }): void;
  warnings(): string[];
}

/** A stale reply is early once, and after a timeout; not so often in a row. */
const EARLY_IN_A_ROW_MAX = 3;

export function openBaudRateCheck(paced: boolean): BaudRateCheck {
  let earlyInARow = 0;
  let isRefuted = false;
  return {
    isKept: () => paced && !isRefuted,
    ended({ early, answered }) {
      if (answered) earlyInARow = 0;
      else if (early) earlyInARow += 1;
      isRefuted ||= paced && earlyInARow >= EARLY_IN_A_ROW_MAX;
    },
    warnings: () =>
      isRefuted ? ['replies come sooner than the baud rate allows: the port has no wire, or an echo'] : [],
  };
}
