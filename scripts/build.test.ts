/** A checkout runs its sources, and its bundle where that is asked for; a package has the bundle alone. */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../test/temporary.ts';
import { build, buildConsole } from './build.ts';

const PROJECT = join(import.meta.dirname, '..');
const STARTS = { main: 'src/start.js', host: 'src/platform/field/host/start-host.js' };
/** Each program says who it is, where it is, and what a file beside a module of it says. */
const program = (name: string, up: string) => `
import { beside } from '${up}drivers/beside.ts';
console.log(${JSON.stringify(name)}, import.meta.filename.includes('/dist/') ? 'bundle' : 'sources', beside());
`;
const FILES = {
  'package.json': '{ "type": "module" }',
  'src/main.ts': program('main', '../'),
  'src/platform/field/host/host.ts': program('host', '../../../../'),
  'drivers/beside.ts': `
import { readFileSync } from 'node:fs';
import * as path from 'node:path';
export const beside = (): string => readFileSync(path.join(import.meta.dirname, 'beside.txt'), 'utf8');
`,
  'drivers/beside.txt': 'beside',
};

let root: string;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'gatehouse-build-'));
  mkdirSync(join(root, 'node_modules'));
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  for (const path of Object.values(STARTS)) copyFileSync(join(PROJECT, path), join(root, path));
  await build(root);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function run(script: string, environment: Record<string, string> = {}): string {
  const env = { PATH: process.env.PATH, HOME: root, ...environment };
  const { stdout, stderr } = spawnSync(process.execPath, [join(root, script)], { encoding: 'utf8', env });
  return stderr + stdout;
}

describe.each(Object.entries(STARTS))('%s', (name, script) => {
  it('runs its sources in a checkout', () => {
    expect(run(script)).toBe(`${name} sources beside\n`);
  });

  it('runs its bundle when asked, and finds what lies beside its sources', () => {
    expect(run(script, { GATEHOUSE_BUNDLE: '1' })).toBe(`${name} bundle beside\n`);
  });
});

it('is a bundle where there are no sources', () => {
  for (const path of ['src/main.ts', 'src/platform/field/host/host.ts']) rmSync(join(root, path));
  for (const [name, script] of Object.entries(STARTS)) expect(run(script)).toBe(`${name} bundle beside\n`);
});

/** A phone in a basement reads all of it over a bad network. */
const CONSOLE_MAX_KIBIBYTES = 80;

it('makes a console of no more than 80 KB, compressed', async () => {
  const folder = temporaryFolder();
  await buildConsole(PROJECT, folder);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const sizes = files
    .filter((name) => ['.html', '.js', '.css'].includes(extname(name)))
    .map((name) => [name, gzipSync(readFileSync(join(folder, name)), { level: 9 }).length] as const);
  expect(sizes.length).toBeGreaterThan(4);
  const kibibytes = sizes.reduce((sum, [, size]) => sum + size, 0) / 1_024;
  expect(kibibytes, JSON.stringify(sizes)).toBeLessThanOrEqual(CONSOLE_MAX_KIBIBYTES);
});
