import { expect, it } from 'vitest';
import { encodeMt, readMt } from './frame.ts';

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** From TI's 'Z-Stack Monitor and Test API' and captures of CC2652 sticks that are in public bug reports. */
const KNOWN = [
  { bytes: 'fe 00 21 01 20', frame: { type: 'SREQ', subsystem: 1, id: 1, data: '' } },
  { bytes: 'fe 02 61 01 79 07 1c', frame: { type: 'SRSP', subsystem: 1, id: 1, data: '7907' } },
  { bytes: 'fe 01 41 00 00 40', frame: { type: 'AREQ', subsystem: 1, id: 0, data: '00' } },
  { bytes: 'fe 01 45 c0 09 8d', frame: { type: 'AREQ', subsystem: 5, id: 0xc0, data: '09' } },
  { bytes: 'fe 03 44 80 00 01 07 c1', frame: { type: 'AREQ', subsystem: 4, id: 0x80, data: '000107' } },
] as const;

it('reads and writes the frames of real sticks', () => {
  for (const { bytes, frame } of KNOWN) {
    const raw = hex(bytes);
    const reading = readMt(raw);
    expect(reading, bytes).toEqual({
      kind: 'frame',
      frame: { ...frame, data: hex(frame.data) },
      length: raw.length,
    });
    expect(encodeMt({ ...frame, data: hex(frame.data) }), bytes).toEqual(raw);
  }
});

it('wants more of half a frame, and skips what is none', () => {
  expect(readMt(hex('fe'))).toEqual({ kind: 'incomplete' });
  expect(readMt(hex('fe 02 61 01 79'))).toEqual({ kind: 'incomplete' });
  // The byte that wakes the boot loader of a CC2531.
  expect(readMt(hex('ef fe 00'))).toEqual({ kind: 'garbage', length: 1, isFrame: false });
  expect(readMt(hex('fe 00 21 01 21'))).toEqual({ kind: 'garbage', length: 1, isFrame: true });
  expect(readMt(hex('fe fb'))).toEqual({ kind: 'garbage', length: 1, isFrame: false });
});
