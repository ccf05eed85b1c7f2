/**
 * Reads the configuration and explains every mistake in it (yaml-file.ts). What a single setting may be is
 * src/config.ts; here are the checks across settings and against the file system.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { adminSocketOf, type Config, configJsonSchema, configSchema } from './config.ts';
import { named, type Problem, parseText, readText, reasonOf } from './yaml-file.ts';

/** A site's file has a few kilobytes; this is not one. */
const FILE_MAX_BYTES = 256 * 1024;
/** sun_path of unix(7), less its final NUL. */
const SOCKET_PATH_MAX_BYTES = 107;

const OIDC_FILES = ['jwksFile', 'caFile'] as const;
const UPSTREAM_FILES = ['caFile', 'certFile', 'keyFile', 'passwordFile'] as const;

export interface ReadOptions {
  /** Also check that the files the configuration names can be read. */
  checkFiles?: boolean;
}

/** Paths in the result are absolute. Throws FileError. */
export function readConfig(file: string, options: ReadOptions = {}): Config {
  return parseConfig(readText(file, 'the configuration', FILE_MAX_BYTES), file, options);
}

/** `file` is the name in messages, and its folder is what relative paths start from. */
export function parseConfig(text: string, file: string, options: ReadOptions = {}): Config {
  const kind = { schema: configSchema, jsonSchema: configJsonSchema };
  const { value: config, failed } = parseText(text, file, kind);
  resolvePaths(config, dirname(resolve(file)));
  const problems = [...contradictions(config), ...(options.checkFiles ? unreadableFiles(config) : [])];
  if (problems.length > 0) throw failed(problems);
  return config;
}

function resolvePaths(config: Config, folder: string): void {
  const at = (path: string) => resolve(folder, path);
  config.dataDirectory = at(config.dataDirectory);
  if (config.adminSocket) config.adminSocket = at(config.adminSocket);
  config.encoders.vendorRoots = config.encoders.vendorRoots.map(at);
  for (const name of OIDC_FILES) {
    const path = config.auth.oidc?.[name];
    if (config.auth.oidc && path) config.auth.oidc[name] = at(path);
  }
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
  const { oidc } = config.auth;
  if (oidc && oidc.jwksUrl === undefined && oidc.jwksFile === undefined)
    wrong(['auth', 'oidc'], 'needs jwksUrl or jwksFile');
  if (oidc?.caFile && !oidc.jwksUrl?.startsWith('https:'))
    wrong(['auth', 'oidc', 'caFile'], 'has no effect without https:// in jwksUrl');
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
  problems.push(...contradictingGateways(config));
  const socket = adminSocketOf(config);
  if (Buffer.byteLength(socket) > SOCKET_PATH_MAX_BYTES)
    wrong(
      [config.adminSocket ? 'adminSocket' : 'dataDirectory'],
      `the socket's path ${socket} is longer than ${SOCKET_PATH_MAX_BYTES} bytes: set a shorter adminSocket`,
    );
  return problems;
}

/** Each gateway has a link of its own, and a network that is named as well. */
function contradictingGateways({ links, networks, zgates }: Config): Problem[] {
  const problems: Problem[] = [];
  const wrong = (path: PropertyKey[], message: string) =>
    problems.push({ path, message: `${named(path)}: ${message}` });
  for (const [index, { id }] of networks.entries())
    if (networks.findIndex((network) => network.id === id) < index)
      wrong(['networks', index, 'id'], 'another network has this id');
  for (const [index, { deviceId, link, networkId }] of zgates.entries()) {
    if (zgates.findIndex((gateway) => gateway.deviceId === deviceId) < index)
      wrong(['zgates', index, 'deviceId'], 'another gateway has this id');
    if (zgates.findIndex((gateway) => gateway.link === link) < index)
      wrong(['zgates', index, 'link'], `another gateway is on "${link}"`);
    if (!links.some(({ id }) => id === link)) wrong(['zgates', index, 'link'], `links has no "${link}"`);
    if (!networks.some(({ id }) => id === networkId))
      wrong(['zgates', index, 'networkId'], 'networks has no such id');
  }
  return problems;
}

function isLoopback(host: string): boolean {
  return host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

function sameAddress(a: Config['http']['listen'], b: Config['http']['listen']): boolean {
  const everywhere = [a.host, b.host].some((host) => host === '0.0.0.0' || host === '::');
  return a.port === b.port && a.port !== 0 && (everywhere || a.host === b.host);
}

function unreadableFiles({ auth, encoders, upstream }: Config): Problem[] {
  const files: { path: PropertyKey[]; file: string | undefined }[] = [
    ...encoders.vendorRoots.map((file, index) => ({ path: ['encoders', 'vendorRoots', index], file })),
    ...OIDC_FILES.map((name) => ({ path: ['auth', 'oidc', name], file: auth.oidc?.[name] })),
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
    return `cannot read ${file}: ${reasonOf(error)}`;
  }
}
