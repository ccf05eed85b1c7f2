/**
 * An EmberZNet network co-processor on a serial port: EZSP over ASH. What it does not know it answers with invalidCommand
 * (UG100, rev. 4.0, clause 3), as a true one does.
 */
import type { Air } from '../air/frames.ts';
import { type AshLink, openAshLink, RESET_CODE } from '../ash/link.ts';
import { openReader } from '../bytes.ts';
import { WELL_KNOWN_KEY } from '../stick/security.ts';
import { openSerialLine } from '../stick/serial-line.ts';
import type { Stick, StickOptions, StickState } from '../stick/stick.ts';
import { configurationCommands, defaultConfiguration } from './configuration.ts';
import type { Commands, NcpCore, NcpMemory } from './core.ts';
import { type EzspCommand, encodeCallback, encodeResponse, readCommand } from './frame.ts';
import { openIncoming } from './incoming.ts';
import { openJoining } from './joining.ts';
import { messageCommands } from './messages.ts';
import { networkCommands, stackStatus } from './network.ts';
import { securityCommands } from './security.ts';
import { EZSP_STATUS, SL } from './status.ts';
import { openTokens, type Tokens } from './tokens.ts';

const INVALID_COMMAND = 0x58;
const VERSION = 0;
const SEND_UNICAST = 0x34;
/** A timer can fire so much before its time (Node). */
const EARLY_MS = 1;
/** SYS_RESET_IND of Z-Stack, as `reset` takes it: power-up, external, watch dog. */
const RESET_CODES = [RESET_CODE.powerOn, RESET_CODE.external, RESET_CODE.watchdog];

export type NcpOptions = Omit<
  StickOptions,
  'revision' | 'stack' | 'requiresKeyExchange' | 'joinTimeoutMs'
> & {
  air: () => Air;
  /** Of EZSP. */
  version: number;
  /** Rows for link keys. */
  keyTable: number;
};

export function openNcp(options: NcpOptions): Stick {
  const { time, version } = options;
  let tokens: Tokens = openTokens(options.ieee, options.kept);
  let { keyTable } = options;
  let memory = emptyMemory(keyTable);
  let ownIeee = tokens.ieee();
  let readyAt = time.now() + options.bootMs - EARLY_MS;
  let isSilent = false;
  const core: NcpCore = {
    time,
    version,
    get air() {
      return options.air();
    },
    memory: () => memory,
    tokens: () => tokens,
    ieee: () => ownIeee,
    nv: () => ({ keep }),
    callback: (id, parameters) => dialogue.callback(id, parameters),
    later(milliseconds, action) {
      const sender = memory;
      return time.after(milliseconds, () => sender === memory && action());
    },
    started: options.started,
  };
  const incoming = openIncoming(core);
  const joining = openJoining(core, options.childrenMax);
  const dialogue = openDialogue(core, say, {
    ...configurationCommands(core),
    ...networkCommands(core),
    ...securityCommands(core),
    ...messageCommands(core, incoming),
  });
  const isUp = () => !isSilent && time.now() >= readyAt;
  const write = openSerialLine(time, options.pace, options.write);
  const ash: AshLink = openAshLink({
    time,
    write: (bytes) => isUp() && write(bytes),
    reset: () => restart(RESET_CODE.software),
    take: (data) => dialogue.take(data),
    sends: (data) => readCommand(data)?.id === SEND_UNICAST,
  });

  function say(frame: Buffer): void {
    if (isUp()) ash.send(frame);
  }
  function keep(network: NonNullable<NcpMemory['network']>): void {
    const before = tokens.network();
    if (!before) return;
    tokens.keep({ ...before, ...network });
    if (before.channel !== network.channel) stackStatus(core, SL.channelChanged);
  }
  function restart(code: number): void {
    memory = emptyMemory(keyTable);
    ownIeee = tokens.ieee();
    readyAt = time.now() + options.bootMs - EARLY_MS;
    core.later(options.bootMs, () => ash.restarted(code));
  }
  const receive = openSerialLine(time, options.pace, (bytes) => isUp() && ash.receive(bytes));
  return {
    ...joining,
    receive,
    cut: ash.cut,
    epoch: () => memory,
    network: () => memory.network,
    hear: incoming.hear,
    nextFrameCounter: () => skipFrames(core, 1),
    skipFrames: (count) => skipFrames(core, count),
    reset: (reason) => restart(RESET_CODES[reason] ?? RESET_CODE.watchdog),
    replace(replacement) {
      ({ keyTable = options.keyTable } = replacement);
      tokens = openTokens(replacement.ieee, undefined, replacement.keepsIeee);
      restart(RESET_CODE.powerOn);
    },
    fill: (requests) => Object.assign(memory, { full: requests }),
    failAsh: ash.fail,
    setSilent(on) {
      isSilent = on;
      ash.cut();
    },
    dump: () => tokens.dump(),
    state: () => describe(core, isSilent, { ...ash.counters, ...dialogue.counts() }),
  };
}

function skipFrames({ memory, tokens }: NcpCore, count: number): number {
  const own = memory();
  own.frameCounter += count;
  tokens().count(own.frameCounter);
  return own.frameCounter;
}

/** Commands and their responses, and callbacks between them. */
function openDialogue({ memory }: NcpCore, say: (frame: Buffer) => void, commands: Commands) {
  const byType: Record<string, number> = {};
  let unknown = 0;
  let sequence = 0;
  /** Callbacks that wait for the response of the command that caused them. */
  let held: Buffer[] | undefined;

  function answer(command: EzspCommand): Buffer {
    const invalid = (code: number) => encodeResponse(command, INVALID_COMMAND, Buffer.of(code));
    if (!memory().isVersionSet && command.id !== VERSION) return invalid(EZSP_STATUS.versionNotSet);
    const handler = commands[command.id];
    if (!handler) {
      unknown += 1;
      return invalid(EZSP_STATUS.invalidFrameId);
    }
    try {
      return encodeResponse(command, command.id, handler(openReader(command.parameters)));
    } catch (error) {
      if (error instanceof RangeError) return invalid(EZSP_STATUS.outOfMemory);
      throw error;
    }
  }
  return {
    counts: () => ({ unknown, byType: { ...byType } }),
    callback(id: number, parameters: Uint8Array): void {
      const frame = encodeCallback(sequence, id, parameters);
      if (held) held.push(frame);
      else say(frame);
    },
    take(data: Buffer): void {
      const command = readCommand(data);
      if (!command) return;
      ({ sequence } = command);
      const name = command.id.toString(16).padStart(2, '0');
      byType[name] = (byType[name] ?? 0) + 1;
      held = [];
      const response = answer(command);
      const waiting = held;
      held = undefined;
      for (const one of [response, ...waiting]) say(one);
    },
  };
}

function emptyMemory(keyTable: number): NcpMemory {
  return {
    network: undefined,
    isVersionSet: false,
    endpoints: new Map(),
    children: new Map(),
    configuration: defaultConfiguration(keyTable),
    policies: new Map(),
    values: new Map(),
    groups: new Set(),
    transientKeys: new Map(),
    initialSecurity: undefined,
    permitUntil: 0,
    apsSequence: 0,
    frameCounter: 0,
    full: 0,
  };
}

function describe(core: NcpCore, isSilent: boolean, frames: StickState['frames']): StickState {
  const { network, permitUntil, endpoints, children, frameCounter, transientKeys } = core.memory();
  return {
    ieee: core.ieee(),
    isStarted: network !== undefined,
    isSilent,
    panId: network?.panId ?? null,
    extendedPanId: network ? network.extendedPanId.toString('hex') : null,
    channel: network?.channel ?? null,
    updateId: network?.updateId ?? null,
    frameCounter,
    permitJoinMs: Math.round(Math.max(0, Math.min(permitUntil - core.time.now(), 255_000))),
    endpoints: [...endpoints.keys()],
    children: [...children.keys()],
    installCodes: [...transientKeys].flatMap(([device, key]) => (key.equals(WELL_KNOWN_KEY) ? [] : [device])),
    frames,
  };
}
