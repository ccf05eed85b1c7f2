/** Why a lock that says it has the one image is not given the other. */
import type { OtaImage } from '../contract/ota-image.ts';
import { hex } from './values.ts';

export function whyNot(file: OtaImage, lock: OtaImage): string {
  const isForIt = file.manufacturerCode === lock.manufacturerCode && file.imageType === lock.imageType;
  if (isForIt) return 'the file is no newer firmware for this lock';
  return `the file is for ${makeOf(file)}, the lock is of ${makeOf(lock)}`;
}

function makeOf({ manufacturerCode, imageType }: OtaImage): string {
  return `manufacturer ${hex(manufacturerCode, 4)}, image type ${imageType}`;
}
