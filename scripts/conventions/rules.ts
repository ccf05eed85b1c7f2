/**
 * The conventions that Biome (biome.json, *.grit), tsc, knip and dependency-cruiser (.dependency-cruiser.mjs) cannot express:
 * docs/decisions/0013-kept-tools.md has the reasons.
 */
import { parseSync, Visitor } from 'oxc-parser';
import { isLicensed } from './licences.ts';
import { brokenReferences, type Place, type Tree } from './references.ts';

/** `message` begins with the name of the rule. */
type Fault = { path: string; line: number; message: string };

const TEST = /^test\/|\.(test|contract)\.ts$/;
/** Allowed is skipIf, with the peer that is missing. */
const SKIPPED = /\b(?:it|test|describe)(?:\.\w+)*\.(?:only|skip|todo)\b/g;
const UNFINISHED = /\b(TO[D]O|FIX[M]E|XX[X]|HAC[K])\b/g;
const MACHINE_PATH = /(?<![\w.~-])\/(home|Users|root|work|workspace)\/\w+/g;
const MIGRATION = /^src\/platform\/database\/migrations\/(?<number>\d{4})-[^/]+\.sql$/;
/** Codecs and machines: by their name, or because they say so at their head. */
const PURE =
  /^drivers\/.*\/(messages|topics|frame|registers|scripts)\.ts$|^drivers\/.*\/protocol\/|^src\/.*\/machine\.ts$/;
const SAYS_PURE = /^\/\*\*(?:(?!\*\/)[\s\S])*\bPure\b/;
const MAY_BE_PURE = /^(src(?!\/console\/)|drivers)\//;
const IMPURE_MODULE = /(?<=\b(?:from|import\(?)\s?')node:(?!(?:crypto|util)')[\w/]+/g;
/** A time that is given may be written down. */
const IMPURE_CODE =
  /(?<![.\w])(Date(?!\([^()]+\)\.toISOString\()|Promise|async|await|setTimeout|setInterval|setImmediate|console|log(?=\s*\.))\b/g;

export function check(tree: Tree): Fault[] {
  const faults = misnumbered(tree);
  for (const [path, text] of tree) {
    if (text === undefined) continue;
    const found = [...places(text, MACHINE_PATH, 'machine-path'), ...placesIn(path, text, tree)];
    for (const { offset, message } of found)
      faults.push({ path, line: text.slice(0, offset).split('\n').length, message });
  }
  return faults.toSorted((a, b) => a.path.localeCompare(b.path) || a.line - b.line);
}

function placesIn(path: string, text: string, tree: Tree): Place[] {
  if (path.endsWith('.md')) return brokenReferences(text, tree, path);
  if (path === 'package-lock.json') return refusedLicences(text);
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
  if (!isPure && !(TEST.test(path) && text.search(SKIPPED) >= 0)) return found;
  const code = text.split('');
  const blank = ({ start, end }: { start: number; end: number }) => void code.fill(' ', start, end);
  comments.forEach(blank);
  new Visitor({ Literal: blank, TemplateElement: blank }).visit(parsed.program);
  if (!isPure) return [...found, ...places(code.join(''), SKIPPED, 'skipped-test')];
  return [
    ...found,
    ...places(text, IMPURE_MODULE, 'pure-imports'),
    ...places(code.join(''), IMPURE_CODE, 'pure-code'),
  ];
}

/** A gap, or one number used by two branches that were merged: no database opens then. */
function misnumbered(tree: Tree): Fault[] {
  const paths = [...tree.keys()].filter((path) => MIGRATION.test(path)).toSorted();
  return paths.flatMap((path, index) =>
    Number(MIGRATION.exec(path)?.groups?.number) === index + 1
      ? []
      : [{ path, line: 1, message: `migration-number: this is the ${index + 1}th` }],
  );
}

/** Packages of the lock file whose licence is not on the list, or not said. */
function refusedLicences(text: string): Place[] {
  const { packages = {} } = JSON.parse(text) as {
    packages?: Record<string, { license?: string; dev?: boolean; link?: boolean }>;
  };
  return Object.entries(packages)
    .filter(([, { license = 'none', dev, link }]) => !link && !isLicensed(license, dev))
    .map(([name, { license = 'none' }]) => ({
      offset: Math.max(0, text.indexOf(`"${name}": {`)),
      message: `licence: that of ${name} is ${license}, which is not on the list of licences.ts`,
    }));
}

function places(text: string, pattern: RegExp, rule: string): Place[] {
  return [...text.matchAll(pattern)].map(({ index, 0: found }) => ({
    offset: index,
    message: `${rule}: ${found}`,
  }));
}
