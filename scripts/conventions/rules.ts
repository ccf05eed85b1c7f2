/**
 * The conventions that Biome and tsc cannot check, as one table. A rule looks at one file, in the knowledge of all of
 * them, and gives the places where the file breaks it.
 */
import { posix } from 'node:path';
import { isLicensed } from './licences.ts';
import { brokenReferences } from './references.ts';
import { type Import, lineOf, parseSource, type Source } from './source.ts';

/** The project: path from its root → text; undefined for what is not text. */
export type Tree = ReadonlyMap<string, string | undefined>;

export interface Fault {
  path: string;
  line: number;
  rule: string;
  message: string;
}

interface Place {
  offset: number;
  message: string;
}

interface Project {
  tree: Tree;
  sources: ReadonlyMap<string, Source>;
}

interface Rule {
  name: string;
  /** Which files it is about. */
  applies(path: string): boolean;
  find(source: Source, project: Project): Place[];
}

/** The rooms of src, from the ground up: a file imports from its own room and from those below it. */
const ROOMS = ['platform', 'services', 'resources', 'app', 'cli'];
/** Within these rooms a folder imports of another one types only, and only of one that stands before it here. */
const SLICES = [
  ...['audit', 'events', 'actuations', 'reconcile', 'jobs', 'catalogue'].map((name) => `services/${name}`),
  ...['pki', 'auth', 'backup', 'status', 'metrics'].map((name) => `services/${name}`),
  ...['encoders', 'writes', 'networks', 'zgates', 'rs485', 'doors', 'access'].map(
    (name) => `resources/${name}`,
  ),
  'resources/site-import',
];
const PROGRAMS = ['src/main.ts', 'src/platform/field/host/host.ts'];
const CLOCK = 'src/platform/clock.ts';
/** Schemas are everywhere. */
const EVERYWHERE = ['zod', '@hono/zod-openapi'];

const isTypeScript = (path: string) => path.endsWith('.ts');
const isTest = (path: string) => isTypeScript(path) && TEST.test(path);
const TEST = /^test\/|\.(test|contract)\.ts$/;
/** Programs for Node: the console runs in a browser. */
const isProduct = (path: string) =>
  isTypeScript(path) && /^(src|drivers)\//.test(path) && !path.startsWith('src/console/') && !isTest(path);
const PURE =
  /^drivers\/.*\/(messages|topics|frame|registers|scripts)\.ts$|^drivers\/.*\/protocol\/|^src\/.*\/machine\.ts$/;
const SAYS_PURE = /^\/\*\*(?:(?!\*\/)[\s\S])*\bPure\b/;
/** By their name, or because they say so at their head. */
const isPure = ({ path, text }: Source) => PURE.test(path) || SAYS_PURE.test(text);

const IMPURE_MODULE = /^node:(?!(crypto|util)$)/;
/** A time that is given may be written down. */
const IMPURE_CODE =
  /(?<![.\w])(Date(?!\([^()]+\)\.toISOString\()|Promise|async|await|setTimeout|setInterval|setImmediate|console|log(?=\s*\.))\b/g;

const RULES: Rule[] = [
  {
    name: 'drivers-apart',
    applies: (path) => path.startsWith('drivers/') && isProduct(path),
    find: importing((path) => path.startsWith('src/'), 'a driver imports nothing of src'),
  },
  {
    name: 'pure-imports',
    applies: isProduct,
    find: (source) =>
      source.imports
        .filter(({ specifier }) => isPure(source) && IMPURE_MODULE.test(specifier))
        .map(at((specifier) => `codecs and machines are pure: no ${specifier}`)),
  },
  {
    name: 'pure-code',
    applies: isProduct,
    find: (source) =>
      isPure(source)
        ? places(source.code, IMPURE_CODE, (found) => `codecs and machines are pure: no ${found}`)
        : [],
  },
  { name: 'one-importer', applies: isProduct, find: furtherImporters },
  {
    name: 'downwards',
    applies: (path) => isProduct(path) && path.startsWith('src/'),
    find: ({ path, imports }) =>
      imports.flatMap(({ path: target, typeOnly, offset, specifier }) => {
        const message = upwards(path, target ?? '', typeOnly);
        return message === undefined ? [] : [{ offset, message: `${specifier}: ${message}` }];
      }),
  },
  {
    name: 'process',
    applies: (path) => isProduct(path) && !PROGRAMS.includes(path),
    find: (source) => [
      ...containing(
        /(?<![.\w])process\b(?!\s*[:(])/g,
        () => `process is for ${PROGRAMS.join(' and ')}`,
      )(source),
      ...source.imports
        .filter(({ specifier }) => specifier === 'node:process' && source.path !== CLOCK)
        .map(at(() => `process is for ${PROGRAMS.join(' and ')}`)),
    ],
  },
  {
    name: 'time',
    applies: (path) => isProduct(path) && path !== CLOCK,
    find: (source) => [
      ...containing(
        /(?<![.\w])(setTimeout|setInterval)\b|\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b|\bMath\.random\(|\bAbortSignal\.timeout\b/g,
        (found) => `${found}: take a Clock (${CLOCK})`,
      )(source),
      ...source.imports
        .filter(({ specifier }) => specifier.startsWith('node:timers'))
        .map(at((specifier) => `${specifier}: take a Clock (${CLOCK})`)),
    ],
  },
  { name: 'spread-literal', applies: isTypeScript, find: spreadLiterals },
  {
    name: 'unfinished',
    applies: isTypeScript,
    find: ({ comments }) =>
      places(comments, /\b(TO[D]O|FIX[M]E|XX[X]|HAC[K])\b/g, (found) => `${found}: do it, or open an issue`),
  },
  {
    name: 'skipped-test',
    applies: isTest,
    find: containing(
      /\b(?:it|test|describe)(?:\.\w+)*\.(?:only|skip|todo)\b/g,
      (found) => `${found}: only skipIf, with the peer that is missing`,
    ),
  },
  {
    name: 'reference',
    applies: (path) => isTypeScript(path) && !path.startsWith('scripts/conventions/'),
    find: ({ comments }, { tree }) => brokenReferences(comments, tree),
  },
];

/** Rules for every text, whatever its language. */
const MACHINE_PATH = /(?<![\w.~-])\/(home|Users|root|work|workspace)\/\w+/g;

export function check(tree: Tree): Fault[] {
  const project = projectOf(tree);
  const faults: Fault[] = misnumbered(tree);
  for (const [path, text] of tree) {
    if (text === undefined) continue;
    const add = (rule: string) => (place: Place) =>
      faults.push({ path, line: lineOf(text, place.offset), rule, message: place.message });
    places(text, MACHINE_PATH, (found) => `${found} is a path of one machine`).forEach(add('machine-path'));
    if (path.endsWith('.md')) brokenReferences(text, tree, path).forEach(add('reference'));
    if (path === 'package-lock.json') refusedLicences(text).forEach(add('licence'));
    const source = project.sources.get(path);
    if (!source) continue;
    for (const rule of RULES) if (rule.applies(path)) rule.find(source, project).forEach(add(rule.name));
  }
  return faults.toSorted((a, b) => a.path.localeCompare(b.path) || a.line - b.line);
}

function projectOf(tree: Tree): Project {
  const sources = new Map<string, Source>();
  for (const [path, text] of tree)
    if (isTypeScript(path) && text !== undefined) sources.set(path, parseSource(path, text));
  return { tree, sources };
}

/** Why an import is not allowed by the order of rooms and slices; undefined: it is. */
function upwards(path: string, target: string, typeOnly: boolean): string | undefined {
  const [from, to] = [path, target].map((each) => ROOMS.indexOf(each.split('/')[1] ?? ''));
  if (from === undefined || to === undefined || from < 0 || !target.startsWith('src/')) return undefined;
  if (to > from) return `${ROOMS[from]} stands below ${ROOMS[to]}`;
  const [slice, other] = [path, target].map((each) =>
    SLICES.findIndex((name) => each.startsWith(`src/${name}/`)),
  );
  if (slice === undefined || other === undefined || from !== to || slice === other) return undefined;
  if (other > slice) return `${SLICES[slice]} stands below ${SLICES[other]}`;
  // The body of a site's file is made of the sections that the resources declare.
  const composes = SLICES[slice] === 'resources/site-import' && target.endsWith('/site-entry.ts');
  return typeOnly || composes ? undefined : 'of another slice only types are imported';
}

/** A library belongs to one file; others of its folder may import its types. */
function furtherImporters({ path, imports }: Source, { sources }: Project): Place[] {
  return imports.flatMap(({ specifier, offset, typeOnly }) => {
    const library = libraryOf(specifier);
    if (library === undefined || EVERYWHERE.includes(library)) return [];
    const owner = [...sources.values()]
      .filter((source) => isProduct(source.path))
      .filter((source) => source.imports.some((one) => !one.typeOnly && libraryOf(one.specifier) === library))
      .map((source) => source.path)
      .toSorted()[0];
    const neighbour = owner !== undefined && posix.dirname(owner) === posix.dirname(path);
    if (owner === path || (typeOnly && (neighbour || owner === undefined))) return [];
    return [{ offset, message: `${library} is imported by ${owner} already` }];
  });
}

/** hono of hono/cors, @a/b of @a/b/c. */
function libraryOf(specifier: string): string | undefined {
  if (/^(\.|node:)/.test(specifier)) return undefined;
  const [scope = '', name = ''] = specifier.split('/');
  return scope.startsWith('@') ? `${scope}/${name}` : scope;
}

/** `...{ a, b }`, which saves lines and nothing else. In `...(x && { a })` the literal is not what is spread. */
function spreadLiterals({ code }: Source): Place[] {
  const message = 'a literal is spread into a literal: write its properties plainly';
  return [...code.matchAll(/\.\.\.[\s(]*\{/g)]
    .filter(({ index, 0: opening }) => {
      const next = code.slice(endOfBraces(code, index + opening.length)).replace(/^[\s)]+/, '');
      // Something else is spread where the literal goes on: `...{ a, b }[name]`.
      return /^(?:[,}]|as\b|satisfies\b)/.test(next);
    })
    .map(({ index }) => ({ offset: index, message }));
}

/** Where braces end that are open at an offset; in code, which has no strings and no comments. */
function endOfBraces(code: string, offset: number): number {
  let at = offset;
  for (let depth = 1; depth > 0 && at < code.length; at += 1) {
    if (code[at] === '{') depth += 1;
    if (code[at] === '}') depth -= 1;
  }
  return at;
}

function importing(forbidden: (path: string) => boolean, message: string): Rule['find'] {
  return ({ imports }) =>
    imports
      .filter(({ path }) => path !== undefined && forbidden(path))
      .map(at((specifier) => `${message}: ${specifier}`));
}

function containing(pattern: RegExp, message: (found: string) => string): (source: Source) => Place[] {
  return ({ code }) => places(code, pattern, message);
}

function at(message: (specifier: string) => string): (found: Import) => Place {
  return ({ offset, specifier }) => ({ offset, message: message(specifier) });
}

const MIGRATION = /^src\/platform\/database\/migrations\/(?<number>\d{4})-[^/]+\.sql$/;

/** A gap, or one number used by two branches that were merged: no database opens then. */
function misnumbered(tree: Tree): Fault[] {
  const rule = 'migration-number';
  const numbered = [...tree.keys()].toSorted().flatMap((path) => {
    const number = MIGRATION.exec(path)?.groups?.number;
    return number === undefined ? [] : [{ path, number: Number(number) }];
  });
  return numbered.flatMap(({ path, number }, index) => {
    if (number === index + 1) return [];
    return [{ path, line: 1, rule, message: `the migrations are numbered in order: this is ${index + 1}` }];
  });
}

/** Packages of the lock file whose licence is not on the list, or not said. */
function refusedLicences(text: string): Place[] {
  const { packages = {} } = JSON.parse(text) as {
    packages?: Record<string, { license?: string; dev?: boolean; link?: boolean }>;
  };
  return Object.entries(packages).flatMap(([name, { license = 'none', dev = false, link = false }]) => {
    if (link || isLicensed(license, dev)) return [];
    const message = `the licence of ${name} is ${license}, which is not on the list in scripts/conventions/licences.ts`;
    return [{ offset: Math.max(0, text.indexOf(`"${name}": {`)), message }];
  });
}

function places(text: string, pattern: RegExp, message: (found: string) => string): Place[] {
  return [...text.matchAll(pattern)].map((found) => ({ offset: found.index, message: message(found[0]) }));
}
