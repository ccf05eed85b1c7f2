/** A package that is to become a release: whose it is, what is in it, and whether it fits this machine. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { readNamedFile, readRegularFile, reasonOf } from '../../platform/host/regular-file.ts';
import { CommandFailed } from '../shell.ts';
import { verified } from './minisign.ts';

const SUMS = 'SHA256SUMS';
/** Who may update this machine: minisign's public key. */
export const UPDATE_KEY = '/etc/gatehouse/update.pub';
const OTHERS_MAY_WRITE = 0o022;
/** Of a package, several times what one has: nothing of a stick is read without a bound. */
const PACKAGE_MAX_BYTES = 512 * 1_048_576;
/** What `systemctl` and udev know of the package is changed by apt alone. */
const SYSTEM = [
  'usr/bin',
  'usr/lib/gatehouse/systemd',
  'usr/lib/modules-load.d',
  'usr/lib/systemd',
  'usr/lib/sysusers.d',
  'usr/lib/tmpfiles.d',
  'usr/lib/udev',
];

export interface Incoming {
  version: string;
  /** The program, unpacked and on the disk. */
  program: string;
}

export interface Machine {
  /** minisign's public key of who may update this machine. */
  publicKey: string;
  /** Where the package's files are; / but in tests. */
  root: string;
  /** The version that runs. */
  version: string;
}

/** What was checked is what is unpacked, in `workshop`. */
export function unpack(file: string, workshop: string, machine: Machine): Incoming {
  const content = readable(file, () =>
    readRegularFile(file, { followLinks: true, maxBytes: PACKAGE_MAX_BYTES }),
  );
  checkSignature(file, content, machine);
  const deb = join(workshop, 'package.deb');
  writeFileSync(deb, content, { mode: 0o600 });
  const field = (name: string) => run('dpkg-deb', '--field', deb, name).trim();
  const version = field('Version');
  const architecture = run('dpkg', '--print-architecture').trim();
  if (field('Package') !== 'gatehouse') throw new CommandFailed(`${file} is no package of Gatehouse.`);
  if (field('Architecture') !== architecture)
    throw new CommandFailed(`${file} is for ${field('Architecture')}, and this machine is ${architecture}.`);
  if (!isNewer(version, machine.version))
    throw new CommandFailed(
      `${version} is not newer than ${machine.version}, which runs. The way back to the version before is: gatehouse update rollback`,
    );
  const files = join(workshop, 'files');
  run('dpkg-deb', '--extract', deb, files);
  const others = differing(files, machine.root);
  if (others.length > 0)
    throw new CommandFailed(
      `${version} also changes files of the system (${others.join(', ')}): install it with apt-get install ${file}`,
    );
  run('sync', '--file-system', files);
  return { version, program: join(files, 'usr/lib/gatehouse/base') };
}

/** As SHA256SUMS beside the package has it, which is signed. */
function checkSignature(file: string, content: Uint8Array, machine: Machine): void {
  const { publicKey } = machine;
  const sums = join(dirname(file), SUMS);
  assertOwn(machine);
  const [text, signature, key] = [sums, `${sums}.minisig`, publicKey].map((path) =>
    readable(path, () => readNamedFile(path)),
  ) as [string, string, string];
  try {
    verified(Buffer.from(text), signature, key);
  } catch (error) {
    throw new CommandFailed(`${sums} cannot be trusted: ${(error as Error).message}.`);
  }
  const digest = createHash('sha256').update(content).digest('hex');
  if (!text.split('\n').includes(`${digest}  ${basename(file)}`))
    throw new CommandFailed(`${sums} does not have this ${basename(file)}.`);
}

/** Who may write the key may run a program as root by it. */
function assertOwn({ publicKey, root }: Machine): void {
  const { uid, mode } = readable(publicKey, () => statSync(publicKey));
  if (uid !== statSync(root).uid || (mode & OTHERS_MAY_WRITE) !== 0)
    throw new CommandFailed(
      `${publicKey} may be changed by others than root, so that no package is trusted by it: compare it with the one that its maker publishes, then chown root ${publicKey} && chmod 644 ${publicKey}`,
    );
}

function readable<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new CommandFailed(`${path} cannot be read: ${reasonOf(error)}`);
  }
}

function run(command: string, ...argv: string[]): string {
  try {
    return execFileSync(command, argv, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    throw new CommandFailed(`${command} failed: ${(error as { stderr?: string }).stderr ?? error}`);
  }
}

function isNewer(version: string, than: string): boolean {
  try {
    execFileSync('dpkg', ['--compare-versions', version, 'gt', than], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Files of the system that are not as the package has them, from the root. */
function differing(files: string, root: string): string[] {
  return SYSTEM.flatMap((folder) => filesIn(files, folder)).filter((path) => {
    const there = join(root, path);
    return !existsSync(there) || !readFileSync(there).equals(readFileSync(join(files, path)));
  });
}

function filesIn(root: string, path: string): string[] {
  const stats = statSync(join(root, path), { throwIfNoEntry: false });
  if (!stats) return [];
  if (!stats.isDirectory()) return [path];
  return readdirSync(join(root, path)).flatMap((name) => filesIn(root, join(path, name)));
}
