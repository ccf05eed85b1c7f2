/**
 * The releases of this program, side by side (docs/decisions/0011-updates.md):
 *
 *     base              the package's: apt alone changes it
 *     releases/VERSION  those that `gatehouse update` brought
 *     current           a link to the one that runs; the package's own leads to base, so apt has the last word
 *     releases/update.json    an update that is not accepted yet: whatever starts the service first takes it back
 *     releases/accepted.json  the update that was accepted last, for `gatehouse update rollback`
 *
 * Each change is one rename, link or removal, on the disk before the next.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

/** Changes of a disk, one by one. A test ends the process before and after each. */
export interface Disk {
  makeFolder(path: string): void;
  /** With its content on the disk. */
  write(path: string, text: string): void;
  /** Refuses a path that is there. */
  link(from: string, to: string): void;
  symlink(target: string, path: string): void;
  rename(from: string, to: string): void;
  remove(path: string): void;
  /** Puts the names in a folder on the disk. */
  sync(folder: string): void;
}

export const DISK: Disk = {
  // Whatever the umask: the service reads its program as another user.
  makeFolder(path) {
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o755);
  },
  write(path, text) {
    writeFileSync(path, text, { flush: true });
    chmodSync(path, 0o644);
  },
  link: linkSync,
  symlink: symlinkSync,
  rename: renameSync,
  remove: (path) => rmSync(path, { recursive: true, force: true }),
  sync(folder) {
    const descriptor = openSync(folder, 'r');
    fsyncSync(descriptor);
    closeSync(descriptor);
  },
};

/** An update, as it is kept while it may still be taken back. Later versions read this of earlier ones. */
const planSchema = z.object({
  /** The release that ran before, such as base or releases/0.2.0. */
  from: z.string(),
  to: z.string(),
  version: z.string(),
  /** The newest schema of the database that `from` knows. */
  schema: z.int(),
  /** Links that were up before. */
  links: z.array(z.string()),
  waitSeconds: z.int(),
});
export type Plan = z.infer<typeof planSchema>;

const UNPACKING = '.unpacking';

export interface Releases {
  readonly root: string;
  current(): string;
  /** Not accepted yet. */
  pending(): Plan | undefined;
  accepted(): Plan | undefined;
  /** An empty folder for what is unpacked; what an update that was cut short has left goes. */
  workshop(): string;
  /** Makes `folder`, which is whole and on the disk, the release of a version. Returns its name. */
  add(folder: string, version: string): string;
  /** False: another update is not over. */
  begin(plan: Plan): boolean;
  switchTo(release: string): void;
  accept(): void;
  /** The accepted update is to be taken back by the next start. */
  reopen(): void;
  /** The update is taken back. */
  forget(): void;
}

export function openReleases(root: string, disk: Disk = DISK): Releases {
  const folder = join(root, 'releases');
  const [pending, accepted] = [join(folder, 'update.json'), join(folder, 'accepted.json')];
  const link = join(root, 'current');
  const read = (file: string) =>
    existsSync(file) ? planSchema.parse(JSON.parse(readFileSync(file, 'utf8'))) : undefined;
  const current = () => readlinkSync(link);
  const renamed = (from: string, to: string) => {
    disk.rename(from, to);
    disk.sync(folder);
  };
  return {
    root,
    current,
    pending: () => read(pending),
    accepted: () => read(accepted),
    workshop() {
      const path = join(folder, UNPACKING);
      disk.makeFolder(folder);
      disk.remove(path);
      disk.makeFolder(path);
      return path;
    },
    add(unpacked, version) {
      const name = `releases/${version}`;
      // One of this version that was taken back may be there. What runs, and what came with apt, stays.
      for (const old of readdirSync(folder, { withFileTypes: true }))
        if (old.isDirectory() && old.name !== UNPACKING && `releases/${old.name}` !== current())
          disk.remove(join(folder, old.name));
      disk.remove(accepted);
      renamed(unpacked, join(root, name));
      disk.remove(join(folder, UNPACKING));
      return name;
    },
    begin(plan) {
      const draft = `${pending}.new`;
      disk.remove(draft);
      disk.write(draft, JSON.stringify(plan));
      try {
        disk.link(draft, pending);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
        throw error;
      }
      disk.remove(draft);
      disk.sync(folder);
      return true;
    },
    switchTo(release) {
      const draft = `${link}.new`;
      disk.remove(draft);
      disk.symlink(release, draft);
      disk.rename(draft, link);
      disk.sync(root);
    },
    accept: () => renamed(pending, accepted),
    reopen: () => renamed(accepted, pending),
    forget() {
      disk.remove(pending);
      disk.sync(folder);
    },
  };
}
