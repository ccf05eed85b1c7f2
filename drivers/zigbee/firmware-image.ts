/** For whom a file of firmware is: the header of a Zigbee OTA file (ZCL rev. 8, 11.4.2). */
import { hex } from './values.ts';

const IDENTIFIER = Buffer.of(0x1e, 0xf1, 0xee, 0x0b);
const HEADER_BYTES = 56;

export interface FirmwareImage {
  manufacturerCode: number;
  imageType: number;
  fileVersion: number;
}

/** undefined: it is no such file, or is cut short. Some makers put a wrapper of their own before the header. */
export function imageOf(file: Buffer): FirmwareImage | undefined {
  const start = file.indexOf(IDENTIFIER);
  const image = start < 0 ? undefined : file.subarray(start);
  if (image === undefined || image.length < HEADER_BYTES) return undefined;
  if (image.readUInt32LE(52) > image.length) return undefined;
  return {
    manufacturerCode: image.readUInt16LE(10),
    imageType: image.readUInt16LE(12),
    fileVersion: image.readUInt32LE(14),
  };
}

/** Why a lock that says it has the one is not given the other. */
export function whyNot(file: FirmwareImage, lock: FirmwareImage): string {
  const isForIt = file.manufacturerCode === lock.manufacturerCode && file.imageType === lock.imageType;
  if (isForIt) return 'the file is no newer firmware for this lock';
  return `the file is for ${makeOf(file)}, the lock is of ${makeOf(lock)}`;
}

function makeOf({ manufacturerCode, imageType }: FirmwareImage): string {
  return `manufacturer ${hex(manufacturerCode, 4)}, image type ${imageType}`;
}
