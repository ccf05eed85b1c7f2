/**
 * Reads a YAML file that a person wrote and explains every mistake in it at once, each with its place:
 *
 *     gatehouse.yaml:9:14: encoders.keepAlive: expected between 1s and 30s
 *        9 |   keepAlive: 2m
 *          |              ^
 *
 * YAML 1.2 without aliases, so that what is written is what is meant and a small file stays small. The two files there
 * are: the configuration (config-file.ts) and what `gatehouse import` takes (site-file.ts).
 */
import { readFileSync, statSync } from 'node:fs';
import { type Document, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import type { z } from 'zod';

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

/** The file cannot be used. The message is for a terminal, several lines. */
export class FileError extends Error {
  readonly mistakes: Mistake[];
  constructor(message: string, mistakes: Mistake[] = [], options?: ErrorOptions) {
    super(message, options);
    this.name = 'FileError';
    this.mistakes = mistakes;
  }
}

/** What a file may hold. */
export interface FileKind<Schema extends z.ZodType> {
  schema: Schema;
  /** For the names of settings that exist. */
  jsonSchema(): z.core.JSONSchema.BaseSchema;
}

/** Something wrong with one setting. `place: 'key'` points at its name rather than its value. */
export interface Problem {
  path: PropertyKey[];
  message: string;
  place?: 'key';
}

/** A file that was understood, to say more about. */
export interface Parsed<Value> {
  value: Value;
  /** What to throw when something is wrong that the schema cannot see. */
  failed(problems: Problem[]): FileError;
}

/** The text of a file. `what` it is, for messages, such as "the configuration". Throws FileError. */
export function readText(file: string, what: string, maxBytes: number): string {
  try {
    const status = statSync(file);
    if (!status.isFile()) throw new Error('it is not a file');
    if (status.size > maxBytes) throw new Error(`it has more than ${maxBytes} bytes`);
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
  } catch (error) {
    throw new FileError(`cannot read ${what} ${file}: ${reasonOf(error)}`, [], { cause: error });
  }
}

/** Why a file cannot be read, in words. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES') return 'you may not read it (try sudo)';
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'it is not text in UTF-8';
  return message;
}

/** `file` is the name in messages. Throws FileError. */
export function parseText<Schema extends z.ZodType>(
  text: string,
  file: string,
  { schema, jsonSchema }: FileKind<Schema>,
): Parsed<z.output<Schema>> {
  const source = parseYaml(text, file);
  const value: unknown = source.document.toJS() ?? {};
  const result = schema.safeParse(value);
  if (!result.success) {
    const known = jsonSchema();
    throw failed(
      source,
      result.error.issues.flatMap((issue) => problemsOf(issue, known, value)),
    );
  }
  return { value: result.data, failed: (problems) => failed(source, problems) };
}

// ---- YAML

interface Source {
  file: string;
  text: string;
  lines: LineCounter;
  document: Document.Parsed;
}

function parseYaml(text: string, file: string): Source {
  const lines = new LineCounter();
  const options = { lineCounter: lines, prettyErrors: false, stringKeys: true, version: '1.2' } as const;
  const document = parseDocument(text, options);
  const source = { file, text, lines, document };
  const mistakes = [...document.errors, ...document.warnings].map(({ pos: [offset], message }) =>
    mistake(source, offset, message),
  );
  if (document.directives?.yaml.explicit && document.directives.yaml.version !== '1.2')
    mistakes.push(mistake(source, 0, 'only YAML 1.2 is understood: remove the %YAML line'));
  visit(document, {
    Alias(_key, alias) {
      mistakes.push(
        mistake(source, alias.range?.[0] ?? 0, 'aliases (*name) are not allowed: repeat the value'),
      );
    },
  });
  if (mistakes.length > 0) throw explained(source, mistakes);
  return source;
}

/** Offset of a setting in the text, or of the innermost section that would hold it. */
function offsetOf({ document }: Source, { path, place }: Problem): number {
  let node: unknown = document.contents;
  let name = 0;
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && key.value === step);
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

type JsonSchema = z.core.JSONSchema.BaseSchema;

function problemsOf(issue: z.core.$ZodIssue, jsonSchema: JsonSchema, file: unknown): Problem[] {
  if (issue.code === 'unrecognized_keys') {
    const known = knownSettings(issue.path, jsonSchema, file);
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
  return [{ path: issue.path, message: `${named(issue.path) || 'the file'}: ${inWords(issue, file)}` }];
}

/** What was expected, and what is there if that helps. */
function inWords(issue: z.core.$ZodIssue, file: unknown): string {
  const choices = choicesOf(issue);
  if (choices.length === 0) {
    return issue.message
      .replace(/^Invalid input: /, '')
      .replace(/, received undefined$/, '; it is missing')
      .replace(/, received null$/, '; it has no value');
  }
  const written = valueAt(file, issue.path);
  const guess = typeof written === 'string' ? nearest(written, choices.map(String)) : undefined;
  const hint = guess === undefined ? '' : ` (did you mean "${guess}"?)`;
  const missing = written === undefined ? '; it is missing' : '';
  return `expected one of ${choices.map((choice) => JSON.stringify(choice)).join('|')}${missing}${hint}`;
}

/** The values a setting may have, where there are few: of an enumeration, or of the setting that decides on the others. */
function choicesOf(issue: z.core.$ZodIssue): readonly unknown[] {
  if (issue.code === 'invalid_value') return issue.values;
  return issue.code === 'invalid_union' && 'options' in issue ? (issue.options ?? []) : [];
}

function valueAt(file: unknown, path: PropertyKey[]): unknown {
  return path.reduce<unknown>((value, step) => (value as Record<PropertyKey, unknown> | null)?.[step], file);
}

/** `encoders.vendorRoots[0]` */
export function named(path: PropertyKey[]): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
}

/** What of a JSON schema leads to the names of settings. */
interface Section {
  properties?: Record<string, Section>;
  items?: Section;
  oneOf?: Section[];
  const?: unknown;
}

/** The settings there are in a section of the file; where a setting decides which (`protocol`), those of its value. */
function knownSettings(path: PropertyKey[], jsonSchema: JsonSchema, file: unknown): string[] {
  let section = branch(jsonSchema as Section, file);
  for (const [depth, step] of path.entries()) {
    const inner = typeof step === 'number' ? section.items : section.properties?.[String(step)];
    section = branch(inner ?? {}, valueAt(file, path.slice(0, depth + 1)));
  }
  return Object.keys(section.properties ?? {});
}

function branch(section: Section, value: unknown): Section {
  const chosen = section.oneOf?.find(({ properties = {} }) =>
    Object.entries(properties).some(
      ([name, setting]) => 'const' in setting && setting.const === valueAt(value, [name]),
    ),
  );
  return chosen ?? section;
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

function failed(source: Source, problems: Problem[]): FileError {
  return explained(
    source,
    problems.map((problem) => mistake(source, offsetOf(source, problem), problem.message)),
  );
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
  const shown = ordered.slice(0, MISTAKES_SHOWN_MAX).map(({ line, column, message }) => {
    const start = Math.max(0, column - 1 - LINE_SHOWN_MAX / 2);
    const content = printable((lines[line - 1] ?? '').slice(start, start + LINE_SHOWN_MAX));
    const caret = `${content.slice(0, column - 1 - start).replace(/[^\t]/g, ' ')}^`;
    const margin = String(line).padStart(5);
    return `${file}:${line}:${column}: ${message}\n${margin} | ${content}\n${' '.repeat(5)} | ${caret}`;
  });
  const more = ordered.length - shown.length;
  if (more > 0) shown.push(`${file}: and ${more} more`);
  return new FileError(shown.join('\n'), ordered);
}
