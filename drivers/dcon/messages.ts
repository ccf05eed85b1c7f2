/**
 * What is asked of a module, and what counts as its answer. Texts are without checksum and CR.
 *
 * Some answers are anonymous: they carry no address (`!112200`, `>`), and that they are of the module that was asked is
 * known by their time alone, which is the business of the bus. So the shape is checked as strictly as the manuals let.
 */
import { hex } from './frame.ts';
import type { ModuleType } from './module-types.ts';

export type Heard<Reply> =
  | { kind: 'reply'; reply: Reply }
  | { kind: 'refused'; reason: string }
  /** No answer to this question. */
  | { kind: 'foreign' };

export interface Question<Reply> {
  address: number;
  /** The command without address and data. */
  operation: string;
  text: string;
  /** The longest answer, in characters. */
  answerLength: number;
  /** The answer does not say whose it is. */
  anonymous?: boolean;
  /** Another answer on this bus can look the same, and asking again changes nothing: it is asked until that is sure. */
  reads?: boolean;
  /** The module may not have the command, and then says nothing. */
  mayBeUnknown?: boolean;
  /** Every module has it, and whether this one answers once is what is to be found out. */
  showsPresence?: boolean;
  /** Switches one on: it is never sent late. */
  opens?: boolean;
  /** Switches these off, a mask. */
  closes?: number;
  /** Done, the safety watchdog counts its whole time again, also one that has run out. */
  arms?: boolean;
  hear(text: string): Heard<Reply>;
}

/** Bit 0 is channel 0. */
export interface Pins {
  outputs: number;
  inputs: number;
}

/** `ignored`: the host watchdog's flag is set, and no output is switched before it is cleared (I-7000 DIO Manual 2.3). */
export type Switched = 'done' | 'ignored';

const NAME_MAX = 12;
const VERSION_MAX = 16;
const HOST_WATCHDOG_FLAG = 0x04;

export function moduleName(address: number): Question<string> {
  return reading(
    question(address, '$M', `$${aa(address)}M`, 3 + NAME_MAX, (text) =>
      match(text, new RegExp(`^!${aa(address)}([0-9A-Za-z+-]{1,${NAME_MAX}})$`), ([name]) => name),
    ),
  );
}

export function firmwareVersion(address: number): Question<string> {
  return reading(
    question(address, '$F', `$${aa(address)}F`, 3 + VERSION_MAX, (text) =>
      match(text, new RegExp(`^!${aa(address)}([\\x21-\\x7e]{1,${VERSION_MAX}})$`), ([version]) => version),
    ),
  );
}

/** true: it was reset since it was last asked. */
export function resetStatus(address: number): Question<boolean> {
  return question(address, '$5', `$${aa(address)}5`, 4, (text) =>
    match(text, new RegExp(`^!${aa(address)}([01])$`), ([status]) => status === '1'),
  );
}

export function readPins(address: number, type: ModuleType): Question<Pins> {
  return reading(
    anonymous(address, '$6', `$${aa(address)}6`, 7, (text) =>
      match(text, THREE_BYTES, ([first, second]) => pinsOf(type, [first, second])),
    ),
  );
}

/** Inputs that were HIGH since they were last cleared; the layout is that of $AA6. */
export function readLatched(address: number, type: ModuleType): Question<Pins> {
  return anonymous(address, '$L', `$${aa(address)}L1`, 7, (text) =>
    match(text, THREE_BYTES, ([first, second]) => {
      const byte = type.inputs && [first, second][type.inputs.byte];
      return { outputs: 0, inputs: byte ? wired(byte, type.inputs?.count ?? 0) : 0 };
    }),
  );
}

export function clearLatched(address: number): Question<null> {
  return question(address, '$C', `$${aa(address)}C`, 3, acknowledged(address));
}

export function switchOne(address: number, channel: number, on: boolean): Question<Switched> {
  const text = `#${aa(address)}1${hex(channel, 1)}${on ? '01' : '00'}`;
  const asked = anonymous(address, '#1', text, 3, switched(address));
  return on ? { ...asked, opens: true } : { ...asked, closes: 1 << channel };
}

/** Every output off. */
export function switchAllOff(address: number): Question<Switched> {
  return { ...anonymous(address, '#0', `#${aa(address)}0000`, 3, switched(address)), closes: 0xff };
}

/** true: the host watchdog has run out, and its flag is set until it is cleared. */
export function hostWatchdogFlag(address: number): Question<boolean> {
  return question(address, '~0', `~${aa(address)}0`, 5, (text) =>
    match(
      text,
      new RegExp(`^!${aa(address)}([0-9A-F]{2})$`),
      ([status]) => (Number.parseInt(status, 16) & HOST_WATCHDOG_FLAG) !== 0,
    ),
  );
}

export function clearHostWatchdogFlag(address: number): Question<null> {
  return question(address, '~1', `~${aa(address)}1`, 3, acknowledged(address));
}

/** Arms it; `tenths` of a second, 1 to 255. */
export function armHostWatchdog(address: number, tenths: number): Question<null> {
  return question(address, '~3', `~${aa(address)}31${hex(tenths, 2)}`, 3, acknowledged(address));
}

/** Whether it is armed, and its time (I-7000 DIO Manual 2.20, ~AA2). */
export function readHostWatchdog(address: number): Question<{ enabled: boolean; tenths: number }> {
  return question(address, '~2', `~${aa(address)}2`, 6, (text) =>
    match(text, new RegExp(`^!${aa(address)}([01])([0-9A-F]{2})$`), ([enabled, tenths]) => ({
      enabled: enabled === '1',
      tenths: Number.parseInt(tenths, 16),
    })),
  );
}

/** P: what the outputs are after power-on; S: after the host watchdog has run out. */
export function readPreset(address: number, preset: 'P' | 'S'): Question<number> {
  return reading(
    question(address, '~4', `~${aa(address)}4${preset}`, 7, (text) =>
      match(text, new RegExp(`^!${aa(address)}([0-9A-F]{2})00$`), ([value]) => Number.parseInt(value, 16)),
    ),
  );
}

/** Keeps what the outputs are at this moment as the preset. */
export function storePreset(address: number, preset: 'P' | 'S'): Question<null> {
  return question(address, '~5', `~${aa(address)}5${preset}`, 3, acknowledged(address));
}

/** What the outputs become after so many tenths of a second without a command; 0: they stay as they are. */
export interface Safety {
  tenths: number;
  outputs: number;
  /**
   * Hex digits of the outputs: $AAX0TTTTDD in one edition of the ADAM-4000 manual (table 4.22) and in that of the
   * ADAM-4100, $AAX0TTTTDDDD in another (7-20, for 4055, 4056S, 4056SO, 4060, 4068 and 4069).
   */
  digits: 2 | 4;
}

export function writeSafety(address: number, { tenths, outputs, digits }: Safety): Question<Switched> {
  const text = `$${aa(address)}X0${hex(tenths, 4)}${hex(outputs, digits)}`;
  const asked = anonymous<Switched>(address, '$X0', text, 3, (answer) =>
    answer === '>' ? { kind: 'reply', reply: 'done' } : foreign,
  );
  return { ...asked, arms: true };
}

export function readSafety(address: number): Question<Safety> {
  return reading(
    anonymous(address, '$X1', `$${aa(address)}X1`, 9, (text) =>
      match(text, /^!([0-9A-F]{4})([0-9A-F]{2}|[0-9A-F]{4})$/, ([tenths, outputs]) => ({
        tenths: Number.parseInt(tenths, 16),
        outputs: Number.parseInt(outputs, 16),
        digits: outputs.length === 4 ? 4 : 2,
      })),
    ),
  );
}

/** "The host is well", to all modules at once; no one answers. */
export const HOST_OK = '~**';

const THREE_BYTES = /^!([0-9A-F]{2})([0-9A-F]{2})00$/;
const foreign = { kind: 'foreign' } as const;

function question<Reply>(
  address: number,
  operation: string,
  text: string,
  answerLength: number,
  understand: (text: string) => Heard<Reply>,
): Question<Reply> {
  return {
    address,
    operation,
    text,
    answerLength,
    hear(heard) {
      if (heard !== `?${aa(address)}`) return understand(heard);
      return { kind: 'refused', reason: `module ${aa(address)} refused ${text}` };
    },
  };
}

function anonymous<Reply>(...of: Parameters<typeof question<Reply>>): Question<Reply> {
  return { ...question(...of), anonymous: true };
}

/** `!014000` is what module 01 is called, or what the pins of another one are. */
function reading<Reply>(asked: Question<Reply>): Question<Reply> {
  return { ...asked, reads: true };
}

/** `value` may say that it cannot be: undefined. */
function match<Reply>(
  text: string,
  shape: RegExp,
  value: (groups: [string, string]) => Reply | undefined,
): Heard<Reply> {
  const found = shape.exec(text);
  if (!found) return foreign;
  const reply = value([found[1] ?? '', found[2] ?? '']);
  return reply === undefined ? foreign : { kind: 'reply', reply };
}

function acknowledged(address: number): (text: string) => Heard<null> {
  return (text) => (text === `!${aa(address)}` ? { kind: 'reply', reply: null } : foreign);
}

function switched(address: number): (text: string) => Heard<Switched> {
  return (text) => {
    if (text === '>') return { kind: 'reply', reply: 'done' };
    if (text === '!') return { kind: 'reply', reply: 'ignored' };
    // ICP DAS refuses output commands without the address (I-7000 DIO Manual 2.3).
    if (text === '?') return { kind: 'refused', reason: `module ${aa(address)} refused to switch an output` };
    return foreign;
  };
}

/** Outputs that the module does not have cannot be on. */
function pinsOf(type: ModuleType, bytes: [string, string]): Pins | undefined {
  const outputs = type.outputs ? Number.parseInt(bytes[type.outputs.byte], 16) : 0;
  const inputs = type.inputs ? wired(bytes[type.inputs.byte], type.inputs.count) : 0;
  if (outputs >= 1 << (type.outputs?.count ?? 0)) return undefined;
  return { outputs, inputs };
}

function wired(byte: string, count: number): number {
  return Number.parseInt(byte, 16) & ((1 << count) - 1);
}

/** An address as frames have it. */
export function aa(address: number): string {
  return hex(address, 2);
}
