/**
 * Whether the bundle that scripts/build.ts made of a program is of exactly the sources that are there now. It starts in half
 * the time, and is only run where it is what the sources say. Plain JavaScript, as are its users (see start.js).
 */
// An import would read all that node:fs exports, and so load streams and promises of files: 4 ms.
const { readFileSync, statSync } = process.getBuiltinModule('node:fs');

const SECOND_MS = 1_000;

/**
 * Size in bytes and time of the last change, in whole seconds, which is what archives keep. Of a folder the time alone
 * counts: it changes with the names in it.
 * @typedef {[size: number, seconds: number]} Stamp
 */

/**
 * Undefined where there is no such file or folder.
 * @param {string} path
 * @returns {Stamp | undefined}
 */
export function stampOf(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && [found.isDirectory() ? 0 : found.size, Math.floor(found.mtimeMs / SECOND_MS)];
}

/**
 * A package has no sources to compare with: its bundle runs. Elsewhere looks at every file the bundle was made of, every folder of sources and every file of the bundle, as the manifest has
 * them; some milliseconds.
 * @param {string} root the folder of the project
 * @param {'main' | 'host'} program
 */
export function isBuilt(root, program) {
  if (stampOf(`${root}/src/main.ts`) === undefined) return true;
  try {
    /** @type {Record<string, Stamp>} */
    const manifest = JSON.parse(readFileSync(`${root}/dist/${program}/manifest.json`, 'utf8'));
    const stamps = Object.entries(manifest);
    return stamps.length > 0 && stamps.every(([path, stamp]) => isAs(`${root}/${path}`, stamp));
  } catch {
    // None, or a damaged one.
    return false;
  }
}

/**
 * @param {string} path
 * @param {Stamp} expected
 */
function isAs(path, [size, seconds]) {
  const stamp = stampOf(path);
  return stamp !== undefined && stamp[0] === size && stamp[1] === seconds;
}
