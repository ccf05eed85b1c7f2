/**
 * The files of an archive besides the database. Each is opened without following a link, and read whole: they are small.
 * The caller holds the rights of the owner of the folder (src/cli/folder-owner.ts).
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

export interface ArchivedFiles {
  files: SmallFile[];
  /** Paths of what belongs to this installation and is not among the files. */
  leftOut: string[];
}

/** Without it nothing that is sealed in the database opens. */
const VAULT_KEY = 'keys/vault.key';
/** Not needed to run, so that it may be kept elsewhere (docs/operations.md, Files). */
const ROOT_KEY = 'pki/root.key';

/** Of the data directory. Links and a root key kept elsewhere are left out. Throws without the vault key. */
export function dataFiles(dataDirectory: string): ArchivedFiles {
  const entries = Object.entries(DATA_FOLDERS).flatMap(([folder, depth]) =>
    entriesIn(dataDirectory, folder, depth).filter(({ path }) => !/\.(new|tmp|first-start)$/.test(path)),
  );
  const files = entries.filter(({ isFile }) => isFile).map(({ path }) => path);
  const leftOut = entries.filter(({ isFile }) => !isFile).map(({ path }) => path);
  if (!files.includes(VAULT_KEY))
    throw new Error(
      `${join(dataDirectory, VAULT_KEY)} is not there as a file, and without it no secret in the database can be read: put it back (from the stick or an earlier archive)`,
    );
  if (!files.includes(ROOT_KEY) && !leftOut.includes(ROOT_KEY)) leftOut.push(ROOT_KEY);
  return {
    files: files.map((path) => ({ name: `data/${path}`, content: readWhole(join(dataDirectory, path)) })),
    leftOut: leftOut.map((path) => join(dataDirectory, path)),
  };
}

interface DataEntry {
  /** Relative to the data directory. */
  path: string;
  /** False for a link, a pipe or a device. */
  isFile: boolean;
}

/** In order. Folders beyond `depth` are not looked at. */
function entriesIn(base: string, folder: string, depth: number): DataEntry[] {
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
      if (entry.isDirectory()) return depth > 1 ? entriesIn(base, path, depth - 1) : [];
      return [{ path, isFile: entry.isFile() }];
    });
}

function readWhole(file: string): Buffer {
  return readRegularFile(file, { followLinks: false });
}

/**
 * The configuration, and the files it names in its own folder: those are Gatehouse's. What lies elsewhere belongs to
 * somebody else, such as the system's certificates, and a restore does not write there. `text`: in place of the configuration's own.
 */
export function configurationFiles(configFile: string, config: Config, text?: string): ArchivedFiles {
  const file = realpathSync(configFile);
  const folder = dirname(file);
  const content = text === undefined ? readWhole(file) : Buffer.from(text);
  const own = { name: `config/${basename(configFile)}`, content };
  const found: ArchivedFiles = { files: [own], leftOut: [] };
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
