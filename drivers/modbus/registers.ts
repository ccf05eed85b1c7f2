/** What registers and coils hold: where fields are, how they are read in few requests, their values, and the settings in them. Pure. */

import {
  INPUT_PINS,
  OUTPUT_PINS,
  PINS,
  type Pin,
  RELAY_MAX,
  type Rs485Carries,
  type Rs485Settings,
  UNLOCK_MAX_MS,
  UNLOCK_MIN_MS,
} from '../contract/settings.ts';
import { carriesOf } from '../rs485/carries.ts';
import { BITS_READ_MAX, type Profile, REGISTERS_READ_MAX } from './profile-shape.ts';

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

function putBits(
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

// Settings as a product carries them: out of its registers, into its registers, and what it cannot carry.

/** For a product whose own time is none: what a strike takes, with some patience. */
const UNLOCK_USUAL_MS = 5_000;

/** Of the settings in force; undefined: the product keeps none, or it was not read yet. */
export function versionIn(image: Image, { settings }: Profile): number | undefined {
  return settings && numberAt(image, settings.inForce);
}

/** The block was read with another version than a poll shows: another device was in its place at one of the two. */
export function areVersionsTwo(image: Image, profile: Profile): boolean {
  const written = profile.settings && numberAt(image, { table: 'holding', ...profile.settings.version });
  return written !== versionIn(image, profile);
}

/** Without the version in force, which is read apart. */
export function settingsBlock(settings: Profile['settings']): Span[] {
  if (!settings) return [];
  const { inForce: _, ...block } = settings;
  return Object.values(block)
    .filter((place) => place !== undefined)
    .map((place) => ({
      table: 'holding',
      address: place.address,
      quantity: 'registers' in place ? place.registers : 1,
    }));
}

/** The block as one read and one write; undefined: the product keeps no settings. */
export function blockOf(profile: Profile): Span | undefined {
  return readsOf(settingsBlock(profile.settings))[0];
}

/** The registers that begin a pulse, as one write; undefined: the product has another way. */
export function pulseBlock({ pulse }: Profile): Span | undefined {
  if (pulse?.way !== 'block') return undefined;
  return readsOf([spanOf(pulse.id), spanOf(pulse.relay), spanOf(pulse.milliseconds)])[0];
}

/** The registers of the block; undefined: not read. */
export function registersIn(image: Image, { address, quantity }: Span): number[] | undefined {
  const values = Array.from({ length: quantity }, (_, index) => image.holding.get(address + index));
  return values.every((value) => value !== undefined) ? values : undefined;
}

/** What the registers mean; what the product does not carry, or has no sensible value for, is false or null. */
export function settingsIn(image: Image, { settings, inputs, outputs }: Profile): Rs485Settings | undefined {
  if (!settings) return undefined;
  const bits = (place: { address: number; bit: number } | undefined, count = 0) =>
    (place && bitsAt(image, { table: 'holding', ...place, count })) ?? [];
  const inputsInUse = bits(settings.inputsInUse, inputs?.count);
  const outputsInUse = bits(settings.outputsInUse, outputs?.count);
  const inUse = new Map<Pin, boolean>([
    ...INPUT_PINS.map((pin, index) => [pin, inputsInUse[index] === 1] as const),
    ...OUTPUT_PINS.map((pin, index) => [pin, outputsInUse[index] === 1] as const),
  ]);
  const relay = settings.relayIndex && numberAt(image, settings.relayIndex);
  const unlock = settings.unlockDurationMilliseconds && numberAt(image, settings.unlockDurationMilliseconds);
  return {
    ioPins: Object.fromEntries(PINS.map((pin) => [pin, inUse.get(pin) === true])) as Rs485Settings['ioPins'],
    relayIndex: isRelay(relay) ? relay : null,
    unlockDurationMilliseconds: isUnlock(unlock) ? unlock : null,
    useInputPinMemory: bits(settings.useInputPinMemory, 1)[0] === 1,
  };
}

const isRelay = (value: number | undefined): value is number => value !== undefined && value <= RELAY_MAX;
const isUnlock = (value: number | undefined): value is number =>
  value !== undefined && value >= UNLOCK_MIN_MS && value <= UNLOCK_MAX_MS;

/** The block to write. null leaves what the product has; bits that are no one's stay as they are. */
export function registersOf(
  profile: Profile,
  own: { registers: readonly number[]; image: Image },
  { settingsVersion, settings: wanted }: { settingsVersion: number; settings: Rs485Settings },
): number[] {
  const { settings, inputs, outputs } = profile;
  const block = blockOf(profile);
  if (!settings || !block) return [];
  const registers = [...own.registers];
  const before = settingsIn(own.image, profile);
  const inUse = (pins: readonly Pin[], count = 0) => pins.slice(0, count).map((pin) => wanted.ioPins[pin]);
  const { inputsInUse, outputsInUse, relayIndex, unlockDurationMilliseconds, useInputPinMemory } = settings;
  if (inputsInUse) putBits(registers, block.address, inputsInUse, inUse(INPUT_PINS, inputs?.count));
  if (outputsInUse) putBits(registers, block.address, outputsInUse, inUse(OUTPUT_PINS, outputs?.count));
  if (relayIndex)
    putNumber(registers, block.address, relayIndex, wanted.relayIndex ?? before?.relayIndex ?? 0);
  if (unlockDurationMilliseconds) {
    const own = before?.unlockDurationMilliseconds ?? UNLOCK_USUAL_MS;
    const value = wanted.unlockDurationMilliseconds ?? own;
    putNumber(registers, block.address, unlockDurationMilliseconds, value);
  }
  if (useInputPinMemory) putBits(registers, block.address, useInputPinMemory, [wanted.useInputPinMemory]);
  putNumber(registers, block.address, settings.version, settingsVersion);
  return registers;
}

/** Why a product can never have these in force, in words; undefined: it may. */
export function refusalOf(profile: Profile, { relayIndex, ...settings }: Rs485Settings): string | undefined {
  const relays = relayCount(profile);
  if (relayIndex !== null && relayIndex >= relays)
    return `${profile.product} has ${relays === 0 ? 'no outputs that may be fired' : `outputs 0 to ${relays - 1}`}: relayIndex cannot be ${relayIndex}`;
  const { unlockDurationMilliseconds: unlock } = settings;
  const longest = longestUnlockMs(profile);
  return unlock !== null && unlock > longest
    ? `${profile.product} closes a relay for ${longest} ms at most: unlockDurationMilliseconds cannot be ${unlock}`
    : undefined;
}

/** How many outputs may be fired. */
export function relayCount({ outputs }: Profile): number {
  return outputs === undefined || outputs.readOnly ? 0 : outputs.count;
}

/** Of the pulses that the product both keeps and fires. */
function longestUnlockMs(profile: Profile): number {
  return Math.min(longestPulseMs(profile), mostIn(profile.settings?.unlockDurationMilliseconds));
}

export function longestPulseMs({ pulse }: Profile): number {
  if (pulse?.way === 'flash' || pulse?.way === 'command')
    return Math.min(UNLOCK_MAX_MS, pulse.unitMilliseconds * pulse.unitsMax);
  return pulse?.way === 'block' ? mostIn(pulse.milliseconds) : UNLOCK_MAX_MS;
}

/** Of the times there are, the longest that fits. */
function mostIn(place: { registers: 1 | 2 } | undefined): number {
  return place?.registers === 1 ? 0xffff : UNLOCK_MAX_MS;
}

/** As the product can do it, rounded up: never shorter than asked for. */
export function effectiveMs({ pulse }: Profile, milliseconds: number): number {
  if (pulse?.way !== 'flash' && pulse?.way !== 'command') return milliseconds;
  return Math.ceil(milliseconds / pulse.unitMilliseconds) * pulse.unitMilliseconds;
}

/** What the product can carry of the settings. */
export function carriedBy(profile: Profile): Rs485Carries {
  const { inputs, outputs, inputEdges, inputCounters } = profile;
  return carriesOf({
    relays: relayCount(profile),
    inputs: inputs?.count ?? 0,
    outputs: outputs?.count ?? 0,
    pinMemory: inputEdges !== undefined || inputCounters !== undefined,
    unlockMaxMilliseconds: longestUnlockMs(profile),
  });
}
