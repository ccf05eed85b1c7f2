/**
 * What is said to one module, and in which order: scripts that yield a question and are given its answer, or the
 * DriverError that came instead of it.
 */
import { type BusWarning, busWarning } from '../contract/bus-warnings.ts';
import { DriverError } from '../contract/driver.ts';
import {
  aa,
  armHostWatchdog,
  clearHostWatchdogFlag,
  firmwareVersion,
  hostWatchdogFlag,
  moduleName,
  type Pins,
  type Question,
  readHostWatchdog,
  readPins,
  readPreset,
  readSafety,
  resetStatus,
  type Switched,
  storePreset,
  switchAllOff,
  switchOne,
  writeSafety,
} from './messages.ts';
import { type ModuleType, moduleTypeOf, outputsOf } from './module-types.ts';

export type Script<Result> = Generator<Question<unknown>, Result, unknown>;

/** Whether somebody switches the outputs off when the gateway cannot. */
export type Guard = { kind: 'armed' } | { kind: 'none'; reason: BusWarning };

export interface Known {
  name: string;
  version: string | null;
  /** null: not in the table (module-types.ts); nothing else is known then. */
  type: ModuleType | null;
}

export interface BroughtUp extends Known {
  pins: Pins;
  guard: Guard;
}

export interface SwitchedOff {
  pins: Pins;
  /** Its watchdog had run out: it is to be armed again. */
  hadTimedOut: boolean;
}

/** Outputs were ordered to be off, and read as on. */
export class StaysOn extends DriverError {}

/** Rounds of OFF and a look before a switch is given up; each costs up to two timeouts. */
const ROUNDS_MAX = 3;
/** Each is followed by a look at the module. */
const SWITCH_ATTEMPTS = 3;
/** In a row, until a module does not know a command. */
const SILENCES = 6;
/** Until a module that answers now and then is left for later. */
const ASKED_MAX = 2 * SILENCES;
/** The host watchdog counts tenths of a second in one byte. */
const TENTHS_MAX = 0xff;

/** A module that was found to lack a command is asked for it once when it is brought up again. */
const SILENCES_AGAIN = 1;

/**
 * From the first answer to a module whose outputs are off, `live` ones apart, and whose watchdog will switch them off.
 * A live output that is not on is not switched on again. `before`: as it was brought up the last time.
 */
export function* bringUp(
  address: number,
  {
    live,
    maybeOn,
    before,
    typeOf = moduleTypeOf,
  }: { live: () => number; maybeOn: number; before?: Known | null; typeOf?: typeof moduleTypeOf },
  watchdogMs: number,
): Script<BroughtUp> {
  const name = yield* ask(moduleName(address));
  const lacks = (isLacking: (same: Known) => boolean) => before?.name === name && isLacking(before);
  const version = yield* unlessUnknown(
    firmwareVersion(address),
    null,
    lacks((same) => same.version === null),
  );
  const product = typeOf(name);
  if (!product) {
    const reason = busWarning('MODULE_UNKNOWN', { address: aa(address), name });
    const pins = { outputs: 0, inputs: 0 };
    return { name, version, type: null, pins, guard: { kind: 'none', reason } };
  }
  // What it says of the time before does not matter: what follows is done anyway. Asking clears it.
  const hasNoResetStatus = lacks(({ type }) => type?.resetStatus === false);
  const reportsResets =
    product.resetStatus && (yield* unlessUnknown(resetStatus(address), null, hasNoResetStatus)) !== null;
  const type = { ...product, resetStatus: reportsResets };
  const hadTimedOut = type.watchdog === 'host' && (yield* ask(hostWatchdogFlag(address)));
  const { pins } = yield* switchOff(address, type, hadTimedOut ? () => 0 : live, maybeOn);
  if (hadTimedOut) yield* ask(clearHostWatchdogFlag(address));
  const guard = yield* arm(address, type, pins, watchdogMs);
  return { name, version, type, pins, guard };
}

/**
 * Everything off but what `keep` says at each step, as read back; a flagged module is cleared on the way. `known` to be on, an output is
 * switched off before it is looked at. Throws StaysOn when it will not.
 */
export function* switchOff(
  address: number,
  type: ModuleType,
  keep: () => number,
  known = 0,
): Script<SwitchedOff> {
  let hadTimedOut = false;
  let stray = known & ~keep();
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    if (stray === 0) {
      const pins = yield* ask(readPins(address, type));
      stray = pins.outputs & ~keep();
      if (stray === 0) return { pins, hadTimedOut };
    }
    const questions =
      keep() === 0 ? [switchAllOff(address)] : channelsOf(stray).map((one) => switchOne(address, one, false));
    for (const question of questions) {
      if ((yield* ask(question)) !== 'ignored') continue;
      hadTimedOut = true;
      yield* ask(clearHostWatchdogFlag(address));
    }
    stray = 0;
  }
  const pins = yield* ask(readPins(address, type));
  if ((pins.outputs & ~keep()) === 0) return { pins, hadTimedOut };
  throw new StaysOn('BAD_REPLY', `module ${aa(address)} was ordered to switch off and did not`);
}

/**
 * One output on, as read back. Carried out once at most: a power dip or the watchdog switches it off, and a repetition would switch it
 * on a second time. So it is repeated only while the module shows that it is off and that neither has happened. Throws
 * OUTCOME_UNKNOWN when an attempt may have switched it; NO_REPLY when the module shows that none has, or the error of an attempt
 * that switched nothing.
 */
export function* switchOn(
  address: number,
  type: ModuleType,
  channel: number,
  watchdogMs: number,
): Script<Pins> {
  let isSent = false;
  for (let attempt = 1; ; attempt += 1) {
    let isHeard = true;
    let refusal: DriverError | undefined;
    try {
      isHeard = (yield* orderUnlessIgnored(address, channel, watchdogMs)) === 'done';
    } catch (error) {
      if (!(error instanceof DriverError)) throw error;
      // A refusal may follow what was carried out: it is believed when the output is read as off.
      if (error.code === 'REFUSED' && !isSent) refusal = error;
      // What became of the attempts before, the module shows.
      else if (!isSent) throw error;
    }
    isSent = true;
    const pins = yield* seen(readPins(address, type));
    if (((pins.outputs >> channel) & 1) === 1) return pins;
    if (refusal) throw refusal;
    if (yield* mayHaveRestarted(address, type))
      throw new DriverError(
        'OUTCOME_UNKNOWN',
        `output ${channel} of module ${aa(address)} is off, and may have been on: the module was restarted since, or its watchdog ran out, or it does not say that neither happened`,
      );
    if (isHeard || attempt === SWITCH_ATTEMPTS)
      throw new DriverError(
        'NO_REPLY',
        `module ${aa(address)} was ordered to switch output ${channel} on and did not`,
      );
  }
}

/** Since the last bring-up: what is off then may have been on. */
function* mayHaveRestarted(address: number, type: ModuleType): Script<boolean> {
  try {
    if (!type.resetStatus || (yield* askedOnce(resetStatus(address))) !== false) return true;
    return type.watchdog === 'host' && (yield* ask(hostWatchdogFlag(address)));
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    return true;
  }
}

/** The answer, though it is lost, clears what it says: it is asked for once. */
function* askedOnce<Reply>(question: Question<Reply>): Script<Reply | 'unheard'> {
  try {
    return yield* ask({ ...question, mayBeUnknown: true });
  } catch (error) {
    if (error instanceof DriverError && isUnheard(error)) return 'unheard';
    throw error;
  }
}

/** What the pins are, and nothing else. */
export function* lookAt(address: number, type: ModuleType): Script<Pins> {
  return yield* ask(readPins(address, type));
}

/** Why what the outputs show after a silence is not the work of the watchdog; undefined: it has run out. */
export function* whyNotRunOut(address: number, type: ModuleType): Script<string | undefined> {
  const restarted = type.resetStatus && (yield* askedOnce(resetStatus(address)));
  if (restarted === 'unheard') return 'it could not be heard whether it was restarted during the test';
  if (restarted) return 'it was restarted during the test';
  if (type.watchdog === 'host' && !(yield* ask(hostWatchdogFlag(address))))
    return 'its host watchdog does not say that it has run out';
  return undefined;
}

function* orderUnlessIgnored(
  address: number,
  channel: number,
  watchdogMs: number,
): Script<'done' | 'unheard'> {
  const heard = yield* order(address, channel);
  if (heard !== 'ignored') return heard;
  // Its watchdog ran out, and what is ignored was not done.
  yield* ask(clearHostWatchdogFlag(address));
  yield* startHost(address, watchdogMs);
  const again = yield* order(address, channel);
  if (again !== 'ignored') return again;
  throw new DriverError('REFUSED', `module ${aa(address)} ignores commands: its host watchdog is not fed`);
}

function* order(address: number, channel: number): Script<Switched | 'unheard'> {
  try {
    return yield* ask(switchOne(address, channel, true));
  } catch (error) {
    if (error instanceof DriverError && isUnheard(error)) return 'unheard';
    throw error;
  }
}

function* seen(question: Question<Pins>): Script<Pins> {
  try {
    return yield* ask(question);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new DriverError('OUTCOME_UNKNOWN', `switched on, and not confirmed: ${reason}`, { cause: error });
  }
}

/** Presets are written only when they are wrong, for they are kept in EEPROM; outputs must be off for it. */
function* arm(address: number, type: ModuleType, pins: Pins, watchdogMs: number): Script<Guard> {
  const none = (reason: BusWarning): Guard => ({ kind: 'none', reason });
  const module = { address: aa(address), product: type.product };
  if (!type.outputs) return none(busWarning('MODULE_WITHOUT_OUTPUTS', module));
  if (type.watchdog === null) return none(busWarning('MODULE_WITHOUT_WATCHDOG', module));
  try {
    if (type.watchdog === 'safety') yield* armSafety(address, watchdogMs);
    else yield* armHost(address, type, pins, watchdogMs);
    return { kind: 'armed' };
  } catch (error) {
    if (!(error instanceof DriverError) || error.code !== 'REFUSED') throw error;
    return none(busWarning('MODULE_WATCHDOG_REFUSED', { ...module, reason: error.message }));
  }
}

function* armHost(address: number, type: ModuleType, pins: Pins, watchdogMs: number): Script<void> {
  for (const preset of ['S', 'P'] as const) {
    const wrong = ((yield* ask(readPreset(address, preset))) & outputsOf(type)) !== 0;
    if (!wrong) continue;
    // It takes the outputs as they are: not while a pulse is under way.
    if (pins.outputs !== 0)
      throw new DriverError('REFUSED', 'its safe value is not off, and outputs are on now');
    yield* ask(storePreset(address, preset));
    if (((yield* ask(readPreset(address, preset))) & outputsOf(type)) !== 0)
      throw new DriverError('REFUSED', 'it does not keep off as its safe value');
  }
  yield* startHost(address, watchdogMs);
}

/** What it acknowledged counts only as read back. */
function* startHost(address: number, watchdogMs: number): Script<void> {
  const tenths = tenthsOf(watchdogMs);
  yield* ask(armHostWatchdog(address, tenths));
  const kept = yield* ask(readHostWatchdog(address));
  if (!kept.enabled || kept.tenths !== tenths)
    throw new DriverError('REFUSED', 'its host watchdog is not in force, though it was acknowledged');
}

function* armSafety(address: number, watchdogMs: number): Script<void> {
  const tenths = tenthsOf(watchdogMs);
  // Its own answer shows which form of the command it takes.
  const found = yield* unlessUnknown(readSafety(address), null);
  if (found === null) throw new DriverError('REFUSED', 'it does not know $AAX1; later ones of its kind do');
  yield* ask(writeSafety(address, { tenths, outputs: 0, digits: found.digits }));
  const kept = yield* ask(readSafety(address));
  if (kept.tenths !== tenths || kept.outputs !== 0)
    throw new DriverError('REFUSED', 'it keeps another safety value than was written');
}

function tenthsOf(milliseconds: number): number {
  return Math.min(TENTHS_MAX, Math.floor(milliseconds / 100));
}

function* ask<Reply>(question: Question<Reply>): Script<Reply> {
  return (yield question) as Reply;
}

/**
 * For commands that some modules do not have: they refuse them, or say nothing. Silence may also be a lost answer, so each is
 * followed by a question that every module answers, once. A wire that loses a share p of all exchanges makes one silence with an answer
 * after it as often as p(1-p), which is a quarter at most, and SILENCES of them in a row 1 time in 4,096.
 */
function* unlessUnknown<Reply, Otherwise>(
  question: Question<Reply>,
  otherwise: Otherwise,
  isLacking = false,
): Script<Reply | Otherwise> {
  const enough = isLacking ? SILENCES_AGAIN : SILENCES;
  let silences = 0;
  for (let asked = 0; asked < ASKED_MAX; asked += 1) {
    try {
      return yield* ask({ ...question, mayBeUnknown: true });
    } catch (error) {
      if (!(error instanceof DriverError)) throw error;
      if (error.code === 'REFUSED') return otherwise;
      if (!isUnheard(error)) throw error;
    }
    silences = (yield* answers(question.address)) ? silences + 1 : 0;
    if (silences === enough) return otherwise;
  }
  throw new DriverError('NO_REPLY', `module ${aa(question.address)} answers now and then: see to its wire`);
}

/** Asked once. After a silence its answers are to the question before, as far as the bus can know, until one is asked again. */
function* answers(address: number): Script<boolean> {
  try {
    yield* ask({ ...moduleName(address), showsPresence: true });
    return true;
  } catch (error) {
    if (error instanceof DriverError && isUnheard(error)) return false;
    throw error;
  }
}

/** It was sent, and nothing sound came back. */
function isUnheard({ code }: DriverError): boolean {
  return code === 'NO_REPLY' || code === 'BAD_REPLY';
}

export function channelsOf(mask: number): number[] {
  return [0, 1, 2, 3, 4, 5, 6, 7].filter((channel) => ((mask >> channel) & 1) === 1);
}
