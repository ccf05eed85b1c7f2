/** What the parts of a network co-processor share. */
import type { Air } from '../air/frames.ts';
import type { Reader } from '../bytes.ts';
import type { Endpoint } from '../stick/core.ts';
import type { Network } from '../stick/nib.ts';
import type { Time } from '../time.ts';
import type { Tokens } from './tokens.ts';

/** EmberInitialSecurityState, as it was set last, for the next network that is formed. */
export interface InitialSecurity {
  bitmask: number;
  trustCenterKey: Buffer;
  networkKey: Buffer;
  keySequence: number;
}

/** Lost at each reset. */
export interface NcpMemory {
  /** Undefined: down. */
  network: Network | undefined;
  isVersionSet: boolean;
  readonly endpoints: Map<number, Endpoint>;
  /** Children by IEEE address → network address. */
  readonly children: Map<string, number>;
  readonly configuration: Map<number, number>;
  readonly policies: Map<number, number>;
  readonly values: Map<number, Buffer>;
  readonly groups: Set<number>;
  /** Keys for joiners, by IEEE address; ffffffffffffffff: for each that has none of its own. */
  readonly transientKeys: Map<string, Buffer>;
  initialSecurity: InitialSecurity | undefined;
  permitUntil: number;
  apsSequence: number;
  frameCounter: number;
  /** Requests to send for which it will find no room. */
  full: number;
}

export interface NcpCore {
  readonly time: Time;
  readonly air: Air;
  /** Of EZSP. */
  readonly version: number;
  readonly memory: () => NcpMemory;
  readonly tokens: () => Tokens;
  /** In use since the reset. */
  readonly ieee: () => string;
  readonly nv: () => { keep(network: Network): void };
  /** An asynchronous callback to the host, after the answer to the command that is being dealt with. */
  callback(id: number, parameters: Uint8Array): void;
  /** Forgotten at a reset. Returns what takes it back. */
  later(milliseconds: number, action: () => void): () => void;
  /** The network is up. */
  started(): void;
}

/** Takes the parameters of a command, and gives those of its response. RangeError: they are too short. */
export type Command = (input: Reader) => Uint8Array;
export type Commands = Record<number, Command>;

export const ANY_DEVICE = 'ffffffffffffffff';
/** Callbacks (UG100, rev. 4.0, clause 4): frame id. */
export const CALLBACK = {
  stackStatus: 0x19,
  scanComplete: 0x1c,
  trustCenterJoin: 0x24,
  messageSent: 0x3f,
  incomingMessage: 0x45,
  energyScanResult: 0x48,
} as const;
