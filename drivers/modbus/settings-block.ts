/** Settings as a product carries them: out of its registers, into its registers, and what it cannot carry. Pure. */
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
import { settingsBlock } from './profile-areas.ts';
import type { Profile } from './profile-shape.ts';
import { bitsAt, type Image, numberAt, putBits, putNumber, readsOf, type Span, spanOf } from './registers.ts';

/** For a product whose own time is none: what a strike takes, with some patience. */
const UNLOCK_USUAL_MS = 5_000;

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

/** Of those that the product both keeps and fires. */
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
