/**
 * Which tests are the fast suite, `npm run test:fast`: those that start no process, open no socket, load no simulator and ask
 * for no more time than others. Imports and timeouts decide, so there is no list to keep: a test that begins to open
 * something leaves the fast suite by itself, and `npm test` runs it as before.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { parseSync } from 'oxc-parser';

/** Wherever it is imported below a test. */
const STARTS_PROCESSES = 'node:child_process';
/** Where a test or one of its helpers imports it; in the product it stands behind what a test leaves out. */
const OPENS_SOCKETS = /^(node:(net|tls|http|https|dgram)|mqtt|serialport|@lydell\/node-pty)$/;
/** Helpers that open something without importing any of these, and tests of what is far from the inner loop. */
const OPENS_MORE = /^(test\/(simulators|independent|faults|crash|bench)|scripts)\//;
/** More time than a test has: a search over thousands of cases. */
const ASKS_FOR_TIME = /\b(testT|hookT|t)imeout: \d[\d_]{4,}/;
const TEST_CODE = /^test\/|\.(test|contract)\.ts$|\/test-[\w-]+\.ts$|\/testbed\.ts$/;
const FOLDERS = ['src', 'drivers', 'test'];

/** From the root of the project, in order. */
export function fastTests(root: string): string[] {
  const known = new Map<string, boolean>();
  /** By what it says itself, what it imports as a value, and what that imports in turn. There are no rings of imports. */
  function opens(path: string): boolean {
    const found = known.get(path) ?? someImport(path);
    known.set(path, found);
    return found;
  }
  function someImport(path: string): boolean {
    const text = readFileSync(join(root, path), 'utf8');
    if (/\.test\.ts$/.test(path) && ASKS_FOR_TIME.test(text)) return true;
    return importedValues(path, text).some((specifier) => {
      if (specifier === STARTS_PROCESSES) return true;
      if (!specifier.startsWith('.')) return TEST_CODE.test(path) && OPENS_SOCKETS.test(specifier);
      const target = posix.join(posix.dirname(path), specifier);
      return OPENS_MORE.test(target) || (target.endsWith('.ts') && opens(target));
    });
  }
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts') && !/(^|\/)node_modules\//.test(name))
      .map((name) => `${folder}/${name}`),
  )
    .filter((path) => !opens(path))
    .toSorted();
}

/** What a file imports, or exports from elsewhere, besides types. */
function importedValues(path: string, text: string): string[] {
  const { staticImports, staticExports, dynamicImports } = parseSync(path, text).module;
  const isValue = ({ entries }: { entries: { isType: boolean }[] }) =>
    entries.length === 0 || entries.some(({ isType }) => !isType);
  return [
    ...staticImports.filter(isValue).map(({ moduleRequest }) => moduleRequest.value),
    ...staticExports
      .filter(isValue)
      .flatMap(({ entries }) => entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? [])),
    ...dynamicImports.map(({ moduleRequest: { start, end } }) => text.slice(start + 1, end - 1)),
  ];
}
