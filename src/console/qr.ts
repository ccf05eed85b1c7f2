/** QR Code symbols (ISO/IEC 18004:2015) of short texts: byte mode, error correction level L, versions 1 to 5, which have one block. */

/** By version: codewords of data, and of error correction (Table 9). */
const CODEWORDS = [
  [19, 7],
  [34, 10],
  [55, 15],
  [80, 20],
  [108, 26],
] as const;
/** Level L with mask pattern 000, which needs no search: a reader takes any (Table C.1). */
const FORMAT = 0x77c4;
/** x^8 + x^4 + x^3 + x^2 + 1 (7.5.2). */
const FIELD = 0x11d;
const PADS = [0xec, 0x11] as const;
const FINDER = 7;
const TIMING = 6;

/** Rows of modules, true is dark; undefined: the text is too long. */
export function qrCode(text: string): boolean[][] | undefined {
  const bytes = new TextEncoder().encode(text);
  // Mode and length are 12 bits, the terminator four.
  const index = CODEWORDS.findIndex(([data]) => bytes.length + 2 <= data);
  const [data, correction] = CODEWORDS[index] ?? [0, 0];
  if (data === 0) return undefined;
  const nibbles = [4, ...[bytes.length, ...bytes].flatMap((byte) => [byte >> 4, byte & 15]), 0];
  const codewords = Array.from({ length: data }, (_, place) => {
    const [high, low = 0] = nibbles.slice(2 * place);
    return high === undefined ? (PADS[(place - bytes.length) % 2] ?? 0) : (high << 4) | low;
  });
  return placed([...codewords, ...remainder(codewords, correction)], 21 + 4 * index);
}

function product(one: number, other: number): number {
  let result = 0;
  for (let bit = 7; bit >= 0; bit -= 1) {
    result = (result << 1) ^ ((result >> 7) * FIELD);
    result ^= ((other >> bit) & 1) * one;
  }
  return result;
}

/** Of the division by the generator polynomial, whose roots are the first powers of 2 (7.5.2). */
function remainder(codewords: readonly number[], length: number): number[] {
  let generator = [1];
  for (let step = 0, root = 1; step < length; step += 1, root = product(root, 2))
    generator = [...generator, 0].map((value, place) => value ^ product(generator[place - 1] ?? 0, root));
  const rest = [...codewords, ...generator.slice(1).fill(0)];
  for (let place = 0; place < codewords.length; place += 1) {
    const factor = rest[place] ?? 0;
    generator.forEach((value, step) => {
      rest[place + step] = (rest[place + step] ?? 0) ^ product(value, factor);
    });
  }
  return rest.slice(codewords.length);
}

function placed(codewords: readonly number[], size: number): boolean[][] {
  const rows: (boolean | undefined)[][] = Array.from({ length: size }, () => Array(size));
  const set = (x: number, y: number, isDark: boolean) => {
    const row = rows[y];
    if (row && x >= 0 && x < size) row[x] = isDark;
  };
  /** Rings around a middle: those at the distances in `light` are light. */
  const rings = (x: number, y: number, radius: number, light: readonly number[]) => {
    for (let dy = -radius; dy <= radius; dy += 1)
      for (let dx = -radius; dx <= radius; dx += 1)
        set(x + dx, y + dy, !light.includes(Math.max(Math.abs(dx), Math.abs(dy))));
  };
  for (let place = 0; place < size; place += 1) {
    set(TIMING, place, place % 2 === 0);
    set(place, TIMING, place % 2 === 0);
  }
  // With its separator, which is light.
  for (const [x, y] of [
    [3, 3],
    [size - 4, 3],
    [3, size - 4],
  ] as const)
    rings(x, y, 4, [2, 4]);
  if (size > 21) rings(size - FINDER, size - FINDER, 2, [1]);
  for (let bit = 0; bit < 15; bit += 1) {
    const isDark = ((FORMAT >> bit) & 1) === 1;
    const near = bit < 6 ? bit : bit < 8 ? bit + 1 : bit;
    if (bit < 8) set(8, near, isDark);
    else set(bit === 8 ? 7 : 14 - bit, 8, isDark);
    if (bit < 8) set(size - 1 - bit, 8, isDark);
    else set(8, size - 15 + bit, isDark);
  }
  set(8, size - 8, true);
  fill(rows, codewords);
  return rows as boolean[][];
}

/** Two columns at a time from the right, upwards and downwards in turn, over the timing pattern, with the mask (7.7.3, 7.8.2). */
function fill(rows: (boolean | undefined)[][], codewords: readonly number[]): void {
  const size = rows.length;
  let bit = 0;
  for (let right = size - 1, isUp = true; right > 0; right -= 2, isUp = !isUp) {
    if (right === TIMING) right -= 1;
    for (let step = 0; step < 2 * size; step += 1) {
      const y = isUp ? size - 1 - (step >> 1) : step >> 1;
      const x = right - (step % 2);
      const row = rows[y];
      if (!row || row[x] !== undefined) continue;
      const isSet = (((codewords[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1) === 1;
      row[x] = isSet !== ((x + y) % 2 === 0);
      bit += 1;
    }
  }
}
