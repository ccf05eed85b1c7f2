/**
 * The conventions that Biome (biome.json, *.grit), tsc, knip and dependency-cruiser (.dependency-cruiser.mjs) cannot express:
 * docs/decisions/0013-kept-tools.md has the reasons.
 */
import { parseSync, Visitor } from 'oxc-parser';
import { isLicensed } from './licences.ts';
import { brokenReferences, type Place, type Tree } from './references.ts';

const TEST = /^test\/|\.test\.ts$/;
const UNFINISHED = /\b(TO[D]O|FIX[M]E|XX[X]|HAC[K])\b/g;
const MACHINE_PATH = /(?<![\w.~-])\/(home|Users|root|work|workspace)\/\w+/g;
/** Codecs and machines: by their name, or because they say so at their head. */
const PURE =
  /^drivers\/.*\/(messages|topics|frame|registers|scripts)\.ts$|^drivers\/.*\/protocol\/|^src\/.*\/machine\.ts$/;
const SAYS_PURE = /^\/\*\*(?:(?!\*\/)[\s\S])*\bPure\b/;
const MAY_BE_PURE = /^(src(?!\/console\/)|drivers)\//;
const IMPURE_MODULE = /(?<=\b(?:from|import\(?)\s?')node:(?!(?:crypto|util)')[\w/]+/g;
/** A time that is given may be written down. */
const IMPURE_CODE =
  /(?<![.\w])(Date(?!\([^()]+\)\.toISOString\()|Promise|async|await|setTimeout|setInterval|setImmediate|console|log(?=\s*\.))\b/g;

/** `message` begins with the name of the rule. */
export function check(tree: Tree): { path: string; line: number; message: string }[] {
  const files = [...tree].toSorted(([a], [b]) => a.localeCompare(b));
  return files.flatMap(([path, text = '']) =>
    [...places(text, MACHINE_PATH, 'machine-path'), ...placesIn(path, text, tree)]
      .toSorted((a, b) => a.offset - b.offset)
      .map(({ offset, message }) => ({ path, line: text.slice(0, offset).split('\n').length, message })),
  );
}

function placesIn(path: string, text: string, tree: Tree): Place[] {
  if (path.endsWith('.md')) return brokenReferences(text, tree, path);
  if (path === 'package-lock.json') return faultsOfLock(text);
  if (!path.endsWith('.ts')) return [];
  const parsed = parseSync(path, text);
  const { comments } = parsed;
  const found = comments.flatMap(({ start, value }) =>
    [...brokenReferences(value, tree), ...places(value, UNFINISHED, 'unfinished')].map(
      ({ offset, message }) => ({ offset: start + 2 + offset, message }),
    ),
  );
  const isPure = MAY_BE_PURE.test(path) && !TEST.test(path) && (PURE.test(path) || SAYS_PURE.test(text));
  // To walk a file takes ten times what it takes to parse it.
  if (!isPure) return found;
  const code = text.split('');
  const blank = ({ start, end }: { start: number; end: number }) => void code.fill(' ', start, end);
  comments.forEach(blank);
  new Visitor({ Literal: blank, TemplateElement: blank }).visit(parsed.program);
  return [
    ...found,
    ...places(text, IMPURE_MODULE, 'pure-imports'),
    ...places(code.join(''), IMPURE_CODE, 'pure-code'),
  ];
}

/** It has a binding.gyp beside what that makes: `npm ci` would ask for Python, make and the headers of Node.js all the same. */
const PREBUILT = 'node_modules/better-sqlite3';

/** Packages of the lock file whose licence is not on the list, or not said; and one that npm would build. */
function faultsOfLock(text: string): Place[] {
  const { packages = {} } = JSON.parse(text) as {
    packages?: Record<string, { license?: string; dev?: boolean; link?: boolean; gypfile?: boolean }>;
  };
  return Object.entries(packages).flatMap(([name, { license = 'none', dev, link, gypfile }]) =>
    [
      !link &&
        !isLicensed(license, dev) &&
        `licence: that of ${name} is ${license}, which is not on the list of licences.ts`,
      name === PREBUILT &&
        gypfile !== false &&
        `gypfile: write "gypfile": false into ${name} again, which npm install leaves out`,
    ].flatMap((message) => (message ? { offset: Math.max(0, text.indexOf(`"${name}": {`)), message } : [])),
  );
}

function places(text: string, pattern: RegExp, rule: string): Place[] {
  return [...text.matchAll(pattern)].map(({ index, 0: found }) => ({
    offset: index,
    message: `${rule}: ${found}`,
  }));
}
