/** The memory of a stick in a file, so that it outlives the simulation as that of a real one outlives a power cut. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { NvDump } from './stick/nv.ts';
import type { Time } from './time.ts';

export interface MemoryFile extends Disposable {
  /** What it held when its power was cut. */
  readonly kept: NvDump | undefined;
  /** The same action, after which something may have changed: it is written soon. */
  touchedBy<Input>(action: (input: Input) => void): (input: Input) => void;
}

const WRITE_AFTER_MS = 200;

/** Without a file nothing is kept. */
export function openMemoryFile(file: string | undefined, time: Time, dump: () => NvDump): MemoryFile {
  const kept = file !== undefined && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
  let isDue = false;
  function write(): void {
    isDue = false;
    // It holds a network key.
    if (file !== undefined) writeFileSync(file, JSON.stringify(dump()), { mode: 0o600 });
  }
  return {
    kept,
    touchedBy: (action) => (input) => {
      action(input);
      if (isDue || file === undefined) return;
      isDue = true;
      time.after(WRITE_AFTER_MS, write);
    },
    [Symbol.dispose]: write,
  };
}
