/** What registers and coils hold: where fields are, how they are read in few requests, and their values. Pure. */
import { BITS_READ_MAX, REGISTERS_READ_MAX } from './profile-shape.ts';

/** What a report may hold (drivers/contract/settings.ts). */
const TEXT_MAX = 128;

export type Table = 'holding' | 'input' | 'coil' | 'discrete';

/** Bits of one register, or coils, in a row. */
export interface BitsPlace {
  table: Table;
  address: number;
  /** Of the register; 0 is the lowest. */
  bit: number;
  count: number;
  /** Of each; more than one for counters. */
  width?: number;
  /** A register for each. */
  each?: 'register' | undefined;
  /** 0 is active. */
  inverted?: true | undefined;
}

/** Numbers in a row. */
export interface NumbersPlace {
  table: 'holding' | 'input';
  address: number;
  /** Of each. */
  registers: 1 | 2;
  count: number;
}

/** A number in one register, or in two with the high one first. */
export interface NumberPlace {
  table?: 'holding' | 'input';
  address: number;
  registers?: 1 | 2;
}

export interface TextPlace {
  table: 'holding' | 'input';
  address: number;
  registers: number;
  divisor?: number | undefined;
}

/** Addresses in a row, of one table. */
export interface Span {
  table: Table;
  address: number;
  quantity: number;
}

export const FUNCTION_CODES = { coil: 1, discrete: 2, holding: 3, input: 4 } as const;

export const isBitTable = (table: Table): table is 'coil' | 'discrete' =>
  table === 'coil' || table === 'discrete';

export function spanOf(place: BitsPlace | NumberPlace | NumbersPlace | TextPlace): Span {
  const { table = 'holding', address } = place;
  if (!('count' in place)) return { table, address, quantity: place.registers ?? 1 };
  if ('registers' in place) return { table, address, quantity: place.registers * place.count };
  return { table, address, quantity: isBitTable(table) || place.each ? place.count : 1 };
}

/** The fewest requests that read all of these and nothing else: a register no one asked for may not be there. */
export function readsOf(spans: readonly Span[]): Span[] {
  const reads: Span[] = [];
  const ordered = spans.toSorted((a, b) => a.table.localeCompare(b.table) || a.address - b.address);
  for (const { table, address, quantity } of ordered) {
    const last = reads.at(-1);
    const end = address + quantity;
    const most = isBitTable(table) ? BITS_READ_MAX : REGISTERS_READ_MAX;
    const joins = last?.table === table && address <= last.address + last.quantity;
    if (last && joins && end - last.address <= most)
      last.quantity = Math.max(last.quantity, end - last.address);
    else reads.push({ table, address, quantity });
  }
  return reads;
}

/** The same in fewer requests: what is between two of these is read with them where it is in one of `known`, which the device answers. */
export function readsWithin(known: readonly Span[], spans: readonly Span[]): Span[] {
  return known.flatMap((read) => {
    const inside = spans.filter((span) => isWithin(span, read));
    if (inside.length === 0) return [];
    const address = Math.min(...inside.map((span) => span.address));
    const end = Math.max(...inside.map((span) => span.address + span.quantity));
    return [{ table: read.table, address, quantity: end - address }];
  });
}

export function isWithin({ table, address, quantity }: Span, outer: Span): boolean {
  return (
    table === outer.table && outer.address <= address && address + quantity <= outer.address + outer.quantity
  );
}

/** What was read, by address; a coil is 0 or 1. */
export type Image = Readonly<Record<Table, ReadonlyMap<number, number>>>;

export const EMPTY_IMAGE: Image = {
  holding: new Map(),
  input: new Map(),
  coil: new Map(),
  discrete: new Map(),
};

/** The same image when nothing in it is new, as after most polls. */
export function withRead(
  image: Image,
  { table, address }: Span,
  values: readonly (number | boolean)[],
): Image {
  const known = image[table];
  if (values.every((value, index) => known.get(address + index) === Number(value))) return image;
  const read = new Map(known);
  for (const [index, value] of values.entries()) read.set(address + index, Number(value));
  return { ...image, [table]: read };
}

/** undefined: not read yet. */
export function numberAt(
  image: Image,
  { table = 'holding', address, registers = 1 }: NumberPlace,
): number | undefined {
  const [high, low] = [image[table].get(address), image[table].get(address + 1)];
  if (registers === 1 || high === undefined) return high;
  return low === undefined ? undefined : high * 0x1_0000 + low;
}

/** The numbers of `count` bit fields in a row, the lowest first. */
export function bitsAt(
  image: Image,
  { table, address, bit, count, width = 1, each, inverted }: BitsPlace,
): number[] | undefined {
  const isApart = isBitTable(table) || each !== undefined;
  const values = Array.from({ length: count }, (_, index) => {
    const value = image[table].get(address + (isApart ? index : 0));
    if (value === undefined || isBitTable(table)) return value;
    return (value >> (bit + (isApart ? 0 : index * width))) & ((1 << width) - 1);
  });
  if (!values.every((value) => value !== undefined)) return undefined;
  return inverted ? values.map((value) => 1 - value) : values;
}

/** undefined: not all were read yet. */
export function numbersAt(
  image: Image,
  { table, address, registers, count }: NumbersPlace,
): number[] | undefined {
  const values = Array.from({ length: count }, (_, index) =>
    numberAt(image, { table, address: address + index * registers, registers }),
  );
  return values.every((value) => value !== undefined) ? values : undefined;
}

/** Printable characters up to the first NUL; '' for a product that has none there. */
export function textAt(image: Image, { table, address, registers, divisor }: TextPlace): string | undefined {
  const values = Array.from({ length: registers }, (_, index) => image[table].get(address + index));
  if (!values.every((value) => value !== undefined)) return undefined;
  if (divisor !== undefined) {
    const number = values.reduce((sum, value) => sum * 0x1_0000 + value, 0);
    return (number / divisor).toFixed(Math.ceil(Math.log10(divisor)));
  }
  const characters = values.flatMap((value) => [value >> 8, value & 0xff]);
  const end = characters.indexOf(0);
  return String.fromCharCode(...(end < 0 ? characters : characters.slice(0, end)))
    .replace(/[^\x20-\x7e]/g, '?')
    .trim()
    .slice(0, TEXT_MAX);
}

/** Writes into `registers`, which begin at `base`. */
export function putNumber(
  registers: number[],
  base: number,
  { address, registers: length = 1 }: NumberPlace,
  value: number,
): void {
  if (length === 2) registers[address - base] = Math.floor(value / 0x1_0000);
  registers[address - base + length - 1] = value % 0x1_0000;
}

export function putBits(
  registers: number[],
  base: number,
  { address, bit }: { address: number; bit: number },
  values: readonly boolean[],
): void {
  let register = registers[address - base] ?? 0;
  for (const [index, value] of values.entries())
    register = value ? register | (1 << (bit + index)) : register & ~(1 << (bit + index));
  registers[address - base] = register;
}
