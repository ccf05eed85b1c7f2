/** The files that a configuration names: which they are, and whether they can be read. What they hold is judged in contents.ts. */
import { existsSync, lstatSync } from 'node:fs';
import { NotRegularFile, readNamedFile, reasonOf } from '../host/regular-file.ts';
import type { Problem } from '../yaml/problem.ts';
import { DECISION_FILES } from './access.ts';
import { CLUSTER_FILES } from './cluster.ts';
import { adminSocketOf, type Config } from './config.ts';
import type { Judging } from './contents.ts';
import { filesOfBroker } from './encoder-broker.ts';
import { portAt, portsOf } from './ports.ts';
import { isProfilePath, profileFiles, profileProblems } from './profiles.ts';
import { filesOfSink, placedSinks, sinksOf } from './sinks.ts';

export const OIDC_FILES = ['jwksFile', 'caFile'] as const;
export const HTTP_FILES = ['certFile', 'keyFile'] as const;

/** The user whose rights to files are judged: files are opened with them until it is disposed. */
export interface FileReader extends Disposable {
  /** Why this user does not see the file, though its rights allow it; undefined: it does. */
  hidden(file: string): string | undefined;
  /** Why this user may not read the file, and what mends it; undefined: it is not for this user to judge. */
  refusal(file: string): string | undefined;
  /** As refusal, of a serial port that is there; undefined: it may be opened. */
  deviceFault(port: string): string | undefined;
  /** As refusal, of the data directory, in which this user is to write. */
  folderFault(folder: string): string | undefined;
}

/** What is checked of the files that a configuration names. */
export interface FileChecks {
  /** Without it files are judged for the user who runs this. */
  reader?: (config: Config) => FileReader | undefined;
  /** Also check that they hold certificates, keys and so on (contents.ts says why not for a start). */
  checkContents?: Judging;
}

/** The files that a configuration names, absolute; the folder of firmware, which holds what makers publish, is none. */
export function filesNamedBy(config: Config): string[] {
  const { http, auth, encoders, links } = config;
  const profiles = links.flatMap((link) => {
    if (link.protocol === 'dcon') return link.options.moduleTypes;
    return link.protocol === 'modbus'
      ? [link.options.profile, ...link.options.devices.flatMap(({ profile }) => profile ?? [])]
      : [];
  });
  return [
    ...HTTP_FILES.flatMap((name) => http[name] ?? []),
    ...encoders.vendorRoots,
    ...filesOfBroker(encoders.broker).map(({ file }) => file),
    ...OIDC_FILES.flatMap((name) => auth.oidc?.[name] ?? []),
    ...sinksOf(config).flatMap((sink) => filesOfSink(sink).map(({ file }) => file)),
    ...DECISION_FILES.flatMap((name) => config.access.decisionService?.[name] ?? []),
    ...CLUSTER_FILES.flatMap((name) => config.cluster?.[name] ?? []),
    ...profiles.filter(isProfilePath),
  ];
}

/** Adds to `texts` what is in each file that can be read. */
export function fileProblems(
  file: string,
  config: Config,
  options: FileChecks,
  texts: Map<string, string>,
): Problem[] {
  const named = filesOf(config, options);
  const found = unreadableFiles(file, config, named, options, texts);
  const isKnown = (name: string) => !texts.has(name) && named.some(({ file }) => file === name);
  return [
    ...found,
    ...problem(['adminSocket'], inTheWay(adminSocketOf(config))),
    ...profileProblems(config.links, isKnown),
  ];
}

/** A start does not remove what is no socket of its own (admin-socket.ts). */
function inTheWay(socket: string): string | undefined {
  try {
    const there = lstatSync(socket, { throwIfNoEntry: false });
    return there && !there.isSocket() ? `${socket} is there and is no socket: name another path` : undefined;
  } catch {
    // In a folder that this user may not enter, which is judged by itself.
    return undefined;
  }
}

function unreadableFiles(
  file: string,
  config: Config,
  named: ReturnType<typeof filesOf>,
  options: FileChecks,
  texts: Map<string, string>,
): Problem[] {
  using reader = options.reader?.(config);
  const files = named.flatMap(({ path, file }) =>
    problem(path, unreadable(file, reader, texts, isOfSecret(path))),
  );
  if (!reader) return files;
  const ports = portsOf(config.links).flatMap((port, index) =>
    typeof port === 'string' && port.startsWith('/dev/')
      ? problem(portAt(index), reader.deviceFault(port))
      : [],
  );
  return [
    ...problem([], unreadable(file, reader, texts)).map((whole) => ({ ...whole, others: [] })),
    ...problem(['dataDirectory'], reader.folderFault(config.dataDirectory)),
    ...files,
    ...ports,
  ];
}

/** People write the secret itself there. */
const isOfSecret = (path: PropertyKey[]) => /^(password|token|signingKey|key)File$/.test(String(path.at(-1)));

function problem(path: PropertyKey[], message: string | undefined): Problem[] {
  return message === undefined ? [] : [{ path, message }];
}

/** The pair of HTTPS is no reason not to start (contents.ts), and profileProblems reads profiles for the user who runs this. */
function filesOf(
  config: Config,
  { reader, checkContents }: FileChecks,
): { path: PropertyKey[]; file: string }[] {
  const { http, auth, encoders, links, cluster } = config;
  const files: { path: PropertyKey[]; file: string | undefined }[] = [
    ...(reader ? profileFiles(links) : []),
    ...(reader || checkContents
      ? HTTP_FILES.map((name) => ({ path: ['http', name], file: http[name] }))
      : []),
    ...encoders.vendorRoots.map((file, index) => ({ path: ['encoders', 'vendorRoots', index], file })),
    ...filesOfBroker(encoders.broker).map(({ name, file }) => ({ path: ['encoders', 'broker', name], file })),
    ...DECISION_FILES.map((name) => ({
      path: ['access', 'decisionService', name],
      file: config.access.decisionService?.[name],
    })),
    ...OIDC_FILES.map((name) => ({ path: ['auth', 'oidc', name], file: auth.oidc?.[name] })),
    ...CLUSTER_FILES.map((name) => ({ path: ['cluster', name], file: cluster?.[name] })),
    ...placedSinks(config).flatMap(({ sink, at }) =>
      filesOfSink(sink).map(({ name, file }) => ({ path: [...at, name], file })),
    ),
  ];
  return files.flatMap(({ path, file }) => (file === undefined ? [] : [{ path, file }]));
}

const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG']);

/** By reading it: access(2) asks for the user who has started this, and not for the one whose rights it has. */
function unreadable(
  file: string,
  reader: FileReader | undefined,
  texts: Map<string, string>,
  holdsSecret = false,
): string | undefined {
  const hidden = reader?.hidden(file);
  if (hidden !== undefined) return hidden;
  try {
    texts.set(file, readNamedFile(file));
    return undefined;
  } catch (error) {
    if (isOfAStart(file, error)) return undefined;
    const { code = '' } = error as NodeJS.ErrnoException;
    if (reader && code === 'EACCES') return reader.refusal(file);
    if (holdsSecret && ABSENT.has(code)) return 'there is no such file: name one that holds the secret';
    return error instanceof NotRegularFile ? error.message : `cannot read ${file}: ${reasonOf(error)}`;
  }
}

/** Credentials of a unit (systemd.exec(5), LoadCredentialEncrypted=) are there while it runs, and a start without one of them fails. */
function isOfAStart(file: string, error: unknown): boolean {
  const folder = /^\/run\/credentials\/[^/]+\//.exec(file)?.[0];
  return (error as NodeJS.ErrnoException).code === 'ENOENT' && folder !== undefined && !existsSync(folder);
}
