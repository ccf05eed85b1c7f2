/**
 * The files of an archive besides the database. Each is opened without following a link, and read whole: they are small.
 * The caller holds the rights of the owner of the folder (cli/folder-owner.ts).
 */
import { readdirSync, realpathSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import type { Config } from '../../platform/config/config.ts';
import { filesNamedBy } from '../../platform/config/named-files.ts';
import { readRegularFile } from '../../platform/host/regular-file.ts';
import { DATA_FOLDERS } from './manifest.ts';

export interface SmallFile {
  /** As in the manifest. */
  name: string;
  content: Buffer;
}

/** Of the data directory. */
export function dataFiles(dataDirectory: string): SmallFile[] {
  return Object.entries(DATA_FOLDERS).flatMap(([folder, depth]) =>
    pathsIn(dataDirectory, folder, depth)
      .filter((path) => !/\.(new|tmp|first-start)$/.test(path))
      .map((path) => ({ name: `data/${path}`, content: readWhole(join(dataDirectory, path)) })),
  );
}

/** Relative to `base`, in order. Folders beyond `depth` are not looked at. */
function pathsIn(base: string, folder: string, depth: number): string[] {
  let entries: import('node:fs').Dirent[];
  try {
    entries = readdirSync(join(base, folder), { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return entries
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return depth > 1 ? pathsIn(base, path, depth - 1) : [];
      return entry.isFile() ? [path] : [];
    });
}

function readWhole(file: string): Buffer {
  return readRegularFile(file, { followLinks: false });
}

export interface ConfigurationFiles {
  files: SmallFile[];
  leftOut: string[];
}

/**
 * The configuration, and the files it names in its own folder: those are Gatehouse's. What lies elsewhere belongs to
 * somebody else, such as the system's certificates, and a restore does not write there.
 */
export function configurationFiles(configFile: string, config: Config): ConfigurationFiles {
  const file = realpathSync(configFile);
  const folder = dirname(file);
  const own = { name: `config/${basename(configFile)}`, content: readWhole(file) };
  const found: ConfigurationFiles = { files: [own], leftOut: [] };
  for (const named of new Set(filesNamedBy(config))) {
    const real = realPathOf(named);
    const path = relative(folder, real ?? resolve(named));
    const isOwn = real !== undefined && path !== '..' && !path.startsWith(`..${sep}`);
    const name = `config/${path}`;
    if (!isOwn) found.leftOut.push(named);
    // Two names may lead to one file.
    else if (!found.files.some((file) => file.name === name))
      found.files.push({ name, content: readWhole(real) });
  }
  return found;
}

/** Undefined when it is not there: a backup is made all the same. */
function realPathOf(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}
