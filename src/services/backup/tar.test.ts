/** Against GNU tar, which is a peer of its own. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { readTar, TarFault, tarEnd, tarHeader, tarPadding, whole } from './tar.ts';

const FILES: [string, Buffer][] = [
  ['manifest.json', Buffer.from('{}')],
  ['data/keys/vault.key', Buffer.alloc(32, 7)],
  ['data/empty', Buffer.alloc(0)],
  ['data/block', Buffer.alloc(512, 1)],
];
const archive = () =>
  Buffer.concat([
    ...FILES.flatMap(([name, content]) => [
      tarHeader({ name, bytes: content.length }),
      content,
      tarPadding(content.length),
    ]),
    tarEnd(),
  ]);

/** In pieces of so many bytes. */
async function* pieces(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(bytes: Uint8Array, size = 1_000) {
  const tar = readTar(pieces(bytes, size));
  const found: [string, Buffer][] = [];
  for (let entry = await tar.next(); entry; entry = await tar.next())
    found.push([entry.name, await whole(tar.content())]);
  return found;
}

describe('tar', () => {
  it.each([1, 511, 512, 100_000])('reads what it has written, in pieces of %d bytes', async (size) => {
    expect(await read(archive(), size)).toEqual(FILES);
  });

  it('writes what GNU tar reads', () => {
    const folder = temporaryFolder();
    const { status, stderr } = spawnSync('tar', ['--extract', '--directory', folder], { input: archive() });
    expect(status, stderr.toString()).toBe(0);
    for (const [name, content] of FILES) expect(readFileSync(join(folder, name))).toEqual(content);
  });

  it('reads what GNU tar has written', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'data'));
    writeFileSync(join(folder, 'data/file'), 'content');
    const flags = ['--create', '--format=ustar', '--blocking-factor=1', '--directory', folder, 'data/file'];
    const { stdout } = spawnSync('tar', flags);
    expect(await read(stdout)).toEqual([['data/file', Buffer.from('content')]]);
  });

  it.each<[string, (bytes: Buffer) => Uint8Array]>([
    ['ends early', (bytes) => bytes.subarray(0, bytes.length - 600)],
    ['has another checksum', (bytes) => bytes.fill('8', 124, 125)],
    ['has something after its end', (bytes) => Buffer.concat([bytes, Buffer.alloc(1)])],
    ['is none', () => Buffer.alloc(2_048, 'x')],
  ])('refuses what %s', async (_what, change) => {
    await expect(read(change(archive()))).rejects.toThrow(TarFault);
  });

  it.each(['1', '2', '5', 'L', 'x'])('refuses an entry of type %s, such as a link', async (type) => {
    const bytes = archive();
    const sum = Number.parseInt(bytes.toString('latin1', 148, 154), 8);
    bytes.write(type, 156);
    bytes.write((sum + type.charCodeAt(0) - '0'.charCodeAt(0)).toString(8).padStart(6, '0'), 148);
    await expect(read(bytes)).rejects.toThrow(/is no regular file/);
  });

  it('writes no name that it could not read again', () => {
    expect(() => tarHeader({ name: 'x'.repeat(101), bytes: 0 })).toThrow(RangeError);
    expect(() => tarHeader({ name: 'x', bytes: 8 ** 11 })).toThrow(RangeError);
  });
});
