/** Archives of anyone who has the public key: whatever tar is in one, a refused restore has changed nothing. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { backedUp, PUBLIC, restore, SECRET, shell } from '../../test/cli/archives.ts';
import { temporaryFolder } from '../../test/temporary.ts';
import { encrypted } from '../platform/age.ts';
import { piecesOf, unpackArchive } from '../services/backup/archive.ts';
import { MANIFEST } from '../services/backup/manifest.ts';

vi.setConfig({ testTimeout: 60_000 });

const DATABASE = 'data/gatehouse.db';

/** The files of an archive in a folder, and their names in its order, the manifest's first. */
interface Contents {
  folder: string;
  names: string[];
  at(...path: string[]): string;
  tar(...argv: string[]): Buffer;
}

async function contentsOf(archive: string): Promise<Contents> {
  const folder = temporaryFolder();
  const at = (...path: string[]) => join(folder, ...path);
  const source = openSync(archive, 'r');
  const manifest = await unpackArchive(piecesOf(source), { identities: [SECRET] }, folder);
  closeSync(source);
  writeFileSync(at(MANIFEST), JSON.stringify(manifest));
  const names = [MANIFEST, ...manifest.files.map(({ name }) => name)];
  const tar = (...argv: string[]) =>
    execFileSync('tar', ['--create', '--format=ustar', '--blocking-factor=1', '-C', folder, ...argv], {
      maxBuffer: 2 ** 28,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  return { folder, names, at, tar };
}

/** As anyone who has the public key can. */
async function seal(tar: Buffer, archive: string): Promise<void> {
  async function* whole() {
    yield tar;
  }
  const pieces: Uint8Array[] = [];
  for await (const piece of await encrypted(whole(), { recipients: [PUBLIC] })) pieces.push(piece);
  writeFileSync(archive, Buffer.concat(pieces));
}

/** Every file below but the lock, with its content. */
function contentOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => !path.endsWith('.lock') && statSync(join(folder, path)).isFile())
    .map(
      (path) =>
        `${path} ${createHash('sha256')
          .update(readFileSync(join(folder, path)))
          .digest('hex')}`,
    )
    .sort();
}

/** The field of a header of one entry is changed, and its checksum with it. */
function changedHeader(tar: Buffer, name: string, offset: number, text: string): Buffer {
  const changed = Buffer.from(tar);
  const start = changed.indexOf(`${name}\0`);
  const header = changed.subarray(start, start + 512);
  header.write(text, offset);
  header.write('        ', 148);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return changed;
}

const HOSTILE: [string, (contents: Contents, outside: string) => Buffer][] = [
  [
    'a link in place of the database',
    ({ names, at, tar }, outside) => {
      rmSync(at(DATABASE));
      symlinkSync(outside, at(DATABASE));
      return tar(...names);
    },
  ],
  [
    'a link in place of a folder, and a file behind it',
    ({ names, at, tar }, outside) => {
      const real = tar(...names.slice(0, 2));
      mkdirSync(at('links'));
      symlinkSync(dirname(outside), at('links/data'));
      const link = execFileSync('tar', ['-c', '--format=ustar', '-b1', '-C', at('links'), 'data']);
      return Buffer.concat([real.subarray(0, -1_024), link.subarray(0, 512), tar(...names.slice(2))]);
    },
  ],
  [
    'a hard link in place of the database',
    ({ names, at, tar }) => {
      rmSync(at(DATABASE));
      linkSync(at(MANIFEST), at(DATABASE));
      return tar(...names);
    },
  ],
  [
    'a pipe in place of the database',
    ({ names, at, tar }) => {
      rmSync(at(DATABASE));
      execFileSync('mkfifo', [at(DATABASE)]);
      return tar(...names);
    },
  ],
  [
    'a name with ..',
    ({ names, tar }) => tar('-P', '--transform', `s,^${DATABASE}$,data/../../outside,`, ...names),
  ],
  [
    'an absolute name',
    ({ names, tar }, outside) => tar('-P', '--transform', `s,^${DATABASE}$,${outside},`, ...names),
  ],
  ['./ before its names', ({ names, tar }) => tar('--transform', 's,^,./,', ...names)],
  ['folders', ({ names, tar }) => tar('--no-recursion', ...names.slice(0, 2), 'data', ...names.slice(2))],
  ['one of its files twice', ({ names, tar }) => tar('--hard-dereference', ...names, DATABASE)],
  ['its files in another order', ({ names, tar }) => tar(...names.slice(0, 2), ...names.slice(2).reverse())],
  ['its manifest at the end', ({ names, tar }) => tar(...names.slice(1), MANIFEST)],
  [
    'a sparse file of a terabyte',
    ({ names, at, tar }) => {
      truncateSync(at(DATABASE), 2 ** 40);
      return tar('--format=gnu', '--sparse', ...names);
    },
  ],
  ['the headers of pax', ({ names, tar }) => tar('--format=pax', '--pax-option=comment=x', ...names)],
  [
    'a size of 8 GiB that is not there',
    ({ names, tar }) => changedHeader(tar(...names), DATABASE, 124, '77777777777'),
  ],
  ['a negative size', ({ names, tar }) => changedHeader(tar(...names), DATABASE, 124, '-0000000001')],
  ['half a file at its end', ({ names, tar }) => tar(...names).subarray(0, -4_096)],
  ['no end', ({ names, tar }) => tar(...names).subarray(0, -1_024)],
  ['something behind its end', ({ names, tar }) => Buffer.concat([tar(...names), Buffer.alloc(512, 'x')])],
  ['nothing', () => Buffer.alloc(0)],
  ['zeros', () => Buffer.alloc(1_048_576)],
];

it.each(HOSTILE)('gatehouse restore refuses an archive with %s, and changes nothing', async (_what, make) => {
  const { gateway, archive } = await backedUp();
  await gateway.close();
  const outside = join(gateway.folder, 'outside');
  writeFileSync(outside, 'not of Gatehouse');
  const tar = make(await contentsOf(archive), outside);
  await seal(tar, archive);
  const before = contentOf(gateway.folder);
  expect(await restore(gateway, archive)).toBe(1);
  expect(shell.written.stderr).toMatch(/copy\.age cannot be used: it /);
  expect(shell.written.stderr.split('\n')).toHaveLength(2);
  expect(contentOf(gateway.folder)).toEqual(before);
  expect(existsSync(join(gateway.dataDirectory, 'restoring'))).toBe(false);
});

it('the same archive without a change is restored', async () => {
  const { gateway, archive } = await backedUp();
  await gateway.close();
  const { names, tar } = await contentsOf(archive);
  await seal(tar(...names), archive);
  expect(await restore(gateway, archive), shell.written.stderr).toBe(0);
});
