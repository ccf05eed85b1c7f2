/** What Gatehouse does to SQLite's write-ahead log itself. Format: sqlite.org, Database File Format, section 4. */
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs';
import { endianness } from 'node:os';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const RESERVED_AT_ONCE_BYTES = 64 * 1024;

/**
 * Removes what lies after the last committed frame. A commit whose fsync failed has left whole frames there, and the
 * next recovery would take them for a commit (section 4.5: a frame counts when its salts and checksums match). Throws
 * when the removal is not on the disk. The log has no POSIX locks that closing the descriptor could drop.
 */
export function truncateLog(file: string, committedFrames: number, pageBytes: number): void {
  const length =
    committedFrames === 0 ? 0 : HEADER_BYTES + committedFrames * (FRAME_HEADER_BYTES + pageBytes);
  const descriptor = openSync(file, 'r+');
  try {
    ftruncateSync(descriptor, length);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Makes the log longer, so that later commits find room in it: no one else can take that. SQLite writes over what lies after
 * the last frame, and a recovery ends at the first frame that does not match (section 4.5); page number 0 never does. Stops
 * where the disk is full.
 */
export function reserveInLog(databaseFile: string, bytes: number): void {
  if (!existsSync(databaseFile)) return;
  const descriptor = openSync(`${databaseFile}-wal`, 'a', 0o600);
  try {
    const chunk = Buffer.alloc(RESERVED_AT_ONCE_BYTES);
    for (let left = bytes; left > 0; left -= chunk.length) {
      if (writeSync(descriptor, chunk, 0, Math.min(left, chunk.length)) < Math.min(left, chunk.length))
        return;
    }
  } finally {
    closeSync(descriptor);
  }
}

/** A page as one commit left it. */
export interface Page {
  /** From 1. */
  number: number;
  bytes: Buffer;
}

/** What the commits since the last call have written. */
export interface Written {
  pageBytes: number;
  /** Of the database after the last commit. */
  pages: number;
  changed: Page[];
}

export interface LogTail extends Disposable {
  /**
   * After a commit and before the next one begins: until then SQLite does not reset the log. `frames`: those of the log now.
   * Undefined when nothing was written.
   */
  read(frames: number): Written | undefined;
}

/** From what the log has now. */
export function openLogTail(databaseFile: string, frames: number): LogTail {
  const file = `${databaseFile}-wal`;
  let descriptor = openSync(file, 'r');
  let inode = fstatSync(descriptor).ino;
  let read = frames;
  let salts = saltsOf(descriptor);
  return {
    read(frames) {
      // The connection was opened again, and the log with it.
      if (statSync(file).ino !== inode) {
        closeSync(descriptor);
        descriptor = openSync(file, 'r');
        inode = fstatSync(descriptor).ino;
      }
      const now = saltsOf(descriptor);
      // A reset of the log changes its salts (section 4.4).
      if (!now.salts.equals(salts.salts)) read = 0;
      salts = now;
      if (frames <= read) return undefined;
      const frameBytes = FRAME_HEADER_BYTES + now.pageBytes;
      const bytes = Buffer.alloc((frames - read) * frameBytes);
      readSync(descriptor, bytes, 0, bytes.length, HEADER_BYTES + read * frameBytes);
      read = frames;
      return pagesIn(bytes, now.pageBytes);
    },
    [Symbol.dispose]: () => closeSync(descriptor),
  };
}

function saltsOf(descriptor: number): { salts: Buffer; pageBytes: number } {
  const header = Buffer.alloc(HEADER_BYTES);
  readSync(descriptor, header, 0, HEADER_BYTES, 0);
  return { salts: header.subarray(16, 24), pageBytes: header.readUInt32BE(8) };
}

/** The last of each page. */
function pagesIn(bytes: Buffer, pageBytes: number): Written {
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  const changed = new Map<number, Buffer>();
  for (let at = 0; at < bytes.length; at += frameBytes)
    changed.set(bytes.readUInt32BE(at), bytes.subarray(at + FRAME_HEADER_BYTES, at + frameBytes));
  const pages = bytes.readUInt32BE(bytes.length - frameBytes + 4);
  return { pageBytes, pages, changed: [...changed].map(([number, bytes]) => ({ number, bytes })) };
}

/** The magic number of a log whose checksums are over little-endian words; with the lowest bit set, big-endian. */
const MAGIC = 0x377f0682;

type Checksum = readonly [number, number];

interface Log {
  bytes: Buffer;
  pageBytes: number;
  frames: number;
  salts: Buffer;
  /** Of the header; undefined when that is damaged. */
  seed: Checksum | undefined;
  isBigEndian: boolean;
}

/**
 * Whether a recovery would lose commits that were on the disk, and how many at least. SQLite takes the first frame that
 * does not match for the end of the log (section 4.5). A crash leaves such a frame in the newest commit alone, for each is
 * synced before the next is written: a sound frame after a commit after the bad frame says that the log is damaged.
 */
export function commitsLost(databaseFile: string): number {
  const file = `${databaseFile}-wal`;
  const log = existsSync(file) ? readLog(readFileSync(file), () => pageBytesOf(databaseFile)) : undefined;
  if (!log) return 0;
  let isBad = log.seed === undefined;
  let pending = 0;
  let lost = 0;
  for (let frame = 0; frame < log.frames; frame += 1) {
    if (!hasSalts(log, frame)) {
      isBad = true;
      continue;
    }
    const isSound = isFrameSound(log, frame);
    if (!isSound) isBad = true;
    if (!isBad) continue;
    if (isSound) {
      lost += pending;
      pending = 0;
    }
    if (log.bytes.readUInt32BE(frameAt(log, frame) + 4) !== 0) pending += 1;
  }
  return lost;
}

/** What a damaged header does not say: the size of a page is in the database too, and this machine wrote the log. */
function readLog(bytes: Buffer, pageBytesOfDatabase: () => number): Log | undefined {
  if (bytes.length < HEADER_BYTES + FRAME_HEADER_BYTES) return undefined;
  const magic = bytes.readUInt32BE(0);
  const stored = checksumAt(bytes, 24);
  const isSound =
    (magic === MAGIC || magic === MAGIC + 1) &&
    isSame(checksum(bytes, 0, 24, [0, 0], magic === MAGIC + 1), stored);
  const isBigEndian = isSound ? magic === MAGIC + 1 : endianness() === 'BE';
  const pageBytes = isSound ? bytes.readUInt32BE(8) : pageBytesOfDatabase();
  const salts = isSound ? bytes.subarray(16, 24) : bytes.subarray(HEADER_BYTES + 8, HEADER_BYTES + 16);
  const frames = Math.floor((bytes.length - HEADER_BYTES) / (FRAME_HEADER_BYTES + pageBytes));
  return { bytes, pageBytes, frames, salts, seed: isSound ? stored : undefined, isBigEndian };
}

/** Section 1.3.2: two bytes at 16; 1 stands for 65,536. */
function pageBytesOf(databaseFile: string): number {
  const bytes = Buffer.alloc(2);
  const descriptor = openSync(databaseFile, 'r');
  try {
    readSync(descriptor, bytes, 0, bytes.length, 16);
  } finally {
    closeSync(descriptor);
  }
  const size = bytes.readUInt16BE();
  return size === 1 ? 65_536 : size;
}

const frameAt = ({ pageBytes }: Log, frame: number) =>
  HEADER_BYTES + frame * (FRAME_HEADER_BYTES + pageBytes);

function hasSalts(log: Log, frame: number): boolean {
  const at = frameAt(log, frame);
  return log.bytes.subarray(at + 8, at + 16).equals(log.salts);
}

/** By the checksum that the frame before it carries, so that the frames behind a damaged one are still recognised. */
function isFrameSound(log: Log, frame: number): boolean {
  const { bytes, pageBytes, isBigEndian } = log;
  const at = frameAt(log, frame);
  const seed = frame === 0 ? log.seed : checksumAt(bytes, frameAt(log, frame - 1) + 16);
  if (!seed) return false;
  const ofHeader = checksum(bytes, at, 8, seed, isBigEndian);
  const ofPage = checksum(bytes, at + FRAME_HEADER_BYTES, pageBytes, ofHeader, isBigEndian);
  return isSame(ofPage, checksumAt(bytes, at + 16));
}

const checksumAt = (bytes: Buffer, at: number): Checksum => [
  bytes.readUInt32BE(at),
  bytes.readUInt32BE(at + 4),
];
const isSame = (one: Checksum, other: Checksum) => one[0] === other[0] && one[1] === other[1];

/** Section 4.2. */
function checksum(bytes: Buffer, at: number, length: number, seed: Checksum, isBigEndian: boolean): Checksum {
  const words = new DataView(bytes.buffer, bytes.byteOffset + at, length);
  let [first, second] = seed;
  for (let offset = 0; offset < length; offset += 8) {
    first = (first + words.getUint32(offset, !isBigEndian) + second) >>> 0;
    second = (second + words.getUint32(offset + 4, !isBigEndian) + first) >>> 0;
  }
  return [first, second];
}
