/** A disk whose fsync of the write-ahead log fails, for a process that is started with `environment`. */
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const HAS_COMPILER = spawnSync('gcc', ['--version']).status === 0;
export const FOREVER = 1_000_000;

/** The library is kept in `folder`. */
export function failingDisk(folder: string) {
  const library = join(folder, 'failing-fsync.so');
  const order = join(folder, 'order');
  const source = join(import.meta.dirname, 'failing-fsync.c');
  execFileSync('gcc', ['-shared', '-fPIC', '-o', library, source]);
  return {
    environment: { LD_PRELOAD: library, FAILING_FSYNC: order },
    /** So many in a row, after so many that succeed. */
    fail: (times: number, after = 0) => writeFileSync(order, `${times} ${after}`.padEnd(20)),
  };
}
