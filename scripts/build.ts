/**
 * Makes dist: the pages of the console, and one bundle of each program that a site runs, of its modules and those of its
 * libraries. Loading a few large files takes half the time of six hundred small ones. Nothing needs it: without it, or with one that is not of the sources
 * as they are (src/built.js), the sources run. A daemon that runs while its bundle is replaced cannot load the rest of it
 * any more: install beside it, as for any upgrade.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Plugin } from 'rolldown';
import { stampOf } from '../src/built.js';
import { consoleSettings } from './console.ts';

const PROGRAMS = { main: 'src/main.ts', host: 'src/platform/field/host/host.ts' };
/** Where a new file may change what a program is. */
const SOURCES = ['src', 'drivers'];
/** What else decides what is in a bundle. */
const OTHER_SOURCES = ['package.json', 'package-lock.json', 'scripts/build.ts'];
/** From a bundle to the root of the project. */
const UP = '../..';
/** A file that is changed twice within a second keeps its stamp: none is believed so soon. */
const SETTLE_MS = 2_000;

type Stamps = Map<string, [size: number, seconds: number]>;

export async function build(root: string): Promise<void> {
  const stamps = await settledStamps(root);
  const draft = mkdtempSync(join(root, 'node_modules', '.dist-'));
  try {
    for (const [program, entry] of Object.entries(PROGRAMS)) {
      const folder = join(draft, program);
      const modules = await bundle(root, entry, folder);
      const manifest = manifestOf(root, modules, stamps);
      for (const file of readdirSync(folder).filter((name) => !name.endsWith('.map')))
        manifest[`dist/${program}/${file}`] = known(stampOf(join(folder, file)), file);
      writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
    }
    replace(root, draft);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** By default into dist/console. */
export async function buildConsole(root: string, outDir = join(root, 'dist/console')): Promise<void> {
  const { build } = await import('vite');
  const settings = consoleSettings(root);
  await build({ ...settings, build: { ...settings.build, outDir } });
}

/** Returns the files that went into it, from the root. */
async function bundle(root: string, entry: string, folder: string): Promise<string[]> {
  const { rolldown } = await import('rolldown');
  const modules: string[] = [];
  const collect: Plugin = {
    name: 'collect',
    buildEnd() {
      modules.push(...this.getModuleIds());
    },
  };
  await using made = await rolldown({
    cwd: root,
    input: entry,
    platform: 'node',
    plugins: [folders(root), builtins, collect],
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
  return modules.filter((id) => existsSync(id)).map((id) => relative(root, id));
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
        return taken.map((name) => `const ${name} = process.getBuiltinModule("${id}");`).join(' ');
      },
    ),
  }),
};

/** Of all sources, once the last change of any is long enough ago. */
async function settledStamps(root: string): Promise<Stamps> {
  for (;;) {
    const stamps: Stamps = new Map();
    for (const path of [...SOURCES.flatMap((folder) => pathsIn(root, folder)), ...OTHER_SOURCES])
      stamps.set(path, known(stampOf(join(root, path)), path));
    const isRecent = [...stamps.values()].some(([, at]) => Math.abs(Date.now() - at * 1_000) < SETTLE_MS);
    if (!isRecent) return stamps;
    await sleep(SETTLE_MS);
  }
}

function pathsIn(root: string, folder: string): string[] {
  return [
    folder,
    ...readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, `${name}`)),
  ];
}

function manifestOf(root: string, modules: string[], stamps: Stamps): Record<string, [number, number]> {
  const own = modules.filter((path) => !path.startsWith('node_modules/'));
  const all = [...stamps.keys()].filter((path) => statSync(join(root, path)).isDirectory());
  return Object.fromEntries(
    [...all, ...OTHER_SOURCES, ...own].map((path) => [path, known(stamps.get(path), path)]),
  );
}

function known<T>(stamp: T | undefined, path: string): T {
  if (stamp === undefined) throw new Error(`${path} is not among the sources, or went away`);
  return stamp;
}

/** In between there is none: the sources run. What else is in dist stays, such as the console, which a gateway may be about to read. */
function replace(root: string, draft: string): void {
  const old = mkdtempSync(join(root, 'node_modules', '.dist-'));
  const dist = join(root, 'dist');
  mkdirSync(dist, { recursive: true });
  const programs = Object.keys(PROGRAMS);
  for (const program of programs)
    if (existsSync(join(dist, program))) renameSync(join(dist, program), join(old, program));
  for (const program of programs) renameSync(join(draft, program), join(dist, program));
  rmSync(old, { recursive: true });
}

const ROOT = join(import.meta.dirname, '..');
if (import.meta.main) {
  if (existsSync(join(ROOT, 'node_modules/rolldown'))) {
    await build(ROOT);
    await buildConsole(ROOT);
  } else
    console.log('dist is not built, for want of rolldown (npm ci without --omit=dev): the sources will run');
}
