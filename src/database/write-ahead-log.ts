/** What Gatehouse does to SQLite's write-ahead log itself. Format: sqlite.org, Database File Format, section 4. */
import { closeSync, fsyncSync, ftruncateSync, openSync } from 'node:fs';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

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
