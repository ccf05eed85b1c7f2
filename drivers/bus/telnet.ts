/** Telnet (RFC 854, 855) with the option COM-PORT-OPTION (RFC 2217), as a client of a serial device server has it: bytes in and out. Pure. */
import type { LineSettings } from './options.ts';

const IAC = 0xff;
const [SE, SB, WILL, WONT, DO, DONT] = [0xf0, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe];
/** RFC 856, 858, 2217. */
export const BINARY = 0;
const SUPPRESS_GO_AHEAD = 3;
export const COM_PORT = 44;
const WANTED: readonly number[] = [BINARY, SUPPRESS_GO_AHEAD, COM_PORT];

/** RFC 2217, 3: from the client; the server answers with 100 more, and with the value that is in force. */
const SET = { baudRate: 1, dataBits: 2, parity: 3, stopBits: 4, control: 5 } as const;
const ANSWERED = 100;
const PARITY = { none: 1, odd: 2, even: 3 } as const;
/** SET-CONTROL: no flow control. */
const NO_FLOW_CONTROL = 1;
const STATE_MASKS = [10, 11];
/** Longer than any command of RFC 2217: what goes on is none. */
const SUBNEGOTIATION_MAX = 64;

export type Setting = Exclude<keyof typeof SET, 'control'>;

export type Heard =
  | { kind: 'data'; bytes: Uint8Array }
  /** The peer will not, or is not to, do what an option says. */
  | { kind: 'refused'; option: number }
  | { kind: 'agreed'; option: number; by: 'us' | 'peer' }
  | { kind: 'setting'; setting: Setting; value: number }
  /** To be sent: an answer to the peer. */
  | { kind: 'answer'; bytes: Uint8Array };

/** What a client begins with. */
export function opening(): Uint8Array {
  return Uint8Array.from(
    WANTED.flatMap((option) => [IAC, WILL, option, ...(option === COM_PORT ? [] : [IAC, DO, option])]),
  );
}

/** Data, in which each 0xFF is doubled. */
export function escaped(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from([...bytes].flatMap((byte) => (byte === IAC ? [IAC, IAC] : [byte])));
}

/** The value of each setting, as RFC 2217 has it. */
export function valuesOf({ baudRate, parity, stopBits, dataBits }: LineSettings & { dataBits: 7 | 8 }) {
  return { baudRate, dataBits, parity: PARITY[parity], stopBits } satisfies Record<Setting, number>;
}

/** Asks for these settings, no flow control, and no notifications of lines and modems. */
export function settingCommands(values: Record<Setting, number>): Uint8Array {
  const { baudRate, dataBits, parity, stopBits } = values;
  const rate = [baudRate >>> 24, (baudRate >>> 16) & 0xff, (baudRate >>> 8) & 0xff, baudRate & 0xff];
  return Uint8Array.from([
    ...STATE_MASKS.flatMap((mask) => command(mask, [0])),
    ...command(SET.control, [NO_FLOW_CONTROL]),
    ...command(SET.baudRate, rate),
    ...command(SET.dataBits, [dataBits]),
    ...command(SET.parity, [parity]),
    ...command(SET.stopBits, [stopBits]),
  ]);
}

function command(code: number, value: readonly number[]): number[] {
  return [IAC, SB, COM_PORT, code, ...escaped(Uint8Array.from(value)), IAC, SE];
}

/**
 * | state          | byte          | becomes        |                                          |
 * |----------------|---------------|----------------|------------------------------------------|
 * | data           | IAC           | command        |                                          |
 * | command        | IAC           | data           | one 0xFF of data                         |
 * | command        | WILL … DONT   | option         |                                          |
 * | command        | SB            | subnegotiation |                                          |
 * | command        | another       | data           | NOP, BREAK and the like: nothing         |
 * | option         | any           | data           | agreed, refused, or answered with a no   |
 * | subnegotiation | IAC           | its end?       |                                          |
 * | its end?       | SE            | data           | a setting, where it is one               |
 * | its end?       | IAC           | subnegotiation | one 0xFF of it                           |
 */
type State =
  | { kind: 'data' | 'command' }
  | { kind: 'option'; verb: number }
  | { kind: 'subnegotiation' | 'end'; bytes: readonly number[] };

const DATA: State = { kind: 'data' };

export interface TelnetReader {
  /** In the order in which they came. */
  take(bytes: Uint8Array): Heard[];
}

export function openTelnetReader(): TelnetReader {
  let state: State = DATA;
  return {
    take(bytes) {
      const heard: Heard[] = [];
      let data: number[] = [];
      const flush = () => {
        if (data.length > 0) heard.push({ kind: 'data', bytes: Uint8Array.from(data) });
        data = [];
      };
      for (const byte of bytes) {
        const next = after(state, byte);
        state = next.state;
        if (next.data !== undefined) data.push(next.data);
        if (!next.heard) continue;
        flush();
        heard.push(next.heard);
      }
      flush();
      return heard;
    },
  };
}

interface Step {
  state: State;
  data?: number;
  heard?: Heard | undefined;
}

function after(state: State, byte: number): Step {
  switch (state.kind) {
    case 'data':
      return byte === IAC ? { state: { kind: 'command' } } : { state, data: byte };
    case 'command':
      if (byte === IAC) return { state: DATA, data: IAC };
      if (byte === SB) return { state: { kind: 'subnegotiation', bytes: [] } };
      return { state: byte >= WILL ? { kind: 'option', verb: byte } : DATA };
    case 'option':
      return { state: DATA, heard: optionHeard(state.verb, byte) };
    case 'subnegotiation':
      if (byte === IAC) return { state: { kind: 'end', bytes: state.bytes } };
      if (state.bytes.length >= SUBNEGOTIATION_MAX) return { state };
      return { state: { kind: 'subnegotiation', bytes: [...state.bytes, byte] } };
    case 'end':
      if (byte === IAC) return { state: { kind: 'subnegotiation', bytes: [...state.bytes, IAC] } };
      return { state: DATA, heard: settingHeard(state.bytes) };
  }
}

function optionHeard(verb: number, option: number): Heard | undefined {
  const isWanted = WANTED.includes(option);
  if (verb === DO || verb === WILL) {
    if (isWanted) return { kind: 'agreed', option, by: verb === DO ? 'us' : 'peer' };
    return { kind: 'answer', bytes: Uint8Array.of(IAC, verb === DO ? WONT : DONT, option) };
  }
  // RFC 2217 is spoken once our WILL is accepted: a server need not offer it itself.
  const matters = option === BINARY || (option === COM_PORT && verb === DONT);
  return matters ? { kind: 'refused', option } : undefined;
}

function settingHeard([option, code, ...value]: readonly number[]): Heard | undefined {
  if (option !== COM_PORT) return undefined;
  const setting = (Object.keys(SET) as (keyof typeof SET)[]).find((one) => SET[one] + ANSWERED === code);
  if (setting === undefined || setting === 'control') return undefined;
  return { kind: 'setting', setting, value: value.reduce((sum, byte) => sum * 0x100 + byte, 0) };
}
