/** Archives that somebody else has put together: anyone who has the public key can. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../test/temporary.ts';
import { drawKey, encrypted } from '../../platform/age.ts';
import { unpackArchive } from './archive.ts';
import { fileName, MANIFEST, newManifest } from './manifest.ts';
import { tarEnd, tarHeader, tarPadding } from './tar.ts';

const { identity, recipient } = await drawKey();

async function* tarOf(files: [string, string][]) {
  for (const [name, text] of files) {
    const content = Buffer.from(text);
    yield Buffer.concat([tarHeader({ name, bytes: content.length }), content, tarPadding(content.length)]);
  }
  yield tarEnd();
}

const CONFIGURATION = 'config/gatehouse.yaml';
const DATABASE = 'data/gatehouse.db';

const manifestOf = (...names: string[]) =>
  JSON.stringify(
    newManifest({
      version: '0.1.0',
      createdAt: '2026-11-23T03:20:00.000Z',
      systemId: '5c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e',
      databaseId: '6c2f0a52-9f6b-4c3e-8f43-0d1b2a3c4d5e',
      schema: 1,
      files: names.map((name) => ({ name, bytes: 1 })),
      configuration: CONFIGURATION,
      leftOut: [],
    }),
  );

async function unpack(...files: [string, string][]) {
  const folder = temporaryFolder();
  const source = await encrypted(tarOf(files), { recipients: [recipient] });
  await unpackArchive(source, { identities: [identity] }, folder);
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
}

describe('an archive', () => {
  it('puts its files in their places', async () => {
    const names = ['config/gatehouse.yaml', 'data/gatehouse.db', 'data/keys/vault.key'];
    const files = await unpack(
      [MANIFEST, manifestOf(...names)],
      ...names.map((name): [string, string] => [name, 'x']),
    );
    expect(files).toEqual(expect.arrayContaining(names.map((name) => join(name))));
  });

  it.each<[string, RegExp, [string, string][]]>([
    ['has no manifest', /does not begin with a manifest/, [['data/gatehouse.db', 'x']]],
    [
      'has a manifest of another kind',
      /not the manifest of a Gatehouse backup/,
      [[MANIFEST, '{"kind":"x"}']],
    ],
    ['has a manifest that is no JSON', /no backup of Gatehouse/, [[MANIFEST, 'x']]],
    [
      'is of a newer format',
      /is of a newer Gatehouse/,
      [[MANIFEST, manifestOf(CONFIGURATION, DATABASE).replace('"format":1', '"format":2')]],
    ],
    [
      'lacks a file',
      /data\/gatehouse\.db is missing/,
      [
        [MANIFEST, manifestOf(CONFIGURATION, DATABASE)],
        [CONFIGURATION, 'x'],
      ],
    ],
    [
      'has another file in its place',
      /data\/gatehouse\.db is missing/,
      [
        [MANIFEST, manifestOf(CONFIGURATION, DATABASE)],
        [CONFIGURATION, 'x'],
        ['data/keys/vault.key', 'x'],
      ],
    ],
    [
      'has a file more',
      /more than its manifest says/,
      [
        [MANIFEST, manifestOf(CONFIGURATION, DATABASE)],
        [CONFIGURATION, 'x'],
        [DATABASE, 'x'],
        ['data/keys/vault.key', 'x'],
      ],
    ],
    ['has no database', /files lack the database/, [[MANIFEST, manifestOf(CONFIGURATION)]]],
    [
      'has its configuration elsewhere',
      /configuration is not the first of its files/,
      [[MANIFEST, manifestOf(DATABASE, CONFIGURATION)]],
    ],
    [
      'names another file as its configuration',
      /configuration is not the first of its files/,
      [[MANIFEST, manifestOf(DATABASE).replace(CONFIGURATION, DATABASE)]],
    ],
    [
      'names a file twice',
      /files\.2\.name is the name of an earlier file/,
      [[MANIFEST, manifestOf(CONFIGURATION, DATABASE, DATABASE)]],
    ],
    [
      'has a file where another needs a folder',
      /files\.3\.name is in a folder that is an earlier file/,
      [[MANIFEST, manifestOf(CONFIGURATION, DATABASE, 'config/a', 'config/a/b')]],
    ],
  ])('that %s is refused', async (_what, message, files) => {
    await expect(unpack(...files)).rejects.toThrow(message);
  });
});

describe('the name of a file', () => {
  it.each([
    'config/gatehouse.yaml',
    'config/tls/key.pem',
    'data/pki/root.key',
    'data/zigbee/lobby/database.db',
  ])('%s is one of a backup', (name) => {
    expect(fileName.safeParse(name).success).toBe(true);
  });

  it.each([
    '/etc/passwd',
    'config/../../etc/passwd',
    'config/..',
    'config//etc/passwd',
    'config',
    'data/keys/../../x',
    'data/keys/.',
    'data/backups/x',
    'data/gatehouse.db-wal',
    'data/pki/a/b',
    'data/zigbee/a',
    'manifest.json',
    'config/a\nb',
    'config/a\\b',
    '../config/x',
  ])('%j leads out of its folder, or is none of a backup', (name) => {
    expect(fileName.safeParse(name).success).toBe(false);
  });
});
