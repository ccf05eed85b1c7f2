/**
 * Reads a file that somebody else put there. A FIFO or a device in its place is refused: to open one without O_NONBLOCK
 * would hold up the whole process (open(2)).
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';

/** The backup of a large Zigbee network has some hundred kilobytes. */
const FILE_MAX_BYTES = 16 * 1_048_576;

export class NotRegularFile extends Error {}

/** Throws NotRegularFile, whose message names the file, or as openSync does; ELOOP for a link with `followLinks: false`. */
export function readRegularFile(file: string, { followLinks }: { followLinks: boolean }): Buffer {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (followLinks ? 0 : constants.O_NOFOLLOW);
  const descriptor = openSync(file, flags);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw new NotRegularFile(`${file} is not a file`);
    if (stats.size > FILE_MAX_BYTES)
      throw new NotRegularFile(`${file} is larger than ${FILE_MAX_BYTES} bytes`);
    return readFileSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
