/** What the subsystems of a stick share. */
import type { Air } from '../air/frames.ts';
import type { Reader } from '../bytes.ts';
import type { Time } from '../time.ts';
import type { Network } from './nib.ts';
import type { Nv } from './nv.ts';

export interface Endpoint {
  endpoint: number;
  profile: number;
  deviceId: number;
  version: number;
  inputs: number[];
  outputs: number[];
}

/** What the firmware is made with: a CC2652 has Z-Stack 3.x.0, a CC2531 often 1.2. */
export type Stack = '3.x.0' | '1.2';

/** Lost at each reset. */
export interface Memory {
  /** Undefined: not started (DEV_HOLD). */
  network: Network | undefined;
  readonly endpoints: Map<number, Endpoint>;
  /** Endpoint → group → name. */
  readonly groups: Map<number, Map<number, Buffer>>;
  /** Children by IEEE address → network address. */
  readonly children: Map<string, number>;
  /** Clusters of ZDO whose messages go to the host as they are (ZDO_MSG_CB_REGISTER). */
  readonly callbacks: Set<number>;
  isInstallCodeNeeded: boolean;
  /** What the host has set (APP_CNF 0x09). */
  requiresKeyExchange: boolean | undefined;
  /** Joiners that have not exchanged their link key yet. */
  readonly unverified: Set<string>;
  /** Of the last frame that was sent. */
  frameCounter: number;
  permitUntil: number;
  /** The channels that a network is formed on; undefined: those of the NV item. */
  channelMask: number | undefined;
  /** Seconds to add to the time since the reset (SYS_SET_TIME). */
  utcOffset: number;
  readonly timers: Map<number, () => void>;
  /** Messages that are too long for one frame, by their timestamp. */
  readonly stored: Map<number, Buffer>;
  /** Requests to send for which it will find no room. */
  full: number;
}

export interface Core {
  readonly time: Time;
  readonly air: Air;
  readonly revision: number;
  stack(): Stack;
  readonly nv: () => Nv;
  readonly memory: () => Memory;
  /** In use since the reset. */
  readonly ieee: () => string;
  readonly startedAt: () => number;
  /** An AREQ to the host, after the answer to the request that is being dealt with. */
  areq(subsystem: number, id: number, data: Uint8Array): void;
  /** Forgotten at a reset. Returns what takes it back. */
  later(milliseconds: number, action: () => void): () => void;
  /** The network is up. */
  started(): void;
  /** As in SYS_RESET_IND: 0 power-up, 1 external, 2 watch dog. */
  reset(reason: number): void;
}

/** Takes the data of a request, and gives that of its response; undefined: there is none. RangeError: wrong length. */
export type Handler = (input: Reader) => Uint8Array | undefined;
export type Subsystem = Record<number, Handler>;

export const DEVICE_STATE = { hold: 0, coordinatorStarting: 8, coordinator: 9 } as const;
