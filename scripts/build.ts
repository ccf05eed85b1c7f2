/**
 * `npm run build` makes dist: the pages of the console, and one bundle of each program that a site runs, of its modules and
 * those of its libraries. Loading a few large files takes half the time of six hundred small ones. A package has the bundles;
 * a checkout runs its sources (src/start.js). `npm ci` makes the pages alone. A daemon that runs while its bundle is
 * replaced cannot load the rest of it any more: install beside it, as for any upgrade.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import type { Plugin } from 'rolldown';
import { consoleSettings } from './console.ts';

const PROGRAMS = { main: 'src/main.ts', host: 'src/platform/field/host/host.ts' };
/** From a bundle to the root of the project. */
const UP = '../..';

/** Bundles both programs, by default into dist. In between there is no bundle; what else is there stays, such as the console. */
export async function build(root: string, dist = join(root, 'dist')): Promise<void> {
  const draft = mkdtempSync(join(root, 'node_modules', '.dist-'));
  const old = mkdtempSync(join(root, 'node_modules', '.dist-'));
  try {
    for (const [program, entry] of Object.entries(PROGRAMS)) await bundle(root, entry, join(draft, program));
    mkdirSync(dist, { recursive: true });
    for (const program of Object.keys(PROGRAMS)) {
      if (existsSync(join(dist, program))) renameSync(join(dist, program), join(old, program));
      renameSync(join(draft, program), join(dist, program));
    }
  } finally {
    for (const folder of [draft, old]) rmSync(folder, { recursive: true, force: true });
  }
}

/** By default into dist/console. */
export async function buildConsole(root: string, outDir = join(root, 'dist/console')): Promise<void> {
  const { build } = await import('vite');
  const settings = consoleSettings(root);
  await build({ ...settings, build: { ...settings.build, outDir } });
}

/** What `gatehouse simulate` starts, for a package; in a checkout its sources run. */
export const buildSimulators = (root: string, folder: string): Promise<void> =>
  bundle(root, 'test/simulators/simulate.ts', folder);

/** Of one program, of its modules and those of its libraries. */
export async function bundle(root: string, entry: string, folder: string): Promise<void> {
  const { rolldown } = await import('rolldown');
  await using made = await rolldown({
    cwd: root,
    input: entry,
    platform: 'node',
    plugins: [folders(root), builtins],
  });
  const entryFileNames = '[name].js';
  await made.write({
    dir: folder,
    format: 'es',
    entryFileNames,
    comments: { legal: false, jsdoc: false, annotation: false },
    // For the stack traces of the log (src/platform/source-lines.ts).
    sourcemap: true,
    sourcemapExcludeSources: true,
    // From dist, where the draft will be.
    sourcemapPathTransform: (source, map) =>
      relative(join(root, 'dist', basename(folder)), join(dirname(map), source)),
  });
}

/** A module finds what lies beside it, such as migrations and native code, where it was and not beside the bundle. */
function folders(root: string): Plugin {
  return {
    name: 'folders',
    transform: {
      filter: { code: /\b(?:import\.meta\.dirname|__dirname)\b/ },
      handler(code, id) {
        const there = JSON.stringify(`/${UP}/${relative(root, dirname(id))}`);
        const name = /\b(?:import\.meta\.dirname|__dirname)\b/g;
        return { map: null, code: code.replaceAll(name, `(import.meta.dirname + ${there})`) };
      },
    },
  };
}

/**
 * For @hono/node-server, which asks of each request whether it came by HTTP/2: none does (src/platform/http/server.ts), and to
 * load node:http2 takes 20 ms of a start.
 */
const HTTP1_ALONE = '{ Http2ServerRequest: class {}, constants: {} }';

/**
 * An import of a module of Node's reads all that it exports, and so loads what no one asked for: the streams of node:fs, the
 * WebSocket client behind node:http. 10 ms in all.
 */
const builtins: Plugin = {
  name: 'builtins',
  // Line by line, so that the source maps stay right but for the columns of these lines.
  renderChunk: (code) => ({
    map: null,
    code: code.replaceAll(
      /^import (?:(?:\* as )?([\w$]+)(?:, )?)?(?:\{(.*)\} )?from "(.*)";$/gm,
      (line, whole: string | undefined, names: string | undefined, id: string) => {
        if (!isBuiltin(id)) return line;
        const taken = [whole, names && `{${names.replaceAll(' as ', ': ')}}`].filter(Boolean);
        const from = id === 'node:http2' ? HTTP1_ALONE : `process.getBuiltinModule("${id}")`;
        return taken.map((name) => `const ${name} = ${from};`).join(' ');
      },
    ),
  }),
};

const ROOT = join(import.meta.dirname, '..');
if (import.meta.main) {
  if (existsSync(join(ROOT, 'node_modules/rolldown'))) {
    if (!process.argv.includes('--console')) await build(ROOT);
    await buildConsole(ROOT);
  } else console.log('the console is not built, for want of rolldown (npm ci without --omit=dev)');
}
