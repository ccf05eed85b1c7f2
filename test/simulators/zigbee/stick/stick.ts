/**
 * A Z-Stack 3.x.0 network processor: what comes over its port, and what it does about it. SWRA198 has the commands; what
 * it does not know it answers with the error response of clause 3.1.
 */
import type { Air, Aps, LastHop } from '../air/frames.ts';
import type { AshLink } from '../ash/link.ts';
import { ieee, ieeeText, openReader } from '../bytes.ts';
import { type MtFrame, SUBSYSTEM } from '../mt/frame.ts';
import type { Time } from '../time.ts';
import { type Admissions, forgetMovedChild, openAdmissions } from './admissions.ts';
import { afCommands, incoming } from './af.ts';
import { appCnfCommands } from './app-cnf.ts';
import type { Core, Memory, Stack, Subsystem } from './core.ts';
import { nextFrameCounter, setFrameCounter } from './frame-counter.ts';
import type { Network } from './nib.ts';
import { type Nv, type NvDump, openNv } from './nv.ts';
import { NV } from './nv-items.ts';
import { openPort, type Port, type PortCounters } from './port.ts';
import { openSerialLine } from './serial-line.ts';
import { networkInfo, startupCommands } from './startup.ts';
import { resetIndication, sysCommands } from './sys.ts';
import { groupCommands, utilCommands } from './util.ts';
import { openZdo, type Zdo } from './zdo.ts';

export interface StickOptions {
  time: Time;
  ieee: string;
  /** Build date of the firmware, such as 20230507. */
  revision: number;
  stack: Stack;
  /** Of its last life. */
  kept: NvDump | undefined;
  /** How long after power-up or a reset it says nothing. */
  bootMs: number;
  /** Share of the time of a serial line that its port takes at present. */
  pace(): number;
  childrenMax: number;
  /** bdbTrustCenterRequireKeyExchange, until the host says otherwise, and bdbTrustCenterNodeJoinTimeout. */
  requiresKeyExchange: boolean;
  joinTimeoutMs: number;
  /** The network is up. */
  started(): void;
  /** To the host. */
  write(bytes: Uint8Array): void;
}

export interface Stick extends Admissions {
  receive(bytes: Uint8Array): void;
  /** Forgets half a frame, as a host that connects again begins a new one. */
  cut(): void;
  epoch(): object;
  network(): Network | undefined;
  hear(frame: Aps, hop: LastHop): void;
  nextFrameCounter(): number;
  /** As after so many more frames; answers the counter of the last one. */
  skipFrames(count: number): number;
  reset(reason: number): void;
  /** Another stick in the same place: nothing in its memory. */
  replace(replacement: Replacement): void;
  setSilent(on: boolean): void;
  /** Has no room for the next so many requests to send. */
  fill(requests: number): void;
  /** Of the serial line of an EmberZNet one. */
  failAsh?: AshLink['fail'];
  /** Its memory, for `kept`. */
  dump(): NvDump;
  state(): StickState;
}

export interface Replacement {
  ieee: string;
  stack?: Stack | undefined;
  keepsIeee?: boolean | undefined;
  keyTable?: number | undefined;
}

export interface StickState {
  ieee: string;
  isStarted: boolean;
  isSilent: boolean;
  panId: number | null;
  extendedPanId: string | null;
  channel: number | null;
  updateId: number | null;
  frameCounter: number;
  permitJoinMs: number;
  endpoints: number[];
  children: string[];
  installCodes: string[];
  frames: PortCounters;
}

/** A timer can fire so much before its time (Node). */
const EARLY_MS = 1;
const RPC_ERROR = { subsystem: 1, command: 2, parameter: 3, length: 4 };
const MGMT_PERMIT_JOIN = 0x36;
const PERMIT_JOIN_IND = 0xcb;

export function openStick(options: StickOptions & { air: () => Air }): Stick {
  const { time } = options;
  let { stack } = options;
  let nv: Nv = openNv(options.ieee, options.kept);
  let memory = emptyMemory();
  let ownIeee = ieeeText(nv.get(NV.extendedAddress) ?? ieee(options.ieee));
  let startedAt = time.now();
  let readyAt = startedAt + options.bootMs - EARLY_MS;

  const core: Core = {
    time,
    get air() {
      return options.air();
    },
    nv: () => nv,
    memory: () => memory,
    ieee: () => ownIeee,
    startedAt: () => startedAt,
    areq: (subsystem, id, data) => port.indicate({ type: 'AREQ', subsystem, id, data }),
    later(milliseconds, action) {
      const sender = memory;
      return time.after(milliseconds, () => sender === memory && action());
    },
    reset,
    started: options.started,
    revision: options.revision,
    stack: () => stack,
  };
  const { tables, zdo } = commandsOf(core);
  const port = openPort({
    isUp: () => time.now() >= readyAt,
    write: openSerialLine(time, options.pace, options.write),
    reset: () => reset(0),
    answer: (request) => answer(tables, request),
  });

  function reset(reason: number): void {
    nv.startUp();
    memory = emptyMemory();
    ownIeee = ieeeText(nv.get(NV.extendedAddress) ?? Buffer.alloc(8));
    startedAt = time.now();
    readyAt = startedAt + options.bootMs - EARLY_MS;
    const { id, data } = resetIndication(reason, stack);
    core.later(options.bootMs, () => core.areq(SUBSYSTEM.sys, id, data));
  }

  return {
    receive: openSerialLine(time, options.pace, port.receive),
    cut: port.cut,
    epoch: () => memory,
    network: () => memory.network,
    hear(frame, hop) {
      if (frame.endpoint === 0) {
        forgetMovedChild(core, frame, hop);
        zdo.hear(frame);
      } else incoming(core, frame, hop);
    },
    nextFrameCounter: () => nextFrameCounter(core),
    skipFrames(count) {
      setFrameCounter(core, memory.network, memory.frameCounter + count);
      return memory.frameCounter;
    },
    ...openAdmissions(core, options),
    reset,
    replace(replacement) {
      stack = replacement.stack ?? '3.x.0';
      nv = openNv(replacement.ieee);
      reset(0);
    },
    fill: filler(core.memory),
    setSilent: port.setSilent,
    dump: () => nv.dump(),
    state: () => describe(core, port),
  };
}

function filler(memory: Core['memory']): Stick['fill'] {
  return (requests) => {
    memory().full = requests;
  };
}

function emptyMemory(): Memory {
  return {
    network: undefined,
    endpoints: new Map(),
    groups: new Map(),
    children: new Map(),
    callbacks: new Set(),
    isInstallCodeNeeded: false,
    requiresKeyExchange: undefined,
    unverified: new Set(),
    frameCounter: 0,
    permitUntil: 0,
    channelMask: undefined,
    utcOffset: 0,
    timers: new Map(),
    stored: new Map(),
    full: 0,
  };
}

function commandsOf(core: Core): { tables: Record<number, Subsystem>; zdo: Zdo } {
  const zdo = openZdo(core);
  const startup = startupCommands(core);
  const permitJoin = zdo.commands[MGMT_PERMIT_JOIN];
  const tables: Record<number, Subsystem> = {
    [SUBSYSTEM.sys]: sysCommands(core),
    [SUBSYSTEM.af]: afCommands(core, zdo.hear),
    [SUBSYSTEM.zdo]: {
      ...zdo.commands,
      ...groupCommands(core),
      ...startup.zdo,
      80: () => networkInfo(core),
      [MGMT_PERMIT_JOIN](input) {
        const response = permitJoin?.(input);
        const left = Math.max(
          0,
          Math.min(255, Math.round((core.memory().permitUntil - core.time.now()) / 1_000)),
        );
        core.areq(SUBSYSTEM.zdo, PERMIT_JOIN_IND, Buffer.of(left));
        return response;
      },
    },
    [SUBSYSTEM.util]: utilCommands(core),
    [SUBSYSTEM.appCnf]: { ...appCnfCommands(core), ...startup.appCnf },
  };
  return { tables, zdo };
}

function answer(tables: Record<number, Subsystem>, { subsystem, id, data }: MtFrame): MtFrame {
  const commands = tables[subsystem];
  const handler = commands?.[id];
  const failed = (code: number): MtFrame => {
    const command = 0x20 | subsystem;
    return { type: 'SRSP', subsystem: SUBSYSTEM.rpcError, id: 0, data: Buffer.of(code, command, id) };
  };
  if (!handler) return failed(commands ? RPC_ERROR.command : RPC_ERROR.subsystem);
  try {
    const response = handler(openReader(data));
    return { type: 'SRSP', subsystem, id, data: response ?? Buffer.alloc(0) };
  } catch (error) {
    if (error instanceof RangeError) return failed(RPC_ERROR.length);
    throw error;
  }
}

function describe(core: Core, port: Port): StickState {
  const { network, permitUntil, endpoints, children, frameCounter } = core.memory();
  return {
    ieee: core.ieee(),
    isStarted: network !== undefined,
    isSilent: port.isSilent(),
    panId: network?.panId ?? null,
    extendedPanId: network ? network.extendedPanId.toString('hex') : null,
    channel: network?.channel ?? null,
    updateId: network?.updateId ?? null,
    frameCounter,
    permitJoinMs: Math.round(Math.max(0, Math.min(permitUntil - core.time.now(), 255_000))),
    endpoints: [...endpoints.keys()],
    children: [...children.keys()],
    installCodes: [...core.nv().installKeys().keys()],
    frames: port.counters(),
  };
}
