/**
 * Reads a configuration file and explains every mistake in it at once, each with its place:
 *
 *     gatehouse.yaml:9:14: encoders.keepAlive: expected between 1s and 30s
 *        9 |   keepAlive: 2m
 *          |              ^
 *
 * YAML 1.2 without aliases, so that what is written is what is meant and a small file stays small. What a single
 * setting may be is src/config.ts; checks across settings and against the file system are src/config-checks.ts.
 */
import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import {
  type Document,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  parseDocument,
  visit,
} from 'yaml';
import { type Config, configJsonSchema, configSchema } from './config.ts';
import {
  contradictions,
  named,
  type Problem,
  reason,
  resolvePaths,
  soundPart,
  unreadableFiles,
} from './config-checks.ts';

/** A site's file has a few kilobytes; this is not one. Looking for names that are there twice takes time by its square. */
const FILE_MAX_BYTES = 64 * 1024;
/** Open collections at any place, as the parser counts them, two at most per level: settings have four levels. */
const NESTING_MAX = 32;
/** More would scroll the first ones away. */
const MISTAKES_SHOWN_MAX = 20;
/** Longest part of a line that is shown. */
const LINE_SHOWN_MAX = 100;
/** A message quotes what was written, which may be long. */
const MESSAGE_MAX = 500;
/** One mistake; line and column count from 1. */
export interface Mistake {
  line: number;
  column: number;
  /** Begins with the setting, such as `http.listen: …`. */
  message: string;
}

/** The configuration cannot be used. The message is for a terminal, several lines. */
export class ConfigError extends Error {
  readonly mistakes: Mistake[];
  constructor(message: string, mistakes: Mistake[] = [], options?: ErrorOptions) {
    super(message, options);
    this.name = 'ConfigError';
    this.mistakes = mistakes;
  }
}

export interface ReadOptions {
  /** Also check that the files the configuration names can be read. */
  checkFiles?: boolean;
}

/** Paths in the result are absolute. Throws ConfigError. */
export function readConfig(file: string, options: ReadOptions = {}): Config {
  return parseConfig(readText(file), file, options);
}

/** `file` is the name in messages, and its folder is what relative paths start from. */
export function parseConfig(text: string, file: string, options: ReadOptions = {}): Config {
  const source = parseYaml(text, file);
  const value: unknown = source.document.toJS() ?? {};
  const result = configSchema.safeParse(value);
  const problems = result.success ? [] : result.error.issues.flatMap(problemsOf);
  const { config, removed } = result.success
    ? { config: result.data, removed: [] }
    : soundPart(value, problems);
  if (config) {
    resolvePaths(config, dirname(resolve(file)));
    problems.push(...contradictions(config, removed));
    if (options.checkFiles) problems.push(...unreadableFiles(config));
  }
  const mistakes = [...source.duplicates, ...problems.map((problem) => placed(source, problem))];
  if (!config || mistakes.length > 0) throw explained(source, mistakes);
  return config;
}

function readText(file: string): string {
  try {
    const status = statSync(file);
    if (!status.isFile()) throw new Error('it is not a file');
    if (status.size > FILE_MAX_BYTES) throw new Error(`it has more than ${FILE_MAX_BYTES} bytes`);
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
  } catch (error) {
    throw new ConfigError(`cannot read the configuration ${file}: ${reason(error)}`, [], { cause: error });
  }
}

// ---- YAML

interface Source {
  file: string;
  text: string;
  lines: LineCounter;
  document: Document.Parsed;
  /** Names that are there twice; the last one counts. */
  duplicates: Mistake[];
}

/** What the library says in words for programmers. */
const SAID: Partial<Record<string, string>> = {
  DUPLICATE_KEY: 'this name is in the section twice: keep one of them',
  MULTIPLE_DOCS: 'a second document begins here: remove the "---", the file may hold one',
  NON_STRING_KEY: 'the name of a setting must be a word, no list, section or number',
};

/** Throws when it cannot be told what the settings are. */
function parseYaml(text: string, file: string): Source {
  const lines = new LineCounter();
  const options = { lineCounter: lines, prettyErrors: false, stringKeys: true, version: '1.2' } as const;
  const tooDeep = nestingFault(text);
  // The lines are still counted: up to there it is read.
  const document = parseDocument(text.slice(0, tooDeep), options);
  const source: Source = { file, text, lines, document, duplicates: [] };
  if (tooDeep !== undefined)
    throw explained(source, [mistake(source, tooDeep, 'this nests deeper than any setting')]);
  const mistakes: Mistake[] = [];
  for (const { code, pos, message } of [...document.errors, ...document.warnings]) {
    const kind = code === 'DUPLICATE_KEY' ? source.duplicates : mistakes;
    kind.push(mistake(source, pos[0], SAID[code] ?? message));
  }
  if (document.directives?.yaml.explicit && document.directives.yaml.version !== '1.2')
    mistakes.push(mistake(source, 0, 'only YAML 1.2 is understood: remove the %YAML line'));
  visit(document, {
    Alias(_key, alias) {
      mistakes.push(
        mistake(source, alias.range?.[0] ?? 0, 'aliases (*name) are not allowed: repeat the value'),
      );
    },
  });
  if (mistakes.length > 0) throw explained(source, [...source.duplicates, ...mistakes]);
  return source;
}

/** Where the text nests deeper than any setting: the composer of the library recurses, its parser does not. */
function nestingFault(text: string): number | undefined {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    for (const _token of parser.next(lexeme));
    if (parser.stack.length > NESTING_MAX) return parser.offset;
  }
  return undefined;
}

/** Offset of a setting in the text, or of the innermost section that would hold it. */
function offsetOf({ document }: Source, { path, place }: Problem): number {
  let node: unknown = document.contents;
  let name = 0;
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.findLast(({ key }) => isScalar(key) && key.value === step);
      if (!isScalar(pair?.key)) return name;
      name = pair.key.range?.[0] ?? name;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      name = rangeStart(node) ?? name;
    }
  }
  const empty = isScalar(node) && node.source === '';
  return place === 'key' || empty ? name : (rangeStart(node) ?? name);
}

function rangeStart(node: unknown): number | undefined {
  return (node as { range?: [number, number, number] } | null)?.range?.[0];
}

// ---- Explaining

type Issue = NonNullable<ReturnType<typeof configSchema.safeParse>['error']>['issues'][number];

function problemsOf(issue: Issue): Problem[] {
  if (issue.code === 'unrecognized_keys') {
    const known = knownSettings(issue.path);
    return issue.keys.map((key) => {
      const guess = nearest(key, known);
      const hint = guess ? `did you mean "${guess}"?` : `known here: ${known.join(', ')}`;
      return {
        path: [...issue.path, key],
        place: 'key',
        message: `unknown setting "${named([...issue.path, key])}" (${hint})`,
      };
    });
  }
  const message = issue.message
    .replace(/^Invalid (input|option): /, '')
    .replace(/, received undefined$/, '; it is missing')
    .replace(/, received null$/, '; it has no value');
  return [{ path: issue.path, message: `${named(issue.path) || 'the file'}: ${message}` }];
}

function knownSettings(path: PropertyKey[]): string[] {
  let schema = configJsonSchema() as { properties?: Record<string, unknown>; items?: unknown };
  for (const step of path) {
    const next = typeof step === 'number' ? schema.items : schema.properties?.[String(step)];
    schema = (next ?? {}) as typeof schema;
  }
  return Object.keys(schema.properties ?? {});
}

/** The known name a slip of the fingers away from `word`, if there is one. */
function nearest(word: string, known: string[]): string | undefined {
  const wanted = word.toLowerCase().slice(0, 64);
  const ranked = known
    .map((name) => ({ name, distance: editDistance(wanted, name.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0];
  return ranked && ranked.distance <= Math.max(2, ranked.name.length / 3) ? ranked.name : undefined;
}

/** Levenshtein: insertions, deletions and substitutions. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [row, letter] of [...a].entries()) {
    const current = [row + 1];
    for (const [column, other] of [...b].entries()) {
      const substituted = (previous[column] ?? 0) + (letter === other ? 0 : 1);
      current.push(Math.min(substituted, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    previous = current;
  }
  return previous.at(-1) ?? 0;
}

function placed(source: Source, problem: Problem): Mistake {
  return mistake(source, offsetOf(source, problem), problem.message);
}

function mistake({ lines }: Source, offset: number, message: string): Mistake {
  const { line, col } = lines.linePos(offset);
  return {
    line: Math.max(1, line),
    column: Math.max(1, col),
    message: printable(message.slice(0, MESSAGE_MAX)),
  };
}

/** Without control characters other than tabs, which would reach the terminal. */
function printable(text: string): string {
  return text.replace(/[^\P{Cc}\t]/gu, '?');
}

function explained({ file, text }: Source, mistakes: Mistake[]): ConfigError {
  const ordered = mistakes.toSorted((a, b) => a.line - b.line || a.column - b.column);
  const lines = text.split(/\r?\n/);
  const shown = ordered.slice(0, MISTAKES_SHOWN_MAX).map(({ line, column, message }) => {
    const start = Math.max(0, column - 1 - LINE_SHOWN_MAX / 2);
    const content = printable((lines[line - 1] ?? '').slice(start, start + LINE_SHOWN_MAX));
    const caret = `${content.slice(0, column - 1 - start).replace(/[^\t]/g, ' ')}^`;
    const margin = String(line).padStart(5);
    return `${file}:${line}:${column}: ${message}\n${margin} | ${content}\n${' '.repeat(5)} | ${caret}`;
  });
  const more = ordered.length - shown.length;
  if (more > 0) shown.push(`${file}: and ${more} more`);
  return new ConfigError(shown.join('\n'), ordered);
}
