/** CONTRIBUTING.md: its commands, executed where that is cheap; each other block is in WITHOUT with the reason. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, vi } from 'vitest';
import { shellBlocks } from './shell-blocks.ts';

vi.setConfig({ testTimeout: 120_000 });

const ROOT = join(import.meta.dirname, '..');
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
const page = shellBlocks(join(ROOT, 'CONTRIBUTING.md'));
/** Run one single test file of pure code. */
const EXECUTED = [
  'npm test -- src/resources/writes/machine.test.ts',
  'npm test -- src/resources/writes/machine.test.ts -t "',
];

/** By the beginning of each block. */
const WITHOUT = {
  'npm ci': 'fetches packages; .ci/run begins with it',
  'npm run demo': 'test/demo.test.ts',
  'npm run test:watch': 'does not end',
  'npm run test:fast': 'runs every fast test; test/fast.test.ts has which',
  'npm run openapi': 'writes into the tree; test/openapi.test.ts compares',
  'npm test -- src/platform/database/migrate.test.ts': 'is run by npm test',
  'npm run check': '.ci/run',
  'export interface': 'is an example of code',
} as const;

it('has no block that is neither executed nor excused, and no excuse without a block', () => {
  const excuses = Object.keys(WITHOUT);
  const isExecuted = (block: string) => EXECUTED.some((start) => block.startsWith(start));
  const isExcused = (block: string) => excuses.some((start) => block.startsWith(start));
  expect(page.filter((block) => !isExecuted(block) && !isExcused(block))).toEqual([]);
  expect([...excuses, ...EXECUTED].filter((start) => !page.some((block) => block.startsWith(start)))).toEqual(
    [],
  );
});

it('names scripts and test files that exist', () => {
  const text = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  const names = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(5);
  expect(names.filter((name) => !(name in scripts))).toEqual([]);
  const files = page.flatMap((block) =>
    [...block.matchAll(/(?:src|drivers|test)\/[\w./-]+/g)].map(([file]) => file),
  );
  expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

it.each(page.filter((block) => EXECUTED.some((start) => block.startsWith(start))))('%s', async (block) => {
  // A test that runs tests: the inner run must not see the variables that the outer run set for its workers.
  const { PATH, HOME } = process.env;
  const { stdout } = await promisify(execFile)('sh', ['-euc', block], {
    cwd: ROOT,
    env: { PATH, HOME, NO_COLOR: '1' },
  });
  expect(stdout).toMatch(/Test Files +1 passed/);
});
