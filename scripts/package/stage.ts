/** Writes files of a package into a folder, from where dpkg-deb and tar take them. */
import {
  chmodSync,
  copyFileSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Contents } from './contents.ts';

export function stageFiles(contents: Contents, stage: string): void {
  for (const [path, entry] of contents) {
    const target = join(stage, path);
    mkdirSync(dirname(target), { recursive: true });
    if ('target' in entry) {
      symlinkSync(entry.target, target);
      continue;
    }
    if ('from' in entry) copyFileSync(entry.from, target);
    else writeFileSync(target, entry.text);
    chmodSync(target, entry.executable === true ? 0o755 : 0o644);
  }
}

/** Sets what the umask and the clock have decided until here. `seconds`: since 1970. */
export function settle(folder: string, seconds: number): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) settle(path, seconds);
    else lutimesSync(path, seconds, seconds);
  }
  chmodSync(folder, 0o755);
  utimesSync(folder, seconds, seconds);
}
