import { expect, it } from 'vitest';
import { KEY, openPanel } from '../../../test/drivers/osdp/protocol/panel.ts';
import { openOsdpDevice } from '../../../test/simulators/osdp/device.ts';
import type { FileOptions } from '../../../test/simulators/osdp/files.ts';
import {
  afterStatus,
  begunAgain,
  type FileTransfer,
  fragmentMax,
  nextFragment,
  openFileTransfer,
} from './file-transfer.ts';
import { encodeFrame } from './frame.ts';
import { encodeCommand } from './messages.ts';
import { sealCommand } from './secure-channel.ts';

const FILE = Uint8Array.from({ length: 10_000 }, (_, index) => (index * index) >> 4);
const read = (offset: number, length: number) => FILE.subarray(offset, offset + length);

function openPair(files: FileOptions, isSecure: boolean) {
  const pd = openOsdpDevice({ address: 0, serial: 1, key: KEY, files });
  const security = isSecure ? ({ secure: 'required', key: KEY } as const) : ({ secure: 'off' } as const);
  const panel = openPanel({ security }, (request) => pd.answer(request, now));
  let now = 0;
  panel.establish();
  /** Until it is over, or so many fragments were sent; all that was waited, and every fragment. */
  function run(transfer: FileTransfer, fragments = 1_000) {
    const sent: { offset: number; length: number; at: number }[] = [];
    let state = transfer;
    while (sent.length < fragments) {
      const next = nextFragment(state, read, { now, isSecure });
      if (next.kind === 'over') break;
      if (next.kind === 'wait') {
        now = next.until;
        continue;
      }
      const outcome = panel.command(next.command);
      if (outcome.kind !== 'answered' || outcome.reply.kind !== 'FTSTAT') throw new Error(outcome.kind);
      sent.push({ offset: next.command.offset, length: next.command.data.length, at: now });
      state = afterStatus(state, next.command, outcome.reply.file, { now, isSecure });
    }
    return { state, sent };
  }
  return { pd, panel, run, restart: () => pd.restart(now) };
}

it.each([true, false])('brings a file whole, secure: %s', (isSecure) => {
  const { pd, run } = openPair({}, isSecure);
  const { state } = run(openFileTransfer(1, FILE.length, 512));
  expect(state.stage).toEqual({ kind: 'done', restarts: false });
  expect(pd.describe(0)).toMatchObject({ files: [{ type: 1, content: Buffer.from(FILE) }] });
});

it.each([true, false])('fills a message to the last byte and no further, secure: %s', (isSecure) => {
  for (let messageMax = 128; messageMax <= 1_440; messageMax += 11) {
    const lengthOf = (bytes: number) => {
      const command = encodeCommand({
        kind: 'FILETRANSFER',
        type: 1,
        total: 9,
        offset: 0,
        data: FILE.subarray(0, bytes),
      });
      const frame = { address: 0, sequence: 1, check: 'crc', ...command } as const;
      const nothing = new Uint8Array(16);
      const keys = { encryption: nothing, mac1: nothing, mac2: nothing };
      const wire = isSecure
        ? sealCommand({ keys, replyMac: nothing }, frame).bytes
        : encodeFrame({ ...frame, security: null });
      return wire.length - 1;
    };
    const most = fragmentMax(messageMax, isSecure);
    expect(lengthOf(most)).toBeLessThanOrEqual(messageMax);
    if (messageMax < 1_400) expect(lengthOf(most + 1)).toBeGreaterThan(messageMax);
  }
});

it('waits as long as the device asks, and sends no more than it asks', () => {
  const { run } = openPair({ delayMs: 250, messageMax: 200 }, true);
  const { sent, state } = run(openFileTransfer(1, 2_000, 512));
  expect(state.stage.kind).toBe('done');
  expect(sent[0]?.length).toBe(fragmentMax(512, true));
  for (const [index, { at, length }] of sent.slice(1).entries()) {
    expect(at).toBe(250 * (index + 1));
    expect(length).toBeLessThanOrEqual(fragmentMax(200, true));
  }
});

it('asks on while the device is still at it, and ends when it never ends', () => {
  const { run } = openPair({ finishing: 3, delayMs: 1_000, endsWith: 2 }, true);
  const { state, sent } = run(openFileTransfer(1, 300, 512));
  expect(state.stage).toEqual({ kind: 'done', restarts: true });
  expect(sent.slice(-3).map(({ length }) => length)).toEqual([0, 0, 0]);

  const endless = openPair({ finishing: 1_000_000, delayMs: 1_000 }, true).run(openFileTransfer(1, 300, 512));
  expect(endless.state.stage).toMatchObject({ kind: 'failed', reason: 'neverEnded' });
  expect(endless.sent.length).toBeLessThan(150);
});

it.each([
  [-1, 'aborted'],
  [-2, 'unrecognized'],
  [-4, 'refused'],
] as const)('ends with status %i as %s', (status, reason) => {
  const { run } = openPair({ refuses: { status, at: 1_000 } }, true);
  expect(run(openFileTransfer(1, FILE.length, 512)).state.stage).toEqual({ kind: 'failed', reason, status });
});

it('is not led out of the secure channel', () => {
  const { run } = openPair({ leavesSecureChannel: true }, true);
  const { state, sent } = run(openFileTransfer(1, FILE.length, 512));
  expect(state.stage).toMatchObject({ kind: 'failed', reason: 'wantsClearText' });
  expect(sent).toHaveLength(1);
});

it('does not believe that a device is done that has not got all', () => {
  const status = {
    interleave: true,
    leaveSecureChannel: false,
    pollResponse: false,
    delayMs: 0,
    messageMax: 0,
  };
  const transfer = openFileTransfer(1, 500, 128);
  const after = afterStatus(
    transfer,
    { data: FILE.subarray(0, 80) },
    { ...status, status: 1 },
    { now: 0, isSecure: false },
  );
  expect(after.stage).toMatchObject({ kind: 'failed', reason: 'endedEarly' });
});

it('goes on after a restart where the device kept what it had, and from the beginning where it did not', () => {
  for (const keeps of [true, false]) {
    const { pd, panel, run, restart } = openPair({ keeps }, true);
    const half = run(openFileTransfer(1, FILE.length, 512), 10);
    expect(half.state.offset).toBeGreaterThan(4_000);
    restart();
    panel.step();
    panel.establish();
    const { state, sent } = run(half.state);
    expect(state.stage.kind).toBe('done');
    expect(state.restarts).toBe(keeps ? 0 : 1);
    expect(sent[0]?.offset).toBe(half.state.offset);
    expect(pd.describe(0)).toMatchObject({ files: [{ content: Buffer.from(FILE) }] });
  }
});

it('gives up when the device forgets again and again', () => {
  const { run } = openPair({ refuses: { status: -3, at: 2_000 } }, true);
  const { state } = run(openFileTransfer(1, FILE.length, 512));
  expect(state.stage).toMatchObject({ kind: 'failed', reason: 'unacceptable' });
  expect(state.restarts).toBe(3);
  expect(begunAgain(state)).toMatchObject({ offset: 0, stage: { kind: 'sending' } });
});
