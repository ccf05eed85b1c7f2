/**
 * Reads the configuration and explains every mistake in it (yaml-file.ts). What a single setting may be is
 * src/platform/config/config.ts; here are the checks across settings. Those against the file system are in named-files.ts and ports.ts.
 */
import { dirname, join, resolve } from 'node:path';
import type { Problem } from '../yaml/problem.ts';
import { FileError, parseText, readText, roughlyParsed } from '../yaml/yaml-file.ts';
import { DECISION_FILES } from './access.ts';
import { CLUSTER_FILES, contradictingCluster } from './cluster.ts';
import { ADMIN_SOCKET, adminSocketOf, type Config, configJsonSchema, configSchema } from './config.ts';
import { unfitFiles } from './contents.ts';
import { BROKER_FILES, contradictingBroker, type EncoderBroker, isExternal } from './encoder-broker.ts';
import { type FileChecks, fileProblems, HTTP_FILES, OIDC_FILES } from './named-files.ts';
import { exchangeablePorts, portAt, portsOf, sharedAdapters, twice } from './ports.ts';
import { isProfilePath } from './profiles.ts';
import { contradictingSinks, SINK_FILES } from './sinks.ts';

/** A site's file has a few kilobytes; this is not one. */
const FILE_MAX_BYTES = 256 * 1024;
/** What a copy cut short leaves, and no site's configuration: with the defaults every link would be gone. */
const EMPTY = 'put its copy back, or begin with config/gatehouse.example.yaml';
/** sun_path of unix(7), less its final NUL. */
const SOCKET_PATH_MAX_BYTES = 107;

/** What paths of the interface begin with besides the product's (docs/interface.md). */
const SEGMENTS_TAKEN = [
  'encoder',
  'network',
  'jobs',
  'events',
  'audit',
  'session',
  'site',
  'tokens',
  'login-codes',
  'log',
  'support-bundle',
  'backups',
  'docs',
  'backups',
  'healthz',
  'readyz',
  'metrics',
  'status',
  'local',
];

export interface ReadOptions extends FileChecks {
  /** Also check that the files the configuration names can be read. */
  checkFiles?: boolean;
  /** Also check that no adapter has two names. Not for a start: what is plugged in wrongly costs its own links alone. */
  checkAdapters?: boolean;
}

/** Throws FileError. */
export const readConfigText = (file: string) => readText(file, 'the configuration', FILE_MAX_BYTES);

/** Paths in the result are absolute. Throws FileError. */
export function readConfig(file: string, options: ReadOptions = {}): Config {
  return configIn(readConfigText(file), file, options);
}

/** Where a daemon has its configuration from. */
export interface ConfigurationSource {
  readonly file: string;
  /** What it said when it was last read without a mistake. */
  text(): string;
  /** Throws FileError. */
  read(options?: ReadOptions): Config;
}

export function openSource(file: string): ConfigurationSource {
  let sound = '';
  return {
    file,
    text: () => sound,
    read(options = {}) {
      const text = readConfigText(file);
      const config = configIn(text, file, options);
      sound = text;
      return config;
    },
  };
}

function configIn(text: string, file: string, options: ReadOptions): Config {
  if (text.split('\n').every((line) => /^\s*(#|$)/.test(line)))
    throw new FileError(`${file} has no setting: ${EMPTY}`);
  return parseConfig(text, file, options);
}

/** Made when the first mistake is found: it costs more than reading a file. */
let configShape: ReturnType<typeof configJsonSchema> | undefined;

/** `file` is the name in messages, and its folder is what relative paths start from. */
export function parseConfig(text: string, file: string, options: ReadOptions = {}): Config {
  const folder = dirname(resolve(file));
  const { value } = parseText(text, file, {
    schema: configSchema,
    jsonSchema: () => (configShape ??= configJsonSchema()),
    placeholders,
    check(written) {
      const config = resolved(written, folder);
      const { links } = config;
      const texts = new Map<string, string>();
      const isChecked = options.checkFiles || options.checkContents;
      const files = isChecked ? fileProblems(file, config, options, texts) : [];
      const unfit = options.checkContents ? unfitFiles(config, options.checkContents, texts) : [];
      const adapters = options.checkAdapters ? sharedAdapters(links) : [];
      return [...contradictions(config), ...files, ...unfit, ...adapters];
    },
  });
  return resolved(value, folder);
}

/** For settings that must be there and have a mistake (sound-part.ts). */
function placeholders(number: number): unknown[] {
  const name = `x${number}`;
  const uuid = `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
  const recipient = 'age1dldg3765c9d5a000xk5q794fxzfxtekmdyarghp3fvg9yy3g5clsdc8lct';
  const port = `tcp://${name}:1`;
  // The options of a link may be anything where its protocol is loopback.
  return [number, name, uuid, 'loopback', port, { port }, `mqtts://${name}`, recipient, [recipient]];
}

/** Where a file with mistakes says that the daemon is, which runs by what it was before; undefined: it does not say. */
export function socketIn(file: string): string | undefined {
  const written = roughlyParsed(readConfigText(file));
  const { adminSocket, dataDirectory } = (written ?? {}) as Record<string, unknown>;
  const socket = typeof adminSocket === 'string' ? adminSocket : undefined;
  const folder = typeof dataDirectory === 'string' ? dataDirectory : undefined;
  const named = socket ?? (folder === undefined ? undefined : join(folder, ADMIN_SOCKET));
  return named === undefined ? undefined : resolve(dirname(resolve(file)), named);
}

/** With absolute paths. */
function resolved(config: Config, folder: string): Config {
  const at = (path: string) => resolve(folder, path);
  const {
    dataDirectory,
    adminSocket,
    firmwareDirectory,
    http,
    encoders,
    auth,
    upstream,
    sinks,
    cluster,
    links,
    backup,
    access: { decisionService },
  } = config;
  return {
    ...config,
    dataDirectory: at(dataDirectory),
    ...(adminSocket && { adminSocket: at(adminSocket) }),
    ...(backup?.folder && { backup: { ...backup, folder: at(backup.folder) } }),
    ...(firmwareDirectory && { firmwareDirectory: at(firmwareDirectory) }),
    http: { ...http, ...those(http, HTTP_FILES, at) },
    encoders: { ...encoders, vendorRoots: encoders.vendorRoots.map(at), broker: placed(encoders.broker, at) },
    auth: { ...auth, ...(auth.oidc && { oidc: { ...auth.oidc, ...those(auth.oidc, OIDC_FILES, at) } }) },
    ...(upstream && { upstream: { ...upstream, ...those(upstream, SINK_FILES, at) } }),
    sinks: sinks.map((sink) => ({ ...sink, ...those(sink, SINK_FILES, at) })),
    access: {
      ...(decisionService && {
        decisionService: { ...decisionService, ...those(decisionService, DECISION_FILES, at) },
      }),
    },
    ...(cluster && { cluster: { ...cluster, ...those(cluster, CLUSTER_FILES, at) } }),
    links: links.map((link) => withProducts(link, at)),
  };
}

function placed(broker: EncoderBroker, at: (path: string) => string): EncoderBroker {
  return isExternal(broker) ? { ...broker, ...those(broker, BROKER_FILES, at) } : broker;
}

/** Of these fields those that are there, changed. */
function those<Field extends string>(
  section: Readonly<Partial<Record<Field, string | undefined>>>,
  fields: readonly Field[],
  change: (path: string) => string,
): Partial<Record<Field, string>> {
  const present = fields.flatMap((field) => {
    const path = section[field];
    return path === undefined ? [] : [[field, change(path)]];
  });
  return Object.fromEntries(present);
}

type Link = Config['links'][number];

/** The files of profiles and modules with absolute paths. */
function withProducts(link: Link, at: (path: string) => string): Link {
  if (link.protocol === 'dcon')
    return { ...link, options: { ...link.options, moduleTypes: link.options.moduleTypes.map(at) } };
  if (link.protocol !== 'modbus') return link;
  const placed = (profile: string) => (isProfilePath(profile) ? at(profile) : profile);
  const devices = link.options.devices.map((device) => ({
    ...device,
    ...(device.profile !== undefined && { profile: placed(device.profile) }),
  }));
  return { ...link, options: { ...link.options, profile: placed(link.options.profile), devices } };
}

/** What cannot be true together. */
function contradictions(config: Config): Problem[] {
  const { http, encoders } = config;
  const problems: Problem[] = [];
  const wrong = (path: PropertyKey[], message: string, ...others: PropertyKey[][]) =>
    problems.push({ path, message, others });

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
  if (SEGMENTS_TAKEN.includes(http.productSegment))
    wrong(['http', 'productSegment'], `/${http.productSegment} is a path of the interface: choose another`);
  const socket = adminSocketOf(config);
  if (Buffer.byteLength(socket) > SOCKET_PATH_MAX_BYTES)
    wrong(
      [config.adminSocket ? 'adminSocket' : 'dataDirectory'],
      `the socket's path ${socket} is longer than ${SOCKET_PATH_MAX_BYTES} bytes: set a shorter adminSocket`,
      ['adminSocket'],
    );
  const { certFile, keyFile } = config.access.decisionService ?? {};
  for (const [name, given, needed, other] of [
    ['certFile', certFile, 'keyFile', keyFile],
    ['keyFile', keyFile, 'certFile', certFile],
  ] as const)
    if (given && !other)
      wrong(['access', 'decisionService', name], `needs ${needed} as well`, [
        'access',
        'decisionService',
        needed,
      ]);
  return [
    ...problems,
    ...contradictingCredentials(config),
    ...contradictingSinks(config),
    ...contradictingBroker(encoders.broker, encoders.endpoint),
    ...contradictingCluster(config.cluster),
    ...contradictingWiring(config),
  ];
}

function contradictingCredentials({ http, auth: { oidc } }: Config): Problem[] {
  const problems: Problem[] = [];
  const wrong = (path: PropertyKey[], message: string, ...others: PropertyKey[][]) =>
    problems.push({ path, message, others });
  for (const [name, needed] of [
    ['certFile', 'keyFile'],
    ['keyFile', 'certFile'],
  ] as const) {
    if (http[name] && !http[needed]) wrong(['http', name], `needs ${needed} as well`, ['http', needed]);
    if (http[name] && http.plain) wrong(['http', name], 'has no effect with plain', ['http', 'plain']);
  }
  if (oidc && oidc.jwksUrl === undefined && oidc.jwksFile === undefined)
    wrong(
      ['auth', 'oidc'],
      'needs jwksUrl or jwksFile',
      ['auth', 'oidc', 'jwksUrl'],
      ['auth', 'oidc', 'jwksFile'],
    );
  if (oidc?.caFile && !oidc.jwksUrl?.startsWith('https:'))
    wrong(['auth', 'oidc', 'caFile'], 'has no effect without https:// in jwksUrl', [
      'auth',
      'oidc',
      'jwksUrl',
    ]);
  return problems;
}

/**
 * Links and networks have names of their own, and each link a port of its own: one at a time may talk on a wire. Each gateway has a
 * link of its own, and a network that is named as well.
 * The link of a coordinator has a gateway, which holds the secrets of its network.
 */
function contradictingWiring({ links, networks, zgates }: Config): Problem[] {
  const names = (what: string, section: string, entries: readonly object[], field: string) =>
    twice(entries.map((entry) => (entry as Record<string, unknown>)[field])).map(
      ([index, before]): Problem => ({
        path: [section, index, field],
        message: `another ${what} has this ${field}`,
        see: [section, before, field],
      }),
    );
  const dangling = zgates.flatMap(({ link, networkId }, index): Problem[] => {
    const noLink: Problem = {
      path: ['zgates', index, 'link'],
      message: `links has no "${link}"`,
      others: [['links', '*', 'id']],
    };
    const noNetwork: Problem = {
      path: ['zgates', index, 'networkId'],
      message: 'networks has no such id',
      others: [['networks', '*', 'id']],
    };
    return [
      ...(links.some(({ id }) => id === link) ? [] : [noLink]),
      ...(networks.some(({ id }) => id === networkId) ? [] : [noNetwork]),
    ];
  });
  const unused = links.flatMap(({ id, protocol }, index): Problem[] =>
    protocol !== 'zigbee' || zgates.some(({ link }) => link === id)
      ? []
      : [
          {
            path: ['links', index, 'id'],
            message: `zgates has no gateway on this link: add one with link: ${id}`,
            others: [['zgates', '*', 'link']],
          },
        ],
  );
  const shared = twice(portsOf(links)).map(([index, before]): Problem => {
    return { path: portAt(index), message: 'another link has this port', see: portAt(before) };
  });
  return [
    ...names('link', 'links', links, 'id'),
    ...shared,
    ...exchangeablePorts(links),
    ...names('network', 'networks', networks, 'id'),
    ...names('gateway', 'zgates', zgates, 'deviceId'),
    ...names('gateway', 'zgates', zgates, 'link'),
    ...dangling,
    ...unused,
  ];
}

function isLoopback(host: string): boolean {
  return host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function sameAddress(a: Config['http']['listen'], b: Config['http']['listen']): boolean {
  const everywhere = [a.host, b.host].some((host) => host === '0.0.0.0' || host === '::');
  return a.port === b.port && a.port !== 0 && (everywhere || a.host === b.host);
}
