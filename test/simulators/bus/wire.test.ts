/** The simulated wire: pace, collisions, echo and noise. */
import { expect, it } from 'vitest';
import { modbus } from './modbus/protocol.ts';
import { openWire, type WireOptions } from './wire.ts';

/** Read eight inputs of unit 1: the example of Waveshare's manual of the 'Modbus RTU IO 8CH'. */
const REQUEST = Buffer.from('01 02 00 00 00 08 79 cc'.replaceAll(' ', ''), 'hex');
const REPLY = Buffer.from([1, 2, 1, 0x20, 0xa0, 0x50]);
/** One character takes a millisecond: what is said is at whole times. */
const CHARACTER_MS = 1;
const SILENCE_MS = 3.5;
const TURNAROUND_MS = 2;
const REQUEST_END = REQUEST.length * CHARACTER_MS + SILENCE_MS;

function opened(options: Partial<WireOptions> = {}) {
  const heard: { bytes: string; at: number; isReplyEnd: boolean }[] = [];
  const requests: number[] = [];
  const wire = openWire({
    characterMs: CHARACTER_MS,
    silenceMs: SILENCE_MS,
    delivery: 'frame',
    latencyMs: 0,
    localEcho: false,
    read: modbus.read,
    request(_, __, now) {
      requests.push(now);
      return [{ bytes: REPLY, delayMs: TURNAROUND_MS }];
    },
    hear: (bytes, at, isReplyEnd) =>
      heard.push({ bytes: Buffer.from(bytes).toString('hex'), at, isReplyEnd }),
    ...options,
  });
  return { wire, heard, requests };
}

it('lets a request, its silence, the turnaround and the reply take their time', () => {
  const { wire, heard, requests } = opened();
  wire.sent(REQUEST, 100);
  wire.advance(1_000);
  expect(requests).toEqual([100 + REQUEST_END]);
  const end = 100 + REQUEST_END + TURNAROUND_MS + REPLY.length * CHARACTER_MS;
  expect(heard).toEqual([{ bytes: REPLY.toString('hex'), at: end, isReplyEnd: true }]);
  expect(wire.counters()).toEqual({
    bytesFromGateway: 8,
    bytesToGateway: 6,
    collisions: 0,
    badFrames: 0,
    shortGaps: 0,
    exchanges: 1,
    busyMs: 14,
  });
  expect(wire.due()).toBe(undefined);
});

it('hands over each byte at its time', () => {
  const { wire, heard } = opened({ delivery: 'byte' });
  wire.sent(REQUEST, 0);
  wire.advance(1_000);
  const begin = REQUEST_END + TURNAROUND_MS;
  expect(heard).toEqual(
    [...REPLY].map((byte, index) => ({
      bytes: Buffer.from([byte]).toString('hex'),
      at: begin + index + 1,
      isReplyEnd: index === REPLY.length - 1,
    })),
  );
});

it('holds a reply back while another one goes ahead of it, and loses neither', () => {
  const { wire, heard } = opened({ delivery: 'byte' });
  wire.setOutOfOrder({ share: 1, fromMs: 200, toMs: 200, seed: 1 });
  wire.sent(REQUEST, 0);
  wire.advance(100);
  wire.setOutOfOrder(null);
  wire.sent(REQUEST, 100);
  wire.advance(1_000);
  const begin = REQUEST_END + TURNAROUND_MS;
  expect(heard.slice(0, -1).map(({ at }) => at)).toEqual(
    [...REPLY].map((_, index) => 100 + begin + index + 1),
  );
  expect(heard.at(-1)).toEqual({
    bytes: REPLY.toString('hex'),
    at: begin + REPLY.length + 200,
    isReplyEnd: true,
  });
  expect(wire.counters()).toMatchObject({ exchanges: 2, collisions: 0 });
});

it('takes a request that comes in pieces for one', () => {
  const { wire, heard } = opened();
  wire.sent(REQUEST.subarray(0, 3), 0);
  wire.sent(REQUEST.subarray(3), 4);
  wire.advance(1_000);
  expect(heard).toHaveLength(1);
  expect(wire.counters()).toMatchObject({ collisions: 0, badFrames: 0 });
});

it('gives up half a request', () => {
  const { wire, requests } = opened();
  wire.sent(REQUEST.subarray(0, 3), 0);
  wire.sent(REQUEST, 100);
  wire.advance(1_000);
  expect(requests).toEqual([100 + REQUEST_END]);
  expect(wire.counters()).toMatchObject({ badFrames: 1, collisions: 0 });
});

it('spoils a reply and the request that is sent into it', () => {
  for (const delivery of ['byte', 'frame'] as const) {
    const { wire, heard, requests } = opened({ delivery });
    wire.sent(REQUEST, 0);
    const inReply = REQUEST_END + TURNAROUND_MS + 2.5;
    wire.sent(REQUEST, inReply);
    wire.advance(1_000);
    expect(requests).toHaveLength(1);
    const bytes = heard.map((one) => one.bytes).join('');
    expect(bytes.slice(0, 4)).toBe(REPLY.toString('hex').slice(0, 4));
    expect(bytes).toHaveLength(2 * REPLY.length);
    for (let at = 4; at < bytes.length; at += 2)
      expect(bytes.slice(at, at + 2)).not.toBe(REPLY.toString('hex').slice(at, at + 2));
    expect(wire.counters()).toMatchObject({ collisions: 1, badFrames: 1 });
  }
});

it('spoils requests that follow each other without silence', () => {
  const { wire, requests } = opened();
  wire.sent(REQUEST, 0);
  wire.sent(REQUEST, 9);
  wire.advance(1_000);
  expect(requests).toEqual([]);
  expect(wire.counters()).toMatchObject({ collisions: 1, badFrames: 1, exchanges: 0 });
});

it('spoils a late reply and the request it comes into', () => {
  const delays = [30, TURNAROUND_MS];
  const { wire, heard, requests } = opened({
    request: () => [{ bytes: REPLY, delayMs: delays.shift() ?? 0 }],
  });
  wire.sent(REQUEST, 0);
  wire.sent(REQUEST, 40);
  wire.advance(1_000);
  expect(requests).toEqual([]);
  expect(delays).toEqual([TURNAROUND_MS]);
  expect(heard.map(({ bytes }) => bytes)).not.toContain(REPLY.toString('hex'));
  expect(wire.counters()).toMatchObject({ collisions: 1, badFrames: 1, exchanges: 1 });
});

it('counts requests that begin before the silence is over', () => {
  const { wire, heard } = opened();
  wire.sent(REQUEST, 0);
  const replyEnd = REQUEST_END + TURNAROUND_MS + REPLY.length;
  wire.sent(REQUEST, replyEnd + SILENCE_MS - 1);
  wire.advance(200);
  wire.sent(REQUEST, 300);
  wire.advance(1_000);
  expect(heard).toHaveLength(3);
  expect(wire.counters()).toMatchObject({ shortGaps: 1, collisions: 0 });
});

it('echoes what the gateway sends, and garbage when two spoke', () => {
  const { wire, heard } = opened({ localEcho: true });
  wire.sent(REQUEST, 0);
  wire.advance(REQUEST_END);
  expect(heard).toEqual([{ bytes: REQUEST.toString('hex'), at: 8, isReplyEnd: false }]);
  wire.advance(1_000);
  wire.disturb(Buffer.from([0, 0, 0]), 2_000);
  wire.sent(REQUEST, 2_001);
  wire.advance(3_000);
  expect(heard.map(({ bytes }) => bytes).filter((bytes) => bytes === REQUEST.toString('hex'))).toHaveLength(
    1,
  );
  expect(wire.counters()).toMatchObject({ badFrames: 1, collisions: 0, exchanges: 1 });
});

it('gathers for an adapter with a latency timer', () => {
  const { wire, heard } = opened({ delivery: 'byte', latencyMs: 16 });
  wire.sent(REQUEST, 0);
  wire.advance(1_000);
  // The first byte is there at 14.5, the timer fires at 16; the rest waits for the next time.
  expect(heard).toEqual([
    { bytes: REPLY.subarray(0, 2).toString('hex'), at: 16, isReplyEnd: false },
    { bytes: REPLY.subarray(2).toString('hex'), at: 32, isReplyEnd: true },
  ]);
});

it('lets nothing take time when set so', () => {
  const { wire, heard } = opened({
    characterMs: 0,
    silenceMs: 0,
    request: () => [{ bytes: REPLY, delayMs: 0 }],
  });
  wire.sent(Buffer.concat([REQUEST, REQUEST]), 5);
  expect(heard.map(({ at }) => at)).toEqual([5, 5]);
  expect(wire.counters()).toMatchObject({ exchanges: 2, collisions: 0, badFrames: 0 });
});

it('forgets what is under way when it is cut', () => {
  const { wire, heard } = opened();
  wire.sent(REQUEST, 0);
  wire.advance(REQUEST_END);
  wire.cut();
  expect(wire.due()).toBe(undefined);
  wire.advance(1_000);
  expect(heard).toEqual([]);
});
