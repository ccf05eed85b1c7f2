/**
 * Reads a configuration file and explains every mistake in it at once, each with its place:
 *
 *     gatehouse.yaml:9:14: encoders.keepAlive: expected between 1s and 30s
 *        9 |   keepAlive: 2m
 *          |              ^
 *
 * YAML 1.2 without aliases, so that what is written is what is meant and a small file stays small. What a single
 * setting may be is src/config.ts; here are the checks across settings and against the file system.
 */
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Document, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import { adminSocketOf, type Config, configJsonSchema, configSchema } from './config.ts';

/** A site's file has a few kilobytes; this is not one. */
const FILE_MAX_BYTES = 256 * 1024;
/** More would scroll the first ones away. */
const MISTAKES_SHOWN_MAX = 20;
/** Longest part of a line that is shown. */
const LINE_SHOWN_MAX = 100;
/** A message quotes what was written, which may be long. */
const MESSAGE_MAX = 500;
/** sun_path of unix(7), less its final NUL. */
const SOCKET_PATH_MAX_BYTES = 107;

const UPSTREAM_FILES = ['caFile', 'certFile', 'keyFile', 'passwordFile'] as const;

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
  const result = configSchema.safeParse(source.document.toJS() ?? {});
  if (!result.success) throw failed(source, result.error.issues.flatMap(problemsOf));
  const config = result.data;
  resolvePaths(config, dirname(resolve(file)));
  const problems = [...contradictions(config), ...(options.checkFiles ? unreadableFiles(config) : [])];
  if (problems.length > 0) throw failed(source, problems);
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

function reason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES') return 'you may not read it (try sudo)';
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'it is not text in UTF-8';
  return message;
}

// ---- YAML

interface Source {
  file: string;
  text: string;
  lines: LineCounter;
  document: Document.Parsed;
}

/** Something wrong with one setting. `place: 'key'` points at its name rather than its value. */
interface Problem {
  path: PropertyKey[];
  message: string;
  place?: 'key';
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

/** `encoders.vendorRoots[0]` */
function named(path: PropertyKey[]): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
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

function failed(source: Source, problems: Problem[]): ConfigError {
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

// ---- Checks beyond one setting

function resolvePaths(config: Config, folder: string): void {
  const at = (path: string) => resolve(folder, path);
  config.dataDirectory = at(config.dataDirectory);
  if (config.adminSocket) config.adminSocket = at(config.adminSocket);
  config.encoders.vendorRoots = config.encoders.vendorRoots.map(at);
  for (const name of UPSTREAM_FILES) {
    const path = config.upstream?.[name];
    if (config.upstream && path) config.upstream[name] = at(path);
  }
}

/** What cannot be true together. */
function contradictions(config: Config): Problem[] {
  const { http, encoders, upstream, links } = config;
  const problems: Problem[] = [];
  const wrong = (path: PropertyKey[], message: string) =>
    problems.push({ path, message: `${named(path)}: ${message}` });

  if (http.plain && !isLoopback(http.listen.host))
    wrong(['http', 'plain'], 'only a loopback address may be served without TLS: listen on 127.0.0.1');
  if (sameAddress(http.listen, encoders.listen))
    wrong(['encoders', 'listen'], 'http.listen has the same address: choose another port');
  if (upstream) {
    if (upstream.certFile && !upstream.keyFile) wrong(['upstream', 'certFile'], 'needs keyFile as well');
    if (upstream.keyFile && !upstream.certFile) wrong(['upstream', 'keyFile'], 'needs certFile as well');
    if (upstream.passwordFile && !upstream.username)
      wrong(['upstream', 'passwordFile'], 'needs username as well');
    for (const name of ['caFile', 'certFile'] as const)
      if (upstream[name] && upstream.url.startsWith('mqtt:'))
        wrong(['upstream', name], 'has no effect without TLS: use mqtts:// in url');
  }
  for (const [index, { id }] of links.entries())
    if (links.findIndex((link) => link.id === id) < index)
      wrong(['links', index, 'id'], `another link is called "${id}"`);
  const socket = adminSocketOf(config);
  if (Buffer.byteLength(socket) > SOCKET_PATH_MAX_BYTES)
    wrong(
      [config.adminSocket ? 'adminSocket' : 'dataDirectory'],
      `the socket's path ${socket} is longer than ${SOCKET_PATH_MAX_BYTES} bytes: set a shorter adminSocket`,
    );
  return problems;
}

function isLoopback(host: string): boolean {
  return host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function sameAddress(a: Config['http']['listen'], b: Config['http']['listen']): boolean {
  const everywhere = [a.host, b.host].some((host) => host === '0.0.0.0' || host === '::');
  return a.port === b.port && a.port !== 0 && (everywhere || a.host === b.host);
}

function unreadableFiles({ encoders, upstream }: Config): Problem[] {
  const files: { path: PropertyKey[]; file: string | undefined }[] = [
    ...encoders.vendorRoots.map((file, index) => ({ path: ['encoders', 'vendorRoots', index], file })),
    ...UPSTREAM_FILES.map((name) => ({ path: ['upstream', name], file: upstream?.[name] })),
  ];
  return files.flatMap(({ path, file }) => {
    const fault = file === undefined ? undefined : unreadable(file);
    return fault === undefined ? [] : [{ path, message: `${named(path)}: ${fault}` }];
  });
}

function unreadable(file: string): string | undefined {
  try {
    accessSync(file, constants.R_OK);
    return statSync(file).isFile() ? undefined : `${file} is not a file`;
  } catch (error) {
    return `cannot read ${file}: ${reason(error)}`;
  }
}
