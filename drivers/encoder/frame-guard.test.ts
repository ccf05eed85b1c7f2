import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { packet } from '../../test/drivers/encoder/peer.ts';
import { openFrameWalk } from './frame-guard.ts';

const frames = fc.array(
  fc.uint8Array({ maxLength: 400 }).map((body) => packet(0x30, Buffer.from(body))),
  {
    minLength: 1,
    maxLength: 12,
  },
);

describe('frame walk', () => {
  it('counts whole packets, however the stream is cut and however few may pass', () => {
    fc.assert(
      fc.property(
        frames,
        fc.integer({ min: 1, max: 700 }),
        fc.integer({ min: 1, max: 3 }),
        (sent, cut, allowed) => {
          const stream = Buffer.concat(sent);
          const walk = openFrameWalk();
          let passed = 0;
          for (let at = 0; at < stream.length; ) {
            const step = walk(stream.subarray(at, at + cut), allowed, 1_024);
            if ('refused' in step) throw new Error(step.refused);
            expect(step.packets).toBeLessThanOrEqual(allowed);
            expect(step.taken).toBeGreaterThan(0);
            at += step.taken;
            passed += step.packets;
            if (step.packets === allowed) {
              const whole = sent.slice(0, passed).reduce((sum, frame) => sum + frame.length, 0);
              expect(at).toBe(whole);
            }
          }
          expect(passed).toBe(sent.length);
        },
      ),
    );
  });

  it('refuses the first byte over the bound, the header counted, and nothing below it', () => {
    const frame = packet(0x30, Buffer.alloc(997));
    expect(frame).toHaveLength(1_000);
    expect(openFrameWalk()(frame, 1, 1_000)).toEqual({ taken: 1_000, packets: 1, isWhole: true });
    expect(openFrameWalk()(frame, 1, 999)).toEqual({ refused: 'a packet is longer than 999 bytes' });
    expect(openFrameWalk()(frame.subarray(0, 3), 1, 999)).toHaveProperty('refused');
  });

  it('refuses a length of five bytes, also one that stays small', () => {
    const overlong = Buffer.from([0x30, 0x80, 0x80, 0x80, 0x80, 0x00]);
    expect(openFrameWalk()(overlong, 1, 1_024)).toEqual({ refused: 'a packet length is malformed' });
  });

  it('never throws, whatever comes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(5), (bytes, allowed) => {
        const step = openFrameWalk()(bytes, allowed, 64);
        if (!('refused' in step)) expect(step.taken).toBeLessThanOrEqual(bytes.length);
      }),
    );
  });
});
