/**
 * A simulated peripheral device: address, sequence numbers, the secure channel and everything that can be wrong with
 * them, around a peripheral.ts. Bytes of one command in, bytes of the reply out.
 */
import type { Device } from '../bus/protocol.ts';
import type { ReplyFault } from './faults.ts';
import { ACK, nak, openPeripheral, type Peripheral, type PeripheralOptions } from './peripheral.ts';
import { openSequence } from './sequence.ts';
import { CHALLENGE, openVault, plainly, type Vault, type VaultOptions } from './vault.ts';
import { type Answer, type CommandFrame, readCommand, rechecked } from './wire.ts';

export interface OsdpDeviceOptions extends PeripheralOptions, Omit<VaultOptions, 'id'> {
  address: number;
  /** Nothing but ID, CAP and the handshake in clear text. */
  requiresSecurity?: boolean;
  /** Of the bus: a device that was set to another one hears nothing. */
  baudRate?: number;
  /** Restarts once it has taken a key, and is silent for so long. */
  keyRestartMs?: number;
  /** Takes any number after a restart. */
  isLenient?: boolean;
  /** Says NAK 1 to what was damaged, instead of nothing. */
  answersDamaged?: boolean;
}

export interface OsdpDevice extends Device {
  /** null: it listens at another rate. */
  place(): number | null;
  readonly peripheral: Peripheral;
  /** The next `times` replies have this fault. */
  break(fault: ReplyFault, times?: number): void;
  setKey(key: Uint8Array | undefined): void;
  /** By its switch. */
  setAddress(address: number): void;
  isSecure(): boolean;
  /** How often a session was established. */
  sessions(): number;
}

/** A device forgets its session when the panel is silent for so long (5.7). */
const SESSION_TIMEOUT_MS = 8_000;
const BROADCAST = 0x7f;
const KEYSET = 0x75;
const PROOF = 0x77;
const OUTPUTS = 0x68;
const COMSET = 0x6e;
const FILE = 0x7c;
const FILE_STATUS = 0x7a;
const RESTARTING = 2;
const RESTART_MS = 300;
const IN_CLEAR = new Set([0x61, 0x62, CHALLENGE, PROOF]);
const BUSY: Answer = { code: 0x79, data: Buffer.alloc(0) };
const NAK_CODE = { check: 1, sequence: 4, block: 5, required: 6, record: 9 } as const;

export function openOsdpDevice(options: OsdpDeviceOptions): OsdpDevice {
  const peripheral = openPeripheral(options);
  const vault = openVault({ ...options, id: peripheral.identity().subarray(0, 8) });
  const faults = openFaults();
  const place = openPlace(options);
  const performance = openPerformance({ ...options, vault, place, peripheral, faults });
  const sequence = openSequence(options.isLenient);
  let heardAt = Number.NEGATIVE_INFINITY;

  function forget(): void {
    vault.forget();
    sequence.forget();
  }

  function restart(now: number): void {
    performance.isBack();
    forget();
    peripheral.restart(now);
  }
  function carryOut(command: CommandFrame, now: number): Buffer {
    const { code, block, data } = command;
    if (code === CHALLENGE || code === PROOF) return vault.handshake(command, faults.has('downgrade'));
    if (vault.isSecure()) {
      const clear = vault.unseal(command);
      if (!clear) {
        vault.forget();
        return plainly(command, nak(NAK_CODE.required));
      }
      const answer = performance.perform(code, clear, now);
      return faults.has('clearText') ? plainly(command, answer) : vault.seal(command, answer);
    }
    if (block) return plainly(command, nak(options.isPlain ? NAK_CODE.block : NAK_CODE.required));
    if (options.requiresSecurity && !IN_CLEAR.has(code)) return plainly(command, nak(NAK_CODE.required));
    return plainly(command, performance.perform(code, data, now));
  }

  function inTurn(command: CommandFrame, now: number): Buffer {
    const turn = sequence.turnOf(command);
    if (turn.kind === 'again') return turn.reply;
    if (turn.kind !== 'goesOn') forget();
    if (turn.kind === 'outOfTurn') return plainly(command, nak(NAK_CODE.sequence));
    if (faults.has('busy')) return plainly({ ...command, sequence: 0 }, BUSY);
    const reply = carryOut(command, now);
    sequence.answered(command, reply);
    place.move();
    return reply;
  }

  return {
    peripheral,
    pins: peripheral.pins,
    place: place.now,
    answer(request, now) {
      peripheral.advance(now);
      const address = place.now();
      const backAt = performance.backAt();
      if (address === null || (backAt !== undefined && now < backAt)) return undefined;
      if (backAt !== undefined) restart(now);
      const command = readCommand(request);
      if (!command) return undefined;
      if (command === 'damaged') return options.answersDamaged ? complaint(request, address) : undefined;
      if (command.address !== address && command.address !== BROADCAST) return undefined;
      if (now - heardAt > SESSION_TIMEOUT_MS) forget();
      heardAt = now;
      const reply = inTurn(command, now);
      // It has just moved, if it did.
      if (place.now() !== address && faults.has('mute')) return undefined;
      return faults.spoil(reply, sequence.earlierReply());
    },
    advance: peripheral.advance,
    restart,
    alarm: peripheral.alarm,
    describe: () => ({
      ...peripheral.describe(),
      isPaired: vault.hasKey(),
      isSecure: vault.isSecure(),
      sessions: vault.sessions(),
    }),
    break: faults.set,
    setKey: vault.setKey,
    setAddress: place.set,
    isSecure: vault.isSecure,
    sessions: vault.sessions,
  };
}

interface Performing extends Pick<OsdpDeviceOptions, 'keyRestartMs'> {
  vault: Vault;
  place: ReturnType<typeof openPlace>;
  peripheral: Peripheral;
  faults: ReturnType<typeof openFaults>;
}

/** What is not for the peripheral alone. */
function openPerformance({ vault, place, peripheral, faults, keyRestartMs }: Performing) {
  /** It restarts after it was given firmware or, some devices, a key. */
  let backAt: number | undefined;

  function takeKey(data: Buffer, now: number): Answer {
    if (!vault.isSecure()) return nak(NAK_CODE.required);
    const answer = vault.takeKey(data);
    if (answer === ACK && keyRestartMs !== undefined) backAt = now + keyRestartMs;
    return answer;
  }

  return {
    perform(code: number, data: Buffer, now: number): Answer {
      if (code === KEYSET) return takeKey(data, now);
      if (code === COMSET) return place.next(data);
      if (code === OUTPUTS && faults.has('refused')) return nak(NAK_CODE.record);
      const answer = peripheral.perform(code, data, now);
      if (code === FILE && answer.code === FILE_STATUS && answer.data.readInt16LE(3) === RESTARTING)
        backAt = now + RESTART_MS;
      return answer;
    },
    backAt: () => backAt,
    isBack(): void {
      backAt = undefined;
    },
  };
}

/** Where it is: another address and rate are those of the command after the one that says so. */
function openPlace({ address: first, baudRate: ofBus }: Pick<OsdpDeviceOptions, 'address' | 'baudRate'>) {
  let address = first;
  let baudRate = ofBus;
  let next = { address, baudRate };
  return {
    next(data: Buffer): Answer {
      if (data.length !== 5) return nak(2);
      next = { address: data.readUInt8(0), baudRate: data.readUInt32LE(1) };
      return { code: 0x54, data };
    },
    move(): void {
      ({ address, baudRate } = next);
    },
    set(bySwitch: number): void {
      address = bySwitch;
      next = { address, baudRate };
    },
    now: () => (ofBus !== undefined && baudRate !== ofBus ? null : address),
  };
}

/** Says that the check was wrong, as far as what came looks like a command to this address. */
function complaint(request: Uint8Array, address: number): Buffer | undefined {
  const start = request.indexOf(0x53);
  if (start < 0 || request[start + 1] !== address) return undefined;
  const control = request[start + 4] ?? 4;
  return plainly({ address, sequence: control & 3, usesCrc: (control & 4) !== 0 }, nak(NAK_CODE.check));
}

function openFaults() {
  const left = new Map<ReplyFault, number>();
  function has(fault: ReplyFault): boolean {
    const times = left.get(fault) ?? 0;
    if (times > 0) left.set(fault, times - 1);
    return times > 0;
  }
  return {
    has,
    set: (fault: ReplyFault, times = 1) => void left.set(fault, times),
    spoil(reply: Buffer, before: Buffer | undefined): Buffer | undefined {
      const bytes = Buffer.from(reply);
      if (has('lost')) return undefined;
      if (has('damaged')) bytes[bytes.length - 3] = (bytes[bytes.length - 3] ?? 0) ^ 0x10;
      if (has('replayed')) return before ?? bytes;
      if (has('sequence')) return rewritten(bytes, 4, (control) => (control & ~3) | ((control + 1) & 3));
      if (has('foreignAddress')) return rewritten(bytes, 1, (from) => from ^ 0x40);
      return bytes;
    },
  };
}

/** The reply with one byte of its header changed, and its check right again. */
export function rewritten(reply: Buffer, at: number, change: (byte: number) => number): Buffer {
  const message = Buffer.from(reply.subarray(reply.indexOf(0x53)));
  message[at] = change(message[at] ?? 0);
  return rechecked(message);
}
