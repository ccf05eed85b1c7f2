import { expect, it } from 'vitest';
import { otaFile } from '../../test/ota-file.ts';
import { otaImage } from './ota-image.ts';

const whole = otaFile(0x0102_0400);
const IMAGE = { manufacturerCode: 0x1234, imageType: 1, fileVersion: 0x0102_0400 };
const changed = (change: (file: Buffer) => void) => {
  const file = Buffer.from(whole);
  change(file);
  return file;
};

it.each([
  ['as the standard has it', whole],
  ['in a wrapper of its maker', Buffer.concat([Buffer.from('NGIS'), whole, Buffer.from('signature')])],
  [
    'with an element of Telink, whose two bytes of flags are not counted',
    changed((file) => {
      file.writeUInt16LE(0xf000, 56);
      file.writeUInt32LE(298, 58);
    }),
  ],
])('names its manufacturer, type and version: %s', (_name, file) => {
  expect(otaImage(file)).toEqual(IMAGE);
});

it.each([
  ['no such file', Buffer.alloc(500)],
  ['cut short', whole.subarray(0, -1)],
  ['a header without an element', changed((file) => file.writeUInt32LE(56, 52)).subarray(0, 56)],
  ['a header that is cut short', whole.subarray(0, 40)],
  ['smaller than its header, by its own word', changed((file) => file.writeUInt32LE(8, 52))],
  ['a header length within the header', changed((file) => file.writeUInt16LE(10, 6))],
  ['a header length beyond the file', changed((file) => file.writeUInt16LE(0xffff, 6))],
  ['an element that goes beyond the file', changed((file) => file.writeUInt32LE(301, 58))],
  ['an element that ends before the file', changed((file) => file.writeUInt32LE(299, 58))],
  ['a length of 4 GB', changed((file) => file.writeUInt32LE(0xffff_ffff, 58))],
])('is refused: %s', (_name, file) => {
  expect(otaImage(file)).toBeUndefined();
});
