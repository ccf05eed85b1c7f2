/** Frames and their checksums, by the examples of the manuals. */
import { describe, expect, it } from 'vitest';
import { checksum, decodeFrame, encodeFrame, FRAME_MAX } from './frame.ts';

const checked = { checksum: true };
const plain = { checksum: false };
const bytes = (text: string) => Buffer.from(text, 'latin1');

describe('a checksum', () => {
  // ADAM 4000 Series User's Manual, appendix "How to use the Checksum feature"; I-7000 DIO Manual, 2.
  it.each([
    ['$012', 'B7'],
    ['!01400600', 'AC'],
    ['$07RH', '25'],
  ])('of %s is %s', (text, sum) => {
    expect(checksum(text)).toBe(sum);
  });
});

describe('a frame', () => {
  it('is the text, the checksum where it is on, and a carriage return', () => {
    expect(Buffer.from(encodeFrame('$012', checked)).toString()).toBe('$012B7\r');
    expect(Buffer.from(encodeFrame('$012', plain)).toString()).toBe('$012\r');
  });

  it('comes back as its text', () => {
    expect(decodeFrame(bytes('!01400600AC'), checked)).toEqual({ kind: 'text', text: '!01400600' });
    expect(decodeFrame(bytes('!01400600'), plain)).toEqual({ kind: 'text', text: '!01400600' });
  });

  it.each(['!01400601AC', '!0140060AC', '!01400600AD', '!01400600ac', 'AC', '!'])(
    'is not believed when its checksum is wrong: %s',
    (line) => {
      expect(decodeFrame(bytes(line), checked)).toEqual({ kind: 'fault', fault: 'crc' });
    },
  );

  it.each(['\x00\xff', '\x00A\xff\x7f', '!11', '9>A'])('is found behind the noise %j', (noise) => {
    expect(decodeFrame(bytes(`${noise}>3E`), checked)).toEqual({ kind: 'text', text: '>' });
  });

  it('is not found behind printable noise where no checksum vouches for it', () => {
    expect(decodeFrame(bytes('9>'), plain)).toEqual({ kind: 'text', text: '9>' });
  });

  it('has characters, and not too many', () => {
    const framing = { kind: 'fault', fault: 'framing' };
    expect(decodeFrame(bytes(''), plain)).toEqual(framing);
    expect(decodeFrame(bytes('!01\x80'), plain)).toEqual(framing);
    expect(decodeFrame(bytes('A'.repeat(FRAME_MAX)), plain)).toEqual(framing);
  });
});
