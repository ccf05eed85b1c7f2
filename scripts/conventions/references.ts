/** Mentions of files and headings, in comments and in Markdown, that lead nowhere. */
import { posix } from 'node:path';

/** The project: path from its root → text; undefined for what is not text. */
export type Tree = ReadonlyMap<string, string | undefined>;
export type Place = { offset: number; message: string };

/** src/platform/clock.ts, docs/encoder-protocol.md: a file of this project, from its root. */
const FILE = /(?<![\w./@-])(?:src|drivers|scripts|test|config|docs|systemd)\/[\w./-]*\.\w+(?![\w/])/g;
/** docs/encoder-protocol.md, Messages: a heading of that file, or its beginning. */
const HEADING = /\b(docs\/[\w./-]+\.md),\s+(?:\*\s+)?([A-Z][\w-]*)/g;
/** [text](target) */
const LINK = /\]\(([^)\s]+)\)/g;

/** `path` is given for a Markdown file, whose links start at its folder. */
export function brokenReferences(text: string, tree: Tree, path?: string): Place[] {
  const prose = text.replace(/\[[^\]\n]*\]\([^)\n]*\)/g, (link) => ' '.repeat(link.length));
  const links = path === undefined ? [] : [...text.matchAll(LINK)];
  return [
    ...[...prose.matchAll(FILE)].map(
      ({ index, 0: file }) => [index, !tree.has(file) && `no ${file}`] as const,
    ),
    ...[...text.matchAll(HEADING)].map(({ index, 1: file = '', 2: words = '' }) => {
      const isThere = !tree.has(file) || headingsOf(tree.get(file)).some((each) => each.startsWith(words));
      return [index, !isThere && `no heading ${words} in ${file}`] as const;
    }),
    ...links.map(({ index, 1: to = '' }) => [index, isBroken(to, tree, path ?? '') && `no ${to}`] as const),
  ].flatMap(([offset, fault]) =>
    fault === false ? [] : [{ offset, message: `reference: there is ${fault}` }],
  );
}

function isBroken(target: string, tree: Tree, path: string): boolean {
  if (/^[a-z]+:/.test(target)) return false;
  const [name = '', anchor] = target.split('#');
  const file = name === '' ? path : posix.join(posix.dirname(path), name);
  const isFolder = [...tree.keys()].some((each) => each.startsWith(`${file.replace(/\/$/, '')}/`));
  if (!tree.has(file) && !isFolder) return true;
  return anchor !== undefined && !headingsOf(tree.get(file)).map(anchorOf).includes(anchor);
}

function headingsOf(markdown = ''): string[] {
  return [...markdown.matchAll(/^#+ +(.+?) *$/gm)].map(([, heading = '']) => heading);
}

/** As GitHub makes it: "Running it, daily" → running-it-daily. */
function anchorOf(heading: string): string {
  const kept = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '');
  return kept.replace(/\s/g, '-');
}
