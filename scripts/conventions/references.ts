/** Mentions of files and headings, in comments and in Markdown, that lead nowhere. */
import { posix } from 'node:path';

type Tree = ReadonlyMap<string, string | undefined>;

interface Place {
  offset: number;
  message: string;
}

/** src/platform/clock.ts, docs/encoder-protocol.md: a file of this project, from its root. */
const FILE = /(?<![\w./@-])(?:src|drivers|scripts|test|config|docs|systemd)\/[\w./-]*\.\w+(?![\w/])/g;
/** docs/encoder-protocol.md, Messages: a heading of that file, or its beginning. */
const HEADING = /\b(docs\/[\w./-]+\.md),\s+(?:\*\s+)?([A-Z][\w-]*)/g;
/** [text](target) */
const LINK = /\]\(([^)\s]+)\)/g;

/** `path` is given for a Markdown file, whose links start at its folder. */
export function brokenReferences(text: string, tree: Tree, path?: string): Place[] {
  const prose = text.replace(/\[[^\]\n]*\]\([^)\n]*\)/g, (link) => ' '.repeat(link.length));
  const files = [...prose.matchAll(FILE)]
    .filter(([file]) => !tree.has(file))
    .map(({ index, 0: file }) => ({ offset: index, message: `there is no ${file}` }));
  const headings = [...text.matchAll(HEADING)]
    .filter(([, file = '', words = '']) => tree.has(file) && !hasHeading(tree.get(file), words))
    .map(({ index, 1: file, 2: words }) => ({ offset: index, message: `${file} has no heading ${words}` }));
  return [...files, ...headings, ...(path === undefined ? [] : brokenLinks(text, tree, path))];
}

function hasHeading(markdown: string | undefined, words: string): boolean {
  return headingsOf(markdown).some((heading) => heading.startsWith(words));
}

function headingsOf(markdown = ''): string[] {
  return [...markdown.matchAll(/^#+ +(.+?) *$/gm)].map(([, heading = '']) => heading);
}

function brokenLinks(text: string, tree: Tree, path: string): Place[] {
  return [...text.matchAll(LINK)].flatMap(({ index, 1: target = '' }) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [name = '', anchor] = target.split('#');
    const file = name === '' ? path : posix.join(posix.dirname(path), name);
    const isFolder = [...tree.keys()].some((each) => each.startsWith(`${file.replace(/\/$/, '')}/`));
    if (!tree.has(file) && !isFolder) return [{ offset: index, message: `the link ${target} leads nowhere` }];
    const anchors = headingsOf(tree.get(file)).map(anchorOf);
    if (anchor === undefined || anchors.includes(anchor)) return [];
    return [{ offset: index, message: `${file} has no heading for #${anchor}` }];
  });
}

/** As GitHub makes it: "Running it, daily" → running-it-daily. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}
