/** Where the resident memory of a process is, by /proc/PID/smaps (proc(5)). */
import { readFileSync } from 'node:fs';

/** Megabytes. */
export interface MemoryKinds {
  /** Pages of files: the Node binary, libraries, a database that is mapped. */
  file: number;
  /** glibc's malloc: the heap of the program break, and arenas of threads, which begin at multiples of 64 MB. */
  malloc: number;
  /** All other: V8's heaps and code, and stacks. */
  v8: number;
}

const KINDS = ['file', 'malloc', 'v8'] as const;
const ARENA_BYTES = 64 * 1024 * 1024;

export function memoryKindsOf(pid: number): MemoryKinds {
  const kinds: MemoryKinds = { file: 0, malloc: 0, v8: 0 };
  let kind: keyof MemoryKinds = 'v8';
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'utf8').split('\n')) {
    const [, start, name] = /^([0-9a-f]+)-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)$/.exec(line) ?? [];
    if (start !== undefined && name !== undefined) kind = kindOf(Number.parseInt(start, 16), name);
    const [, kilobytes] = /^Rss: +(\d+) kB$/.exec(line) ?? [];
    if (kilobytes !== undefined) kinds[kind] += Number(kilobytes) / 1_024;
  }
  return kinds;
}

function kindOf(start: number, name: string): keyof MemoryKinds {
  if (name === '[heap]') return 'malloc';
  if (name !== '') return name.startsWith('[') ? 'v8' : 'file';
  return start % ARENA_BYTES === 0 ? 'malloc' : 'v8';
}

export const totalOf = (kinds: MemoryKinds) => KINDS.reduce((sum, kind) => sum + kinds[kind], 0);

/** What has grown from one to the other. */
export function growthOf(from: MemoryKinds, to: MemoryKinds): string {
  const signed = (value: number) => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(1)}`;
  return KINDS.map((kind) => `${kind} ${signed(to[kind] - from[kind])}`).join(', ');
}
