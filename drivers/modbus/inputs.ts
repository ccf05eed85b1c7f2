/** Activations of the inputs of one device: by its counters while its pin memory is on, else from reading to reading. Pure. */
import { INPUT_PINS } from '../settings.ts';
import type { Profile } from './profile-shape.ts';
import { bitsAt, type Image } from './registers.ts';

export interface InputReading {
  levels: readonly number[];
  /** undefined: the product counts nothing. */
  counters: readonly number[] | undefined;
}

export interface Activation {
  input: (typeof INPUT_PINS)[number];
  activations: number;
}

export function inputReading(image: Image, { inputs, inputEdges }: Profile): InputReading | undefined {
  const levels = inputs && bitsAt(image, inputs);
  return levels && { levels, counters: inputEdges && bitsAt(image, inputEdges) };
}

/** `remembers`: the pin memory is in force. */
export function activationsBetween(
  before: InputReading | undefined,
  now: InputReading,
  { inputEdges }: Profile,
  remembers: boolean,
): Activation[] {
  if (!before) return [];
  const modulus = 1 << (inputEdges?.width ?? 0);
  return INPUT_PINS.flatMap((input, index) => {
    const counted = now.counters?.[index];
    const activations =
      remembers && counted !== undefined
        ? (counted - (before.counters?.[index] ?? counted) + modulus) % modulus
        : Number(now.levels[index] === 1 && before.levels[index] === 0);
    return activations > 0 ? [{ input, activations }] : [];
  });
}
