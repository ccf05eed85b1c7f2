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
const TEST_CODE = /^test\/|\.test\.ts$|\/test-[\w-]+\.ts$|\/testbed\.ts$/;
const FOLDERS = ['src', 'drivers', 'test'];
const MAKE = 'test/simulators/zigbee/make.ts';

/** From the root of the project, in order. */
export function fastTests(root: string): string[] {
  const opens = below(root, (path, text, imports) => {
    if (/\.test\.ts$/.test(path) && ASKS_FOR_TIME.test(text)) return true;
    return imports.some((one) => {
      if (one === STARTS_PROCESSES) return true;
      return isPackage(one) ? TEST_CODE.test(path) && OPENS_SOCKETS.test(one) : OPENS_MORE.test(one);
    });
  });
  return testFiles(root).filter((path) => !opens(path));
}

/** The tests with a coordinator, which are run once for each make (test/simulators/zigbee/makes.ts), in order. */
export function coordinatorTests(root: string): string[] {
  return testFiles(root).filter(below(root, (_, __, imports) => imports.includes(MAKE)));
}

function testFiles(root: string): string[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts') && !/(^|\/)node_modules\//.test(name))
      .map((name) => `${folder}/${name}`),
  ).toSorted();
}

const isPackage = (imported: string) => !/^(src|drivers|scripts|test)\//.test(imported);

/**
 * Whether it holds of a file, of what it imports as a value, or of what that imports in turn. There are no rings of imports.
 * `imports`: packages, and paths from the root.
 */
function below(root: string, holds: (path: string, text: string, imports: string[]) => boolean) {
  const known = new Map<string, boolean>();
  function find(path: string): boolean {
    const text = readFileSync(join(root, path), 'utf8');
    const imports = importedValues(path, text).map((one) =>
      one.startsWith('.') ? posix.join(posix.dirname(path), one) : one,
    );
    return (
      holds(path, text, imports) || imports.some((one) => !isPackage(one) && one.endsWith('.ts') && isSo(one))
    );
  }
  function isSo(path: string): boolean {
    const found = known.get(path) ?? find(path);
    known.set(path, found);
    return found;
  }
  return isSo;
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
