/**
 * osdp_FILETRANSFER (SIA OSDP 2.2, 6.26): which fragment to send when, and what the device's status means. Pure; time is
 * monotonic milliseconds. The device sets the pace: how long to wait, and how large a message may be.
 *
 * A transfer is a value: its owner can go on with it after a loss, from the last byte the device has confirmed.
 */
import { FRAME_MAX, MAC_LENGTH } from './frame.ts';
import type { Command, FileStatus } from './messages.ts';

export interface FileTransfer {
  readonly type: number;
  readonly total: number;
  /** Bytes that the device has confirmed. */
  readonly offset: number;
  /** Most bytes of a message, as the device last said, and as the bus can spare. */
  readonly messageMax: number;
  readonly longest: number;
  readonly stage: FileStage;
  /** Times it began again from the first byte, because the device did not know the rest. */
  readonly restarts: number;
}

export type FileStage =
  /** Nothing before `from`. */
  | { kind: 'sending'; from: number }
  /** All is there, and the device is still at it: it is asked until it is done, or until `until`. */
  | { kind: 'finishing'; from: number; until: number }
  /** `restarts`: it goes away now and comes back. */
  | { kind: 'done'; restarts: boolean }
  | { kind: 'failed'; reason: FileFailure; status: number };

export type FileFailure =
  | 'aborted'
  | 'unrecognized'
  | 'unacceptable'
  | 'refused'
  | 'endedEarly'
  | 'neverEnded'
  /** Never, inside a session. */
  | 'wantsClearText';

export const FILE_FAILURE_TEXTS: Readonly<Record<FileFailure, string>> = {
  aborted: 'the device broke off',
  unrecognized: 'the device does not know what this file is',
  unacceptable: 'the device does not accept what is in the file',
  refused: 'the device takes no more of the file',
  endedEarly: 'the device says that it is done before it has all of the file',
  neverEnded: 'the device has all of the file, and is not done with it',
  wantsClearText: 'the device wants the file in clear text, which it does not get',
};

export type NextFragment =
  | { kind: 'send'; command: Command & { kind: 'FILETRANSFER' } }
  | { kind: 'wait'; until: number }
  | { kind: 'over' };

/** Every device can receive so much (5.5). */
const LEAST_MESSAGE = 128;
/** Type, total, offset, length. */
const FRAGMENT_HEADER = 11;
const HEADER = 5;
const CODE = 1;
const SECURITY_BLOCK = 2;
const CHECK = 2;
const BLOCK = 16;
/** Flash takes seconds for a megabyte. */
const FINISHING_MS = 120_000;
/** A device that restarts while it receives does so again. */
const RESTARTS_MAX = 3;

const FAILURES: Record<number, FileFailure> = { [-1]: 'aborted', [-2]: 'unrecognized', [-3]: 'unacceptable' };

export interface Resumed {
  /** Bytes that the device confirmed before. */
  offset?: number;
  /** Most bytes of a message that others on the bus can wait for. */
  longest?: number;
}

/** `messageMax`: what the device said last, or its capability 10, where it has it. */
export function openFileTransfer(
  type: number,
  total: number,
  messageMax = LEAST_MESSAGE,
  { offset = 0, longest = FRAME_MAX }: Resumed = {},
): FileTransfer {
  return {
    type,
    total,
    offset,
    longest,
    restarts: 0,
    messageMax: usable(messageMax, longest),
    stage: { kind: 'sending', from: Number.NEGATIVE_INFINITY },
  };
}

function usable(messageMax: number, longest: number): number {
  return Math.max(LEAST_MESSAGE, Math.min(FRAME_MAX, messageMax, longest));
}

/** Most bytes of a file that fit into one message of this length. */
export function fragmentMax(messageMax: number, isSecure: boolean): number {
  const plain = messageMax - HEADER - CODE - CHECK;
  if (!isSecure) return plain - FRAGMENT_HEADER;
  const blocks = Math.floor((plain - SECURITY_BLOCK - MAC_LENGTH) / BLOCK);
  // One byte of padding at least.
  return blocks * BLOCK - 1 - FRAGMENT_HEADER;
}

/** `read` gives the file's bytes from `offset` on, `length` of them. */
export function nextFragment(
  transfer: FileTransfer,
  read: (offset: number, length: number) => Uint8Array,
  { now, isSecure }: { now: number; isSecure: boolean },
): NextFragment {
  const { type, total, offset, stage } = transfer;
  if (stage.kind === 'done' || stage.kind === 'failed') return { kind: 'over' };
  if (now < stage.from) return { kind: 'wait', until: stage.from };
  const length = Math.min(total - offset, fragmentMax(transfer.messageMax, isSecure));
  // An empty fragment at the end asks how it is getting on.
  const data = length > 0 ? read(offset, length) : new Uint8Array();
  return { kind: 'send', command: { kind: 'FILETRANSFER', type, total, offset, data } };
}

/** After the device has answered that fragment. */
export function afterStatus(
  transfer: FileTransfer,
  { data }: { data: Uint8Array },
  file: FileStatus,
  { now, isSecure }: { now: number; isSecure: boolean },
): FileTransfer {
  const { status } = file;
  const failed = (reason: FileFailure): FileTransfer => ({
    ...transfer,
    stage: { kind: 'failed', reason, status },
  });
  if (file.leaveSecureChannel && isSecure) return failed('wantsClearText');
  if (status < 0) {
    // It does not know what came before: it was restarted, perhaps, or is another one.
    if (status === -3 && transfer.offset > 0 && transfer.restarts < RESTARTS_MAX)
      return { ...begunAgain(transfer), stage: { kind: 'sending', from: now + file.delayMs } };
    return failed(FAILURES[status] ?? 'refused');
  }
  const offset = transfer.offset + data.length;
  const messageMax = file.messageMax === 0 ? transfer.messageMax : usable(file.messageMax, transfer.longest);
  const next = { ...transfer, offset, messageMax };
  const from = now + file.delayMs;
  const isWhole = offset >= transfer.total;
  if (!isWhole) return status === 0 ? { ...next, stage: { kind: 'sending', from } } : failed('endedEarly');
  if (status === 1 || status === 2) return { ...next, stage: { kind: 'done', restarts: status === 2 } };
  const { stage } = transfer;
  const until = stage.kind === 'finishing' ? stage.until : now + FINISHING_MS;
  return from > until ? failed('neverEnded') : { ...next, stage: { kind: 'finishing', from, until } };
}

/** The device has no use for what it got: from the first byte. */
export function begunAgain(transfer: FileTransfer): FileTransfer {
  return {
    ...transfer,
    offset: 0,
    restarts: transfer.restarts + 1,
    stage: { kind: 'sending', from: Number.NEGATIVE_INFINITY },
  };
}
