/**
 * Root works in a folder of another user with the rights of that user. Anyone who may write there may also plant links, and
 * with them lead root to any file of the system.
 */
import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Shell } from './shell.ts';

export interface User {
  uid: number;
  gid: number;
}

/** Until disposed; nothing changes unless this is root and the folder is another user's. */
export function asOwnerOf(folder: string, { become }: Pick<Shell, 'become'>): Disposable {
  const owner = become && ownerOf(folder);
  return owner ? become(owner) : { [Symbol.dispose]() {} };
}

/**
 * The first user other than root who owns the folder or one above it: that user decides what is found further down. Of a
 * folder that does not exist yet, those above it count.
 */
export function ownerOf(folder: string): User | undefined {
  const given = resolve(folder);
  for (const path of [given, realPath(given)]) {
    for (const part of partsOf(path)) {
      const stats = lstatSync(part, { throwIfNoEntry: false });
      if (!stats) break;
      // A group of root's is none to work in: a folder made by root has it unless somebody has chosen another.
      if (stats.uid !== 0) return { uid: stats.uid, gid: stats.gid === 0 ? stats.uid : stats.gid };
    }
  }
  return undefined;
}

/** For an error in a folder of another user: names the first of these paths that is a link, and what to do about it. */
export function linkAmong(paths: readonly (string | undefined)[]): string | undefined {
  const link = paths.find((path) => path && linkTarget(path));
  return link && `${link} is a link to ${linkTarget(link)}: put the file or folder itself in its place.`;
}

/** Undefined where there is no link, or none that this user may read. */
export function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** The folders on the way, the topmost first. */
function partsOf(path: string): string[] {
  const above = dirname(path);
  return above === path ? [path] : [...partsOf(above), path];
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
