import { describe, expect, it } from 'vitest';
import { manualClock } from '../../../test/manual-clock.ts';
import { calmParser, cutFrames, type MtParser } from './parser.ts';

/** Of TI's manual and of captures of CC2652 sticks: SYS_PING and its answer, ZDO_STATE_CHANGE_IND. */
const PING = 'fe00210120';
const PONG = 'fe02610179071c';
const STATE = 'fe0145c0098d';

function cut(...chunks: string[]): { frames: string[]; rest: string } {
  const frames: string[] = [];
  let rest = Buffer.alloc(0);
  for (const chunk of chunks) {
    const result = cutFrames(Buffer.concat([rest, Buffer.from(chunk, 'hex')]));
    for (const frame of result.frames) frames.push(frame.toString('hex'));
    rest = Buffer.from(result.rest);
  }
  return { frames, rest: rest.toString('hex') };
}

describe('what a coordinator sends', () => {
  it('is cut into frames, wherever it breaks off', () => {
    const all = PONG + STATE;
    expect(cut(all)).toEqual({ frames: [PONG, STATE], rest: '' });
    for (let at = 0; at < all.length; at += 2)
      expect(cut(all.slice(0, at), all.slice(at))).toEqual({ frames: [PONG, STATE], rest: '' });
  });

  it('has noise between frames, which is dropped', () => {
    expect(cut(`efef${PING}00${PONG}`)).toEqual({ frames: [PING, PONG], rest: '' });
    expect(cut('ef'.repeat(70_000))).toEqual({ frames: [], rest: '' });
    // Longer than any frame is.
    expect(cut(`feff${PONG}`)).toEqual({ frames: [PONG], rest: '' });
  });

  it('has no frame within one that failed its check', () => {
    const broken = `fe054181${PING}00`;
    expect(cut(broken + PONG)).toEqual({ frames: [PONG], rest: '' });
  });

  it('leaves a beginning that is shorter than a frame', () => {
    expect(cut(`${PONG}fe0261`)).toEqual({ frames: [PONG], rest: 'fe0261' });
    expect(cut(`fefa${'00'.repeat(252)}`).rest).toHaveLength(2 * 254);
  });

  it('has an answer that is not taken for the rest of noise before it', async () => {
    const clock = manualClock();
    const taken: unknown[] = [];
    const parser: MtParser = {
      buffer: Buffer.alloc(0),
      emit: (_, frame) => taken.push(frame),
      _transform: () => undefined,
    };
    calmParser(
      parser,
      (_, __, bytes) => bytes.toString('hex'),
      () => clock,
    );
    const hear = (bytes: string) => parser._transform(Buffer.from(bytes, 'hex'), '', () => undefined);
    hear('fef0');
    await clock.advance(1_001);
    hear(PONG.slice(0, 8));
    await clock.advance(900);
    hear(PONG.slice(8));
    expect(taken).toEqual([PONG]);
  });

  it('is cut in time that grows with its length, not with its square', () => {
    expect(cut(PING.repeat(200_000)).frames).toHaveLength(200_000);
  });
});
