/** A bundle is run where it is of exactly these sources, and nowhere else. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBuilt } from '../src/built.js';
import { build } from './build.ts';

const PROJECT = join(import.meta.dirname, '..');
const PROGRAMS = ['main', 'host'] as const;
/** Each program says who it is, where it is, and what a file beside a module of it says. */
const program = (name: string, up: string) => `
import { beside } from '${up}drivers/beside.ts';
console.log(${JSON.stringify(name)}, import.meta.filename.includes('/dist/') ? 'bundle' : 'sources', beside());
`;
const FILES = {
  'package.json': '{ "type": "module" }',
  'package-lock.json': '{}',
  'scripts/build.ts': '',
  'src/main.ts': program('main', '../'),
  'src/platform/field/host/host.ts': program('host', '../../../../'),
  'src/unused.ts': 'export const unused = 1;',
  'drivers/beside.ts': `
import { readFileSync } from 'node:fs';
import * as path from 'node:path';
export const beside = (): string => readFileSync(path.join(import.meta.dirname, 'beside.txt'), 'utf8');
`,
  'drivers/beside.txt': 'beside',
};

let folder: string;
let archive: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-build-'));
  const root = join(folder, 'made');
  mkdirSync(join(root, 'node_modules'), { recursive: true });
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  for (const path of ['src/built.js', 'src/start.js', 'src/platform/field/host/start-host.js'])
    copyFileSync(join(PROJECT, path), join(root, path));
  await build(root);
  // A file may change again within the second of its last change; of such a one nothing is said.
  expect(Date.now() - statSync(join(root, 'src/main.ts')).mtimeMs).toBeGreaterThan(2_000);
  archive = join(folder, 'made.tar');
  execFileSync('tar', ['--create', `--file=${archive}`, `--directory=${root}`, '.']);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** As it is installed: from an archive, which keeps times to the second. */
function installed(): string {
  const root = mkdtempSync(join(folder, 'installed-'));
  execFileSync('tar', ['--extract', `--file=${archive}`, `--directory=${root}`]);
  return root;
}

function run(root: string, script: string): string {
  const env = { PATH: process.env.PATH, HOME: folder };
  const { stdout, stderr } = spawnSync(process.execPath, [join(root, script)], { encoding: 'utf8', env });
  return stderr + stdout;
}

describe('a bundle', () => {
  it('runs where it was installed, and finds what lies beside its sources', () => {
    const root = installed();
    expect(run(root, 'src/start.js')).toBe('main bundle beside\n');
    expect(run(root, 'src/platform/field/host/start-host.js')).toBe('host bundle beside\n');
  });

  it.each<[string, (root: string) => void]>([
    [
      'a source has changed',
      (root) => writeFileSync(join(root, 'drivers/beside.ts'), FILES['drivers/beside.ts']),
    ],
    [
      'a source has another size',
      (root) => swap(root, 'drivers/beside.ts', `${FILES['drivers/beside.ts']};`),
    ],
    ['a library may have changed', (root) => writeFileSync(join(root, 'package-lock.json'), '{}')],
    ['there is a new source', (root) => writeFileSync(join(root, 'src/platform/field/new.ts'), '')],
    ['a source is gone', (root) => unlinkSync(join(root, 'src/unused.ts'))],
    [
      'half of a bundle is there',
      (root) => bundles(root, (file) => truncateSync(file, statSync(file).size >> 1)),
    ],
    ['a bundle is not there', (root) => bundles(root, unlinkSync)],
    ['half of the manifest is there', (root) => manifests(root, (text) => text.slice(0, text.length / 2))],
    ['the manifest names nothing', (root) => manifests(root, () => '{}')],
    ['the manifest is nonsense', (root) => manifests(root, () => 'null')],
    ['the manifest has no stamps', (root) => manifests(root, (text) => text.replace(/\[[^[]*\]/, '1'))],
    ['there is none', (root) => rmSync(join(root, 'dist'), { recursive: true })],
  ])('is left alone when %s', (_name, happens) => {
    const root = installed();
    happens(root);
    expect(PROGRAMS.map((name) => isBuilt(root, name))).toEqual([false, false]);
  });

  it('is not in the way of the sources', () => {
    const root = installed();
    swap(root, 'drivers/beside.ts', `export const beside = () => 'changed';`);
    expect(run(root, 'src/start.js')).toBe('main sources changed\n');
    expect(run(root, 'src/platform/field/host/start-host.js')).toBe('host sources changed\n');
  });
});

/** Another text at the same time. */
function swap(root: string, path: string, text: string): void {
  const { atime, mtime } = statSync(join(root, path));
  writeFileSync(join(root, path), text);
  utimesSync(join(root, path), atime, mtime);
}

function bundles(root: string, change: (file: string) => void): void {
  for (const program of PROGRAMS)
    for (const file of readdirSync(join(root, 'dist', program)))
      if (file !== 'manifest.json') change(join(root, 'dist', program, file));
}

function manifests(root: string, change: (text: string) => string): void {
  for (const program of PROGRAMS) {
    const file = join(root, 'dist', program, 'manifest.json');
    writeFileSync(file, change(readFileSync(file, 'utf8')));
  }
}
