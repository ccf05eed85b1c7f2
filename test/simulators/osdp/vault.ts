/** The key of a simulated device, and its session: the handshake, and what is inside. */
import { ACK, nak } from './peripheral.ts';
import {
  acceptCommand,
  answerChallenge,
  DEFAULT_KEY,
  decryptCommand,
  encryptReply,
  firstReplyMac,
  type Sealing,
  signReply,
} from './sealing.ts';
import { type Answer, type CommandFrame, writeReply } from './wire.ts';

export interface VaultOptions {
  key?: Uint8Array;
  /** Takes the key that everybody knows. A device without a key does. */
  installMode?: boolean;
  /** Answers a challenge for the default key under its own, and says so; else it refuses that challenge. */
  insistsOnKey?: boolean;
  /** Knows no secure channel at all. */
  isPlain?: boolean;
  /** 0 up to 1. */
  random?: () => number;
  /** Vendor code, model, version and the low bytes of the serial number. */
  id: Buffer;
}

export interface Vault {
  /** CHLNG and SCRYPT. `offersDefault`: it takes the key that everybody knows, whatever was asked for. */
  handshake(command: CommandFrame, offersDefault: boolean): Buffer;
  /** undefined: what is said inside the session was not said inside this one. */
  unseal(command: CommandFrame): Buffer | undefined;
  seal(command: CommandFrame, answer: Answer): Buffer;
  /** KEYSET. */
  takeKey(data: Buffer): Answer;
  setKey(key: Uint8Array | undefined): void;
  hasKey(): boolean;
  forget(): void;
  isSecure(): boolean;
  sessions(): number;
}

type State =
  | { kind: 'none' }
  | { kind: 'challenged'; proof: Buffer; keys: Omit<Sealing, 'commandMac' | 'replyMac'> }
  | { kind: 'established'; sealing: Sealing };

export const CHALLENGE = 0x76;
const NAK_CODE = { block: 5, required: 6 } as const;

/** In clear text, or with the block of the handshake. */
export function plainly(
  command: Pick<CommandFrame, 'address' | 'sequence' | 'usesCrc'>,
  answer: Answer,
  block?: { type: number; value: number },
): Buffer {
  const { address, sequence, usesCrc } = command;
  const written = block ? { type: block.type, data: [block.value] } : null;
  return writeReply({ address, sequence, usesCrc, ...answer, block: written });
}

export function openVault({ random = Math.random, isPlain = false, id, ...options }: VaultOptions): Vault {
  let key = options.key && Buffer.from(options.key);
  let installMode = options.installMode ?? key === undefined;
  let state: State = { kind: 'none' };
  let sessions = 0;

  function challenged(command: CommandFrame, offersDefault: boolean): Buffer {
    const wantsOwn = command.block?.data[0] === 1;
    const insists = options.insistsOnKey === true && key !== undefined && !installMode;
    const takesOwn = (wantsOwn && !offersDefault) || insists;
    const baseKey = takesOwn ? key : DEFAULT_KEY;
    const isAllowed = wantsOwn || installMode || insists;
    if (isPlain || command.block?.type !== 0x11 || !baseKey || !isAllowed || command.data.length !== 8)
      return plainly(command, nak(NAK_CODE.block));
    const nonce = Buffer.from(Array.from({ length: 8 }, () => random() * 256));
    const answer = answerChallenge(baseKey, command.data, nonce);
    const { clientCryptogram, expectedServerCryptogram, ...keys } = answer;
    state = { kind: 'challenged', proof: expectedServerCryptogram, keys };
    const data = Buffer.concat([id, nonce, clientCryptogram]);
    return plainly(command, { code: 0x76, data }, { type: 0x12, value: takesOwn ? 1 : 0 });
  }
  function proven(command: CommandFrame): Buffer {
    if (state.kind !== 'challenged' || command.block?.type !== 0x13)
      return plainly(command, nak(NAK_CODE.required));
    const { proof, keys } = state;
    if (!proof.equals(command.data)) {
      state = { kind: 'none' };
      return plainly(command, { code: 0x78, data: Buffer.alloc(16) }, { type: 0x14, value: 0xff });
    }
    const replyMac = firstReplyMac(keys, command.data);
    state = { kind: 'established', sealing: { ...keys, replyMac, commandMac: replyMac } };
    sessions += 1;
    return plainly(command, { code: 0x78, data: replyMac }, { type: 0x14, value: 1 });
  }

  return {
    handshake: (command, offersDefault) =>
      command.code === CHALLENGE ? challenged(command, offersDefault) : proven(command),
    unseal(command) {
      if (state.kind !== 'established') return undefined;
      const { sealing } = state;
      const isEncrypted = command.block?.type === 0x17;
      const clear = isEncrypted ? decryptCommand(sealing, command.data) : command.data;
      if (command.block?.type !== 0x15 && !isEncrypted) return undefined;
      return acceptCommand(sealing, command.signed, command.mac) ? clear : undefined;
    },
    seal({ address, sequence, usesCrc }, { code, data }) {
      if (state.kind !== 'established') throw new Error('there is no session to seal a reply in');
      const { sealing } = state;
      const block = { type: data.length === 0 ? 0x16 : 0x18, data: [] };
      const body = data.length === 0 ? data : encryptReply(sealing, data);
      return writeReply({ address, sequence, usesCrc, code, block, data: body }, (signed) =>
        signReply(sealing, signed),
      );
    },
    takeKey(data) {
      if (data.length !== 18 || data[0] !== 1 || data[1] !== 16) return nak(2);
      key = Buffer.from(data.subarray(2));
      installMode = false;
      return ACK;
    },
    setKey(given) {
      key = given && Buffer.from(given);
      installMode = given === undefined;
    },
    hasKey: () => key !== undefined,
    forget() {
      state = { kind: 'none' };
    },
    isSecure: () => state.kind === 'established',
    sessions: () => sessions,
  };
}
