/**
 * Reads a YAML file that a person wrote and explains every mistake in it at once, each with its place:
 *
 *     gatehouse.yaml:9:14: encoders.keepAlive: expected between 1s and 30s
 *        9 |   keepAlive: 2m
 *          |              ^
 *
 * YAML 1.2 without aliases, so that what is written is what is meant and a small file stays small. The two files there
 * are: the configuration (config-file.ts) and what `gatehouse import` takes (site-file.ts). Only where the text is no
 * YAML, so that the settings are unknown, are other mistakes not looked for.
 */
import {
  Composer,
  type Document,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Pair,
  Parser,
  parseDocument,
  stringify,
  visit,
  type YAMLMap,
} from 'yaml';
import type { z } from 'zod';
import { readRegularFile, reasonOf } from '../host/regular-file.ts';
import { isSayable, named, type Problem } from './problem.ts';
import { schemaProblems } from './schema-problems.ts';
import { type Placeholders, soundPart } from './sound-part.ts';

/** A file with more has one mistake that explains them. */
const MISTAKES_SHOWN_MAX = 100;
/** Longest part of a line that is shown. */
const LINE_SHOWN_MAX = 100;
/**
 * Characters of a line. The parser keeps tokens of a whole line at once: one of 4 MB took 13 s and 2 GB. A file is written by
 * people, or by a program that breaks lines.
 */
const LINE_MAX = 65_536;
/** A message quotes what was written, which may be long. */
const MESSAGE_MAX = 500;
/** Open collections at any place, as the parser counts them, two at most a level: the deepest setting has ten levels. */
const NESTING_MAX = 32;

/** The text of a file that says this. */
export function yamlText(value: object): string {
  // Lines are broken between entries alone: within a text no one would expect it.
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** One mistake; line and column count from 1. */
export interface Mistake {
  line: number;
  column: number;
  /** Begins with the setting, such as `http.listen: …`. */
  message: string;
}

/** The file cannot be used. The message has a line for each mistake, and nothing that is a value in the file: it goes into logs. */
export class FileError extends Error {
  readonly mistakes: Mistake[];
  /** The message, with the lines of the file: for the terminal of the person who may read it. One of them may hold a password. */
  readonly withLines: string;
  constructor(message: string, mistakes: Mistake[] = [], options?: ErrorOptions & { withLines?: string }) {
    super(message, options);
    this.name = 'FileError';
    this.mistakes = mistakes;
    this.withLines = options?.withLines ?? message;
  }
}

/** What a file may hold. */
export interface FileKind<Schema extends z.ZodType> {
  schema: Schema;
  /** For the names of settings that exist. */
  jsonSchema(): z.core.JSONSchema.BaseSchema;
  /** For what must be there and has a mistake (sound-part.ts). */
  placeholders: Placeholders;
  /** What the schema cannot see. Also called with the sound part of a file, when some settings have mistakes. */
  check(value: z.output<Schema>, part: 'whole' | 'sound'): Problem[];
}

/** A file that was understood, to say more about. */
export interface Parsed<Value> {
  value: Value;
  /** What to throw when something turns out to be wrong later. */
  failed(problems: Problem[]): FileError;
}

/** The text of a file. `what` it is, for messages, such as "the configuration". Throws FileError. */
export function readText(file: string, what: string, maxBytes: number): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(
      readRegularFile(file, { followLinks: true, maxBytes }),
    );
  } catch (error) {
    throw new FileError(`cannot read ${what} ${file}: ${reasonOf(error)}`, [], { cause: error });
  }
}

/** What can be made out of a text that has mistakes: undefined, or settings of which none is checked. */
export function roughlyParsed(text: string): unknown {
  try {
    return composed(text, new LineCounter()).documents[0]?.toJS();
  } catch {
    return undefined;
  }
}

/** `file` is the name in messages. Throws FileError. */
export function parseText<Schema extends z.ZodType>(
  text: string,
  file: string,
  { schema, jsonSchema, placeholders, check }: FileKind<Schema>,
): Parsed<z.output<Schema>> {
  refuseLongLine(text, file);
  const source = parseYaml(text, file);
  const written: unknown = source.document.toJS() ?? {};
  // A file is read once: zod would write a program for each part of the schema, and run it once.
  const { data, error } = schema.safeParse(written, { jitless: true });
  const value = data as z.output<Schema>;
  const problems: Problem[] = [];
  if (error) {
    const names = jsonSchema();
    problems.push(...schemaProblems(error.issues, names, written));
    const paths = problems.map(({ path }) => path);
    const sound = soundPart(written, paths, schema, placeholders);
    if (sound) {
      problems.push(...schemaProblems(sound.issues, names, written));
      problems.push(...sound.inFile(check(sound.value, 'sound')));
    }
  } else problems.push(...check(value, 'whole'));
  const mistakes = [...source.duplicates, ...problems.map((problem) => placed(source, problem))];
  if (mistakes.length > 0) throw explained(source, mistakes);
  const failed = (more: Problem[]) =>
    explained(
      source,
      more.map((problem) => placed(source, problem)),
    );
  return { value, failed };
}

function refuseLongLine(text: string, file: string): void {
  let line = 1;
  for (let from = 0; from < text.length; line += 1) {
    const end = text.indexOf('\n', from);
    const to = end === -1 ? text.length : end;
    if (to - from > LINE_MAX) {
      const message = `a line has more than ${LINE_MAX} characters: write each entry of a list on a line of its own`;
      throw new FileError(`${file}:${line}:1: ${message}`, [{ line, column: 1, message }]);
    }
    from = to + 1;
  }
}

// ---- YAML

interface Source {
  file: string;
  text: string;
  lines: LineCounter;
  document: Document.Parsed;
  /** Names that are in a section twice; the last one counts. */
  duplicates: Mistake[];
  /** The settings of a section by their names, for sections that were looked into. */
  settings: WeakMap<YAMLMap, Map<unknown, Pair>>;
}

/** What the library says in words for programmers, or with the text that it is about. */
const SAID: Partial<Record<string, string>> = {
  UNEXPECTED_TOKEN: 'this cannot stand here: look at the indentation, the quotes and the brackets before it',
  BAD_DQ_ESCAPE: 'a \\ that begins no escape: put the value in single quotes',
  TAG_RESOLVE_FAILED: 'a tag (!name) is not understood: remove it, or put the value in quotes',
  BAD_DIRECTIVE: 'a line that begins with % is not understood: remove it',
  BLOCK_AS_IMPLICIT_KEY:
    'a second ":" in one line: put the value in quotes, or what follows on a line of its own',
  NON_STRING_KEY: 'the name of a setting must be a word, no list, section or number',
};

/** Throws when the settings cannot be determined. */
function parseYaml(text: string, file: string): Source {
  const lines = new LineCounter();
  const { documents, tooDeep } = composed(text, lines);
  const [document, second] = documents;
  if (!document) throw new Error('the parser gave no document');
  const source: Source = { file, text, lines, document, duplicates: [], settings: new WeakMap() };
  if (tooDeep !== undefined)
    throw explained(source, [mistake(source, tooDeep, 'this nests deeper than any setting')]);
  const mistakes = [...document.errors, ...document.warnings].map(({ code, pos: [offset], message }) => {
    const opening = /closing ["']quote/.test(message) ? openingQuote(document, offset) : undefined;
    return opening === undefined
      ? mistake(source, offset, SAID[code] ?? message)
      : mistake(source, opening, 'a quote is opened here and never closed: close it');
  });
  if (second)
    mistakes.push(
      mistake(source, second.range[0], 'a second document begins here: remove the "---", there may be one'),
    );
  if (document.directives?.yaml.explicit && document.directives.yaml.version !== '1.2')
    mistakes.push(mistake(source, 0, 'only YAML 1.2 is understood: remove the %YAML line'));
  visit(document, {
    Alias(_key, alias) {
      const offset = rangeStart(alias) ?? 0;
      mistakes.push(mistake(source, offset, 'aliases (*name) are not allowed: repeat the value'));
    },
    Map: (_key, map) => void source.duplicates.push(...duplicates(source, map.items)),
  });
  if (mistakes.length > 0) throw explained(source, [...source.duplicates, ...mistakes]);
  return source;
}

/** Where the quoted text begins that runs on to this place, which may be the end of the file. */
function openingQuote(document: Document.Parsed, end: number): number | undefined {
  let opening: number | undefined;
  visit(document, {
    Scalar(_key, { type, range }) {
      const isQuoted = type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE';
      if (isQuoted && range && range[0] < end) opening = range[0];
    },
  });
  return opening;
}

/** Up to where the text nests too deep, if it does: the composer of the library recurses, its parser does not. */
function composed(text: string, lines: LineCounter) {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  let tooDeep: number | undefined;
  function* tokens() {
    for (const lexeme of new Lexer().lex(text)) {
      yield* parser.next(lexeme);
      if (parser.stack.length <= NESTING_MAX) continue;
      tooDeep = parser.offset;
      return;
    }
    yield* parser.end();
  }
  // Names that are twice in one section are found below, in time that grows with their number and not with its square.
  const composer = new Composer({ stringKeys: true, uniqueKeys: false, version: '1.2' });
  const documents = [...composer.compose(tokens(), true, text.length)] as Document.Parsed[];
  return { documents, tooDeep };
}

function duplicates(source: Source, pairs: readonly { key: unknown }[]): Mistake[] {
  const first = new Map<unknown, number>();
  return pairs.flatMap(({ key }) => {
    if (!isScalar(key)) return [];
    const offset = rangeStart(key) ?? 0;
    const before = first.get(key.value);
    if (before === undefined) {
      first.set(key.value, offset);
      return [];
    }
    const { line } = source.lines.linePos(before);
    const name = String(key.value);
    const message = `${isSayable(name) ? `"${name}"` : 'this name'} is there twice, before in line ${line}: keep one of them`;
    return [mistake(source, offset, message)];
  });
}

/** Offset of a setting in the text, or of the innermost section that would hold it. */
function offsetOf(source: Source, { path, place }: Pick<Problem, 'path' | 'place'>): number {
  let node: unknown = source.document.contents;
  let name = 0;
  for (const step of path) {
    if (isMap(node)) {
      const pair = settingsOf(source, node).get(step);
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

function settingsOf({ settings }: Source, section: YAMLMap): Map<unknown, Pair> {
  const known = settings.get(section);
  if (known) return known;
  const found = new Map(
    section.items.flatMap((pair) => (isScalar(pair.key) ? [[pair.key.value, pair]] : [])),
  );
  settings.set(section, found);
  return found;
}

function rangeStart(node: unknown): number | undefined {
  return (node as { range?: [number, number, number] } | null)?.range?.[0];
}

// ---- Explaining

function placed(source: Source, problem: Problem): Mistake {
  const { path, place, message, see } = problem;
  const setting = place === 'key' ? '' : `${named(path) || 'the file'}: `;
  const other = see ? `: see line ${source.lines.linePos(offsetOf(source, { path: see })).line}` : '';
  return mistake(source, offsetOf(source, problem), `${setting}${message}${other}`);
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

function explained({ file, text }: Source, mistakes: Mistake[]): FileError {
  const ordered = mistakes.toSorted((a, b) => a.line - b.line || a.column - b.column);
  const lines = text.split(/\r?\n/);
  const shown = ordered.slice(0, MISTAKES_SHOWN_MAX);
  const more = ordered.length - shown.length;
  const rest = more > 0 ? [`${file}: and ${more} more`] : [];
  const named = shown.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`);
  const withLines = shown.map(({ line, column }, index) => {
    const start = Math.max(0, column - 1 - LINE_SHOWN_MAX / 2);
    const content = printable((lines[line - 1] ?? '').slice(start, start + LINE_SHOWN_MAX));
    const caret = `${content.slice(0, column - 1 - start).replace(/[^\t]/g, ' ')}^`;
    const margin = String(line).padStart(5);
    return `${named[index]}\n${margin} | ${content}\n${' '.repeat(5)} | ${caret}`;
  });
  return new FileError([...named, ...rest].join('\n'), ordered, {
    withLines: [...withLines, ...rest].join('\n'),
  });
}

export interface Edit {
  path: readonly (string | number)[];
  /** Plain data. */
  value: unknown;
}

/**
 * Changes single values; comments, order and blank lines of the rest stay. `text` has been parsed without a mistake before. An empty
 * list or mapping in the way is written in
 * lines of its own.
 */
export function edited(text: string, edits: readonly Edit[]): string {
  const document = parseDocument(text);
  for (const { path, value } of edits) {
    for (let depth = 1; depth < path.length; depth += 1) {
      const above = document.getIn(path.slice(0, depth), true);
      if (isSeq(above) && above.items.length === 0) above.flow = false;
    }
    document.setIn(path, document.createNode(value));
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}
