/** A real file system of a few megabytes, for what happens when it is full. Mounting takes root, or sudo without a password. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

const asRoot = (command: string, ...argv: string[]) =>
  process.getuid?.() === 0
    ? spawnSync(command, argv, { encoding: 'utf8' })
    : spawnSync('sudo', ['-n', command, ...argv], { encoding: 'utf8' });

function mount(folder: string, bytes: number): string | undefined {
  const owner = `uid=${process.getuid?.()},gid=${process.getgid?.()},mode=0700`;
  const { status, stderr } = asRoot('mount', '-t', 'tmpfs', '-o', `size=${bytes},${owner}`, 'tmpfs', folder);
  return status === 0 ? undefined : stderr;
}

/** Whether this machine lets the tests have one. */
export function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-mount-'));
  const refused = mount(folder, 4096);
  if (refused === undefined) asRoot('umount', folder);
  rmdirSync(folder);
  return refused === undefined;
}

export interface SmallDisk {
  folder: string;
  /** Takes all the room that is left. */
  fill(): void;
  /** Gives back what `fill` took. */
  makeRoom(): void;
}

/** Mounted until the test ends. */
export function smallDisk(bytes: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-disk-'));
  const refused = mount(folder, bytes);
  if (refused !== undefined) throw new Error(`cannot mount a small disk: ${refused}`);
  onTestFinished(() => {
    // Lazy: whatever still holds a file of it must not keep the test from ending.
    asRoot('umount', '-l', folder);
    rmSync(folder, { recursive: true, force: true });
  });
  const filler = join(folder, 'filler');
  return {
    folder,
    fill() {
      const descriptor = openSync(filler, 'a');
      for (const size of [1024 * 1024, 4096]) {
        const block = Buffer.alloc(size);
        try {
          for (;;) if (writeSync(descriptor, block) < size) break;
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        }
      }
      closeSync(descriptor);
      if (statSync(filler).size === 0) throw new Error('there was nothing to fill');
    },
    makeRoom: () => rmSync(filler),
  };
}
