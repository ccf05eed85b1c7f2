/**
 * Files to devices, a piece at a time: the owner of the file keeps what is confirmed, and goes on from there, also with
 * another host. Between two fragments every other device has its turn on the bus.
 */
import type { Bus } from '../bus/bus.ts';
import { type Clock, DriverError } from '../contract/driver.ts';
import type { AbortFile, FileSent, SendFile } from '../contract/osdp.ts';
import { assertAloneInClear } from './device.ts';
import type { OsdpMember } from './devices.ts';
import {
  afterStatus,
  FILE_FAILURE_TEXTS,
  type FileTransfer,
  nextFragment,
  openFileTransfer,
} from './protocol/file-transfer.ts';
import type { Command, FileStatus } from './protocol/messages.ts';
import { channelOf } from './protocol/state.ts';

export interface Files {
  /** Throws a DriverError: REFUSED and BAD_REPLY are for good. */
  send(wanted: SendFile, signal: AbortSignal): Promise<FileSent>;
  /** Throws a DriverError. */
  abort(wanted: AbortFile, deadline: number, signal: AbortSignal): Promise<void>;
}

/** So often progress is seen, and so much is sent again after the death of this process. */
const PIECE_MS = 1_500;
/** A relay waits for the exchange under way: with longer messages a door would be noticeably late. */
const FRAGMENT_MS = 100;
/** A device answers within 200 ms, or says BUSY; on a bad wire it is asked some times. */
const FRAGMENT_DEADLINE_MS = 10_000;
const ASK_MS = 2_000;
const TEXT_MAX = 512;

/** `characterMs`: of the wire. `named` throws DEVICE_OFFLINE. */
export function openFiles(
  clock: Clock,
  characterMs: number,
  bus: Pick<Bus, 'isContested'>,
  named: (hwId: string) => OsdpMember,
): Files {
  const longest = Math.floor(FRAGMENT_MS / characterMs);

  async function send(wanted: SendFile, signal: AbortSignal): Promise<FileSent> {
    const member = named(wanted.hwId);
    try {
      return await sendPiece(member, wanted, signal);
    } catch (error) {
      // No one sends it the rest.
      member.reservation.end();
      throw error;
    }
  }

  async function sendPiece(member: OsdpMember, wanted: SendFile, signal: AbortSignal): Promise<FileSent> {
    const { device, reservation } = member;
    const { type, total, offset, data } = wanted;
    const enoughAt = clock.monotonic() + PIECE_MS;
    const messageMax = wanted.messageMax ?? device.state.messageMax();
    let transfer = openFileTransfer(type, total, messageMax, { offset, longest });
    const read = (from: number, length: number) => data.subarray(from - offset, from - offset + length);
    for (;;) {
      const isSecure = device.session.state().options.security.secure !== 'off';
      const next = nextFragment(transfer, read, { now: clock.monotonic(), isSecure });
      if (next.kind === 'over') return await ended(member, transfer, signal);
      if (next.kind === 'wait') {
        await clock.sleep(next.until - clock.monotonic(), signal);
        continue;
      }
      if (transfer.stage.kind === 'sending' && isEnough(transfer, wanted, clock.monotonic() >= enoughAt))
        return sent(transfer, 'sending');
      assertAloneInClear(bus, device);
      try {
        const file = await fragment(member, wanted.hwId, next.command, signal);
        // Some devices want nothing else until they have it all.
        if (file.interleave) reservation.end();
        else reservation.begin();
        transfer = afterStatus(transfer, next.command, file, { now: clock.monotonic(), isSecure });
      } catch (error) {
        signal.throwIfAborted();
        reservation.end();
        if (!(error instanceof DriverError)) throw error;
        // Of a transfer it never began, or has forgotten.
        if (error.code === 'REFUSED' && transfer.offset > 0)
          return sent({ ...transfer, offset: 0 }, 'sending');
        if (error.code === 'REFUSED' || error.code === 'BAD_REPLY') throw error;
        return sent(transfer, 'interrupted', error.message);
      }
    }
  }

  async function fragment(
    { device }: OsdpMember,
    hwId: string,
    command: Command & { kind: 'FILETRANSFER' },
    signal: AbortSignal,
  ): Promise<FileStatus> {
    const asking = { class: 'settings', deadline: clock.monotonic() + FRAGMENT_DEADLINE_MS, signal } as const;
    // Fragments after the first one go to a device that has taken that. One that wants nothing else has taken it, too.
    if (command.offset === 0 && !channelOf(device.session.state()))
      await device.session.ask({ kind: 'ID' }, asking).catch((error: unknown) => {
        if (!(error instanceof DriverError) || error.code !== 'BUSY') throw error;
      });
    if (!device.connected() || device.state.hwId() !== hwId)
      throw new DriverError('DEVICE_OFFLINE', 'the device does not answer any more');
    const reply = await device.session.ask(command, asking);
    if (reply.kind === 'FTSTAT') return reply.file;
    throw new DriverError('BAD_REPLY', 'the device answers a file with something else');
  }

  async function ended(
    { device, reservation }: OsdpMember,
    transfer: FileTransfer,
    signal: AbortSignal,
  ): Promise<FileSent> {
    reservation.end();
    const { stage } = transfer;
    if (stage.kind === 'failed') {
      const code = stage.status < 0 ? 'REFUSED' : 'BAD_REPLY';
      throw new DriverError(code, `${FILE_FAILURE_TEXTS[stage.reason]} (status ${stage.status})`);
    }
    if (stage.kind === 'done' && stage.restarts) return sent(transfer, 'restarting');
    const asking = { class: 'settings', deadline: clock.monotonic() + ASK_MS, signal } as const;
    // It may be another one from now on; what it says is reported.
    await device.session.ask({ kind: 'ID' }, asking).catch(() => undefined);
    return sent(transfer, 'done');
  }

  return {
    send,
    async abort({ hwId }, deadline, signal) {
      const { device, reservation } = named(hwId);
      reservation.end();
      await device.session.ask({ kind: 'ABORT' }, { class: 'settings', hwId, deadline, signal });
    },
  };
}

/** The rest is for the next time: it began again from the first byte, this piece is sent, or it has taken long. */
function isEnough({ offset, total, restarts }: FileTransfer, piece: SendFile, isLong: boolean): boolean {
  if (restarts > 0 || isLong) return true;
  return offset < total && offset >= piece.offset + piece.data.length;
}

function sent(
  { offset, messageMax }: FileTransfer,
  stage: FileSent['stage'],
  reason: string | null = null,
): FileSent {
  return { offset, messageMax, stage, reason: reason?.slice(0, TEXT_MAX) ?? null };
}
