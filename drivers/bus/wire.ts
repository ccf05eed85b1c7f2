/** How long things take on the wire. */
import { type BusOptions, bitsPerCharacter } from './options.ts';

type Wire = Pick<BusOptions, 'baudRate' | 'parity' | 'stopBits'>;

export function characterMs(wire: Wire): number {
  return (bitsPerCharacter(wire) / wire.baudRate) * 1_000;
}

/** Above this rate t3.5 is fixed, for interrupts would come too often (Modbus over serial line 1.02, 2.5.1.1). */
const FIXED_GAP_ABOVE_BAUD = 19_200;
const FIXED_GAP_MS = 1.75;
const GAP_CHARACTERS = 3.5;

/** t3.5: the silence that ends a frame of Modbus RTU, and so the least before each request. */
export function rtuGapMs(wire: Wire): number {
  return wire.baudRate > FIXED_GAP_ABOVE_BAUD ? FIXED_GAP_MS : GAP_CHARACTERS * characterMs(wire);
}
