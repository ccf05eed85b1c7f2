/**
 * The checks of a configuration beyond single settings: across settings, and against the file system. They are made
 * even where single settings have mistakes, on what is sound, so that everything is told in one go.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { adminSocketOf, type Config, configSchema } from './config.ts';

/** sun_path of unix(7), less its final NUL. */
const SOCKET_PATH_MAX_BYTES = 107;

const UPSTREAM_FILES = ['caFile', 'certFile', 'keyFile', 'passwordFile'] as const;

/** Something wrong with one setting. `place: 'key'` points at its name rather than its value. */
export interface Problem {
  path: PropertyKey[];
  message: string;
  place?: 'key';
  /** Settings it follows from besides. */
  others?: PropertyKey[][];
}

/** `encoders.vendorRoots[0]` */
export function named(path: PropertyKey[]): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '');
}

/** Why a file cannot be read, for whoever wrote its name. */
export function reason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES') return 'you may not read it (try sudo)';
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'it is not text in UTF-8';
  return message;
}

/**
 * What is left without the settings that have mistakes, so that checks across settings are told in the same go. Lists
 * go whole, for the others in them would change their numbers; where that is not enough, sections do.
 */
export function soundPart(
  value: unknown,
  problems: Problem[],
): { config: Config | undefined; removed: PropertyKey[][] } {
  const sound = structuredClone(value);
  const removed = problems.map(({ path }) => {
    const list = path.findIndex((step) => typeof step === 'number');
    return list === -1 ? path : path.slice(0, list);
  });
  for (const length of [Number.POSITIVE_INFINITY, 1]) {
    const paths = removed.map((path) => path.slice(0, length));
    for (const path of paths) remove(sound, path);
    const { data } = configSchema.safeParse(sound);
    if (data) return { config: data, removed: paths };
  }
  return { config: undefined, removed };
}

function remove(value: unknown, path: PropertyKey[]): void {
  const [step, ...rest] = path;
  if (step === undefined || typeof value !== 'object' || value === null || !Object.hasOwn(value, step))
    return;
  if (rest.length === 0) Reflect.deleteProperty(value, step);
  else remove(Reflect.get(value, step), rest);
}

/** Whether a setting is one of these, in one of them, or holds one. */
function within(paths: PropertyKey[][]): (setting: PropertyKey[]) => boolean {
  return (setting) =>
    paths.some((path) => path.every((step, depth) => depth >= setting.length || setting[depth] === step));
}

/** Makes all paths absolute; they start from `folder`. */
export function resolvePaths(config: Config, folder: string): void {
  const at = (path: string) => resolve(folder, path);
  config.dataDirectory = at(config.dataDirectory);
  if (config.adminSocket) config.adminSocket = at(config.adminSocket);
  config.encoders.vendorRoots = config.encoders.vendorRoots.map(at);
  for (const name of UPSTREAM_FILES) {
    const path = config.upstream?.[name];
    if (config.upstream && path) config.upstream[name] = at(path);
  }
}

/** What cannot be true together, as far as no setting of `removed` has to do with it. */
export function contradictions(config: Config, removed: PropertyKey[][]): Problem[] {
  const { http, encoders, upstream, links } = config;
  const problems: Problem[] = [];
  const wrong = (path: PropertyKey[], message: string, ...others: PropertyKey[][]) =>
    problems.push({ path, others, message: `${named(path)}: ${message}` });

  if (http.plain && !isLoopback(http.listen.host))
    wrong(['http', 'plain'], 'only a loopback address may be served without TLS: listen on 127.0.0.1', [
      'http',
      'listen',
    ]);
  if (sameAddress(http.listen, encoders.listen))
    wrong(['encoders', 'listen'], 'http.listen has the same address: choose another port', [
      'http',
      'listen',
    ]);
  if (upstream) {
    for (const [name, needed] of [
      ['certFile', 'keyFile'],
      ['keyFile', 'certFile'],
      ['passwordFile', 'username'],
    ] as const)
      if (upstream[name] && !upstream[needed])
        wrong(['upstream', name], `needs ${needed} as well`, ['upstream', needed]);
    for (const name of ['caFile', 'certFile'] as const)
      if (upstream[name] && upstream.url.startsWith('mqtt:'))
        wrong(['upstream', name], 'has no effect without TLS: use mqtts:// in url', ['upstream', 'url']);
  }
  for (const [index, { id }] of links.entries())
    if (links.findIndex((link) => link.id === id) < index)
      wrong(['links', index, 'id'], `another link is called "${id}"`);
  const socket = adminSocketOf(config);
  if (Buffer.byteLength(socket) > SOCKET_PATH_MAX_BYTES)
    wrong(
      [config.adminSocket ? 'adminSocket' : 'dataDirectory'],
      `the socket's path ${socket} is longer than ${SOCKET_PATH_MAX_BYTES} bytes: set a shorter adminSocket`,
      ['adminSocket'],
    );
  return problems.filter(({ path, others = [] }) => ![path, ...others].some(within(removed)));
}

function isLoopback(host: string): boolean {
  return host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function sameAddress(a: Config['http']['listen'], b: Config['http']['listen']): boolean {
  const everywhere = [a.host, b.host].some((host) => host === '0.0.0.0' || host === '::');
  return a.port === b.port && a.port !== 0 && (everywhere || a.host === b.host);
}

export function unreadableFiles({ encoders, upstream }: Config): Problem[] {
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
