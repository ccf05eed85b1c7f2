/**
 * Reads a file that somebody else put there, within a bound. A pipe, a device or a folder in its place is refused without
 * being opened: to open a pipe would hold up the whole process (open(2)), and to open some devices does something.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs';

/** The backup of a large Zigbee network has some hundred kilobytes. */
const FILE_MAX_BYTES = 16 * 1_048_576;
/** Of a certificate, key, password or key set. All the authorities that Debian trusts have 230 kilobytes. */
const NAMED_FILE_MAX_BYTES = 1_048_576;

/** What is there is not what is read here. `what` goes on after the name of the file, as in "is a folder, not a file". */
export class NotRegularFile extends Error {
  readonly what: string;
  constructor(file: string, what: string) {
    super(`${file} ${what}`);
    this.name = 'NotRegularFile';
    this.what = what;
  }
}

/** Throws NotRegularFile, whose message names the file, or as openSync does; ELOOP for a link with `followLinks: false`. */
export function readRegularFile(
  file: string,
  { followLinks, maxBytes = FILE_MAX_BYTES }: { followLinks: boolean; maxBytes?: number },
): Buffer {
  const found = followLinks ? statSync(file) : lstatSync(file);
  // A link is left to openSync.
  if (!found.isSymbolicLink()) assertRegular(file, found);
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (followLinks ? 0 : constants.O_NOFOLLOW);
  const descriptor = openSync(file, flags);
  try {
    const stats = fstatSync(descriptor);
    assertRegular(file, stats);
    const content = stats.size > maxBytes ? undefined : readUpTo(descriptor, stats.size, maxBytes);
    if (content === undefined) throw new NotRegularFile(file, `has more than ${maxBytes} bytes`);
    return content;
  } finally {
    closeSync(descriptor);
  }
}

/** A file that the configuration names: the one way to read it. Throws as readRegularFile does. */
export function readNamedFile(file: string): string {
  return readRegularFile(file, { followLinks: true, maxBytes: NAMED_FILE_MAX_BYTES }).toString('utf8');
}

/** Why a file cannot be read, in words that go on after "cannot read FILE: ". */
export function reasonOf(error: unknown): string {
  if (error instanceof NotRegularFile) return `it ${error.what}`;
  const { code, message } = error as NodeJS.ErrnoException;
  return (code !== undefined && REASONS[code]) || message;
}

const REASONS: Partial<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'you may not read it (try sudo)',
  ELOOP: 'its links lead in a circle',
  ENOTDIR: 'a part of its path is not a folder',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not text in UTF-8',
};

function assertRegular(file: string, stats: Stats): void {
  if (stats.isFile()) return;
  const isDevice = stats.isCharacterDevice() || stats.isBlockDevice();
  const kind = stats.isDirectory() ? 'folder' : stats.isFIFO() ? 'pipe' : isDevice ? 'device' : 'socket';
  throw new NotRegularFile(file, `is a ${kind}, not a file`);
}

/** Files of /proc have a size of 0, and others may grow meanwhile. Undefined: it has more than `maxBytes`. */
function readUpTo(descriptor: number, size: number, maxBytes: number): Buffer | undefined {
  let content = Buffer.alloc(size + 1);
  for (let length = 0; ; ) {
    const read = readSync(descriptor, content, length, content.length - length, null);
    length += read;
    if (length > maxBytes) return undefined;
    if (read === 0) return content.subarray(0, length);
    if (length === content.length) content = Buffer.concat([content, Buffer.alloc(content.length + 4_096)]);
  }
}
