/** What may become a release: a package of Gatehouse, signed, newer, and without changes to the system. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { unpack } from './incoming.ts';

const missing = (command: string) => spawnSync('sh', ['-c', `command -v ${command}`]).status !== 0;
const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'amd64';
const UNIT = 'usr/lib/systemd/system/gatehouse.service';

interface Made {
  name?: string;
  version?: string;
  architecture?: string;
  unit?: string;
}

/** A stick with a small package of these properties and its signed sums, and a machine that trusts who signed them. */
function stick({
  name = 'gatehouse',
  version = '2.0.0',
  architecture = ARCHITECTURE,
  unit = 'unit',
}: Made = {}) {
  const folder = temporaryFolder();
  const at = (...path: string[]) => join(folder, ...path);
  const write = (path: string, text: string) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
  write(
    at('stage/DEBIAN/control'),
    `Package: ${name}\nVersion: ${version}\nArchitecture: ${architecture}\nMaintainer: test\nDescription: test\n`,
  );
  write(at('stage/usr/lib/gatehouse/base/package.json'), '{}');
  write(at('stage', UNIT), unit);
  write(at('root', UNIT), 'unit');
  mkdirSync(at('workshop'));
  const file = at(`gatehouse_${version}_${architecture}.deb`);
  execFileSync('dpkg-deb', ['--build', at('stage'), file], { stdio: 'ignore' });
  const digest = createHash('sha256').update(readFileSync(file)).digest('hex');
  write(at('SHA256SUMS'), `${digest}  gatehouse_${version}_${architecture}.deb\n`);
  const sign = (key: string) => {
    execFileSync('minisign', ['-G', '-f', '-W', '-s', at(`${key}.secret`), '-p', at(key)], {
      stdio: 'ignore',
    });
    execFileSync('minisign', ['-S', '-s', at(`${key}.secret`), '-m', at('SHA256SUMS')], { stdio: 'ignore' });
  };
  sign('key');
  const machine = { publicKey: at('key'), root: at('root'), version: '1.0.0' };
  return { at, file, sign, unpacked: () => unpack(file, at('workshop'), machine) };
}

/** A pipe in the place of this file, or a link to a device that has no end. */
function replaced(file: string, command?: 'mkfifo'): void {
  rmSync(file);
  if (command) execFileSync(command, [file]);
  else symlinkSync('/dev/zero', file);
}

describe.skipIf(missing('minisign') || missing('dpkg-deb'))('a package on a stick', () => {
  it('is unpacked', () => {
    const { unpacked } = stick();
    const { version, program } = unpacked();
    expect(version).toBe('2.0.0');
    expect(existsSync(join(program, 'package.json'))).toBe(true);
  });

  it.each<[string, Made, string]>([
    ['is another program', { name: 'mousepad' }, 'is no package of Gatehouse'],
    ['is for another processor', { architecture: 'riscv64' }, 'is for riscv64, and this machine is'],
    ['is the same version', { version: '1.0.0' }, '1.0.0 is not newer than 1.0.0'],
    ['is older', { version: '0.9.9' }, '0.9.9 is not newer than 1.0.0'],
    ['changes a unit', { unit: 'another' }, `also changes files of the system (${UNIT})`],
  ])('is refused when it %s', (_name, made, message) => {
    expect(stick(made).unpacked).toThrow(message);
  });

  it.each<[string, (made: ReturnType<typeof stick>) => void, string]>([
    ['it was changed', ({ file }) => writeFileSync(file, 'x', { flag: 'a' }), 'does not have this'],
    ['its sums were changed', ({ at }) => writeFileSync(at('SHA256SUMS'), 'x'), 'the signature does not fit'],
    ['another has signed it', ({ sign }) => sign('stranger'), 'signed with another key'],
    ['it is not signed', ({ at }) => execFileSync('rm', [at('SHA256SUMS.minisig')]), 'cannot be read'],
    [
      'others may write the key',
      ({ at }) => chmodSync(at('key'), 0o666),
      'may be changed by others than root',
    ],
    ['the machine trusts no key', ({ at }) => execFileSync('rm', [at('key')]), 'cannot be read'],
    ['it is a pipe', ({ file }) => replaced(file, 'mkfifo'), 'it is a pipe, not a file'],
    ['its sums are a pipe', ({ at }) => replaced(at('SHA256SUMS'), 'mkfifo'), 'it is a pipe, not a file'],
    ['it is a link to a device', ({ file }) => replaced(file), 'it is a device, not a file'],
    ['its signature is one', ({ at }) => replaced(at('SHA256SUMS.minisig')), 'it is a device, not a file'],
    ['it has no end', ({ file }) => truncateSync(file, 2 ** 40), 'has more than 536870912 bytes'],
    [
      'its sums have none',
      ({ at }) => truncateSync(at('SHA256SUMS'), 2 ** 40),
      'has more than 1048576 bytes',
    ],
  ])('is refused when %s', (_name, happens, message) => {
    const made = stick();
    happens(made);
    expect(made.unpacked).toThrow(message);
    expect(existsSync(made.at('workshop/files'))).toBe(false);
  });
});
