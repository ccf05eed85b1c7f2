/** What reports of devices have in common: what a product can carry of the settings, by what it is made of; and whether one is new. Pure. */
import { INPUT_PINS, OUTPUT_PINS, PINS, type Rs485Carries, UNLOCK_MAX_MS } from '../contract/settings.ts';

export interface Product {
  inputs: number;
  outputs: number;
  /** Outputs that may be fired; all unless given. */
  relays?: number;
  /** It remembers short activations of its inputs. */
  pinMemory: boolean;
  /** The longest pulse; all that settings allow unless given. */
  unlockMaxMilliseconds?: number;
}

export function carriesOf({ inputs, outputs, pinMemory, ...more }: Product): Rs485Carries {
  const { relays = outputs, unlockMaxMilliseconds = UNLOCK_MAX_MS } = more;
  return {
    pins: [...INPUT_PINS.slice(0, inputs), ...OUTPUT_PINS.slice(0, outputs)],
    relays: Math.min(relays, OUTPUT_PINS.length),
    pinMemory,
    unlockMaxMilliseconds: Math.min(unlockMaxMilliseconds, UNLOCK_MAX_MS),
  };
}

/** Fields of the settings, and pins, that it cannot carry at all (Rs485Report.unsupported). */
export function unsupportedOf({ pins, relays, pinMemory }: Rs485Carries): string[] {
  return [
    ...PINS.filter((pin) => !pins.includes(pin)),
    ...(relays > 0 ? [] : ['relayIndex', 'unlockDurationMilliseconds']),
    ...(pinMemory ? [] : ['useInputPinMemory']),
  ];
}

/** Whether two lists have the same values, one by one: what is made of them need not be made again. Pure. */
export function areSame(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.length === others.length && some.every((one, index) => one === others[index]);
}
