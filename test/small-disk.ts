/** A real file system of a few megabytes, for what happens when it is full. Mounting takes root, or sudo without a password. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import type { TestSite } from './simulators/test-site.ts';

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
  /** As a kernel makes a disk that fails; false: writable again. */
  setReadOnly(isReadOnly: boolean): void;
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
    makeRoom: () => rmSync(filler, { force: true }),
    setReadOnly(isReadOnly) {
      const { status, stderr } = asRoot('mount', '-o', `remount,${isReadOnly ? 'ro' : 'rw'}`, folder);
      if (status !== 0) throw new Error(`cannot remount a small disk: ${stderr}`);
    },
  };
}

const DATA_BYTES = 96 * 1024 * 1024;

/** Puts the daemon's data on a small disk of their own, and starts it again. */
export async function onSmallDisk({ daemon, directory }: TestSite): Promise<SmallDisk> {
  await daemon.kill();
  const data = join(directory, 'data');
  const disk = smallDisk(DATA_BYTES);
  // With owners and modes, which cpSync loses.
  execFileSync('cp', ['-a', `${data}/.`, disk.folder]);
  rmSync(data, { recursive: true });
  symlinkSync(disk.folder, data);
  await daemon.start();
  const hasBallast = () => expect(existsSync(join(data, 'ballast'))).toBe(true);
  await vi.waitFor(hasBallast, { timeout: 20_000, interval: 100 });
  return disk;
}
