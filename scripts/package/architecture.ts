/** Node.js and the native code of one kind of processor, out of packages that npm has installed or fetched. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';

/** Why no package is built, in words for the person who asked for it. */
export class Refused extends Error {}

interface Kind {
  /** As npm and Node.js have it. */
  node: string;
  /** e_machine of ELF. */
  machine: number;
  /** Of Debian's cross compiler for it. */
  compiler: string;
}
/** By Debian's name. */
export const ARCHITECTURES: Readonly<Record<string, Kind>> = {
  amd64: { node: 'x64', machine: 62, compiler: 'x86_64-linux-gnu-gcc' },
  arm64: { node: 'arm64', machine: 183, compiler: 'aarch64-linux-gnu-gcc' },
};
export type LockedPackage = { version: string; integrity?: string; license?: string; link?: boolean };

/** By folder, such as node_modules/zod. */
export function lockedPackages(root: string): Record<string, LockedPackage> {
  return JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
}

/**
 * The folder of the npm package with Node.js: the installed one, or what is in `archive`, a file of `npm pack`, which must
 * be the one that package-lock.json names; it is unpacked into `work`.
 */
export function nodeFolder(root: string, kind: Kind, archive: string | undefined, work: string): string {
  const name = `node-linux-${kind.node}`;
  const locked = lockedPackages(root)[`node_modules/${name}`];
  if (!locked) throw new Refused(`package-lock.json has no ${name}`);
  if (archive !== undefined) return unpacked(archive, locked.integrity, name, work);
  const folder = join(root, 'node_modules', name);
  if (!existsSync(join(folder, 'bin/node')))
    throw new Refused(
      `npm has not installed ${name}, which is for another processor than this one: npm pack ${name}@${locked.version}, then --node ${name}-${locked.version}.tgz`,
    );
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  if (version !== locked.version)
    throw new Refused(`${folder} is ${version}, and package-lock.json has ${locked.version}: npm ci`);
  return folder;
}

function unpacked(archive: string, integrity: string | undefined, name: string, work: string): string {
  const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
  if (found !== integrity) throw new Refused(`${archive} is not the ${name} of package-lock.json`);
  const only = ['package/bin/node', 'package/LICENSE'];
  execFileSync('tar', ['--extract', '--gzip', `--file=${archive}`, `--directory=${work}`, ...only]);
  return join(work, 'package');
}

/** The addons of a library for a processor with glibc, from the root of the project. */
export function addons(root: string, kind: Kind): string[] {
  return [
    `node_modules/better-sqlite3/prebuilds/linux-${kind.node}.node`,
    ...['node_modules', 'node_modules/zigbee-herdsman/node_modules'].map((modules) => {
      const folder = `${modules}/@serialport/bindings-cpp/prebuilds/linux-${kind.node}`;
      const found = existsSync(join(root, folder))
        ? readdirSync(join(root, folder)).find((name) => name.includes('glibc'))
        : undefined;
      if (found === undefined) throw new Refused(`${folder} has no addon for glibc`);
      return `${folder}/${found}`;
    }),
  ];
}

/** Builds the one program of this tree that is none of Node.js (drivers/bus/rs485-mode.ts) into `folder`. */
export function compiled(root: string, source: string, { compiler }: Kind, folder: string): string {
  const file = join(folder, 'rs485-mode');
  const argv = ['-Os', '-s', '-Wl,--build-id=none', '-o', file, join(root, source)];
  try {
    execFileSync(compiler, argv, { stdio: ['ignore', 'ignore', 'inherit'] });
  } catch (error) {
    throw new Refused(
      `${source} needs ${compiler} and the headers of the C library for it (Debian: gcc and libc6-dev; for arm64 elsewhere gcc-aarch64-linux-gnu and libc6-dev-arm64-cross): ${error}`,
    );
  }
  return file;
}

/** Refuses a program or a library that is not for this processor. */
export function mustBeFor(file: string, kind: Kind): void {
  const head = Buffer.alloc(20);
  const descriptor = openSync(file, 'r');
  readSync(descriptor, head);
  closeSync(descriptor);
  const isElf = head.readUInt32BE() === 0x7f454c46;
  if (!isElf || head.readUInt16LE(18) !== kind.machine)
    throw new Refused(`${file} is not for processors of the kind ${kind.node}`);
}
