/**
 * Profiles of Modbus products (drivers/modbus/profile.ts), and DCON modules of a site (drivers/dcon/module-types.ts): found by the names in
 * the options of a link, read, and handed to the driver as plain data with the options, for a driver reads no files.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plain } from '../../../drivers/contract/driver.ts';
import {
  type ModuleType,
  moduleFaults,
  moduleJsonSchema,
  moduleTypeShape,
} from '../../../drivers/dcon/module-types.ts';
import type { DconOptions } from '../../../drivers/dcon/options.ts';
import type { ModbusOptions } from '../../../drivers/modbus/options.ts';
import { faultsOf, profileJsonSchema } from '../../../drivers/modbus/profile.ts';
import { type Profile, profileShape } from '../../../drivers/modbus/profile-shape.ts';
import type { Problem } from '../yaml/problem.ts';
import { FileError, parseText, readText } from '../yaml/yaml-file.ts';
import type { Config } from './config.ts';

/** A large one has four kilobytes; this is not one. */
const FILE_MAX_BYTES = 64 * 1024;
const BUILT_IN = join(import.meta.dirname, '../../../config/profiles');

type Link = Config['links'][number];

/** A start reads each twice: to check the configuration, and for its bus. */
const parsed = new Map<string, { text: string; profile: Profile }>();

/** Throws FileError. */
export function readProfile(file: string): Profile {
  // A package has those that come with Gatehouse as data too, checked when it was made: YAML takes a millisecond and a half for each.
  const data = file.replace(/\.yaml$/, '.json');
  if (dirname(file) === BUILT_IN && existsSync(data)) return JSON.parse(readFileSync(data, 'utf8'));
  const text = readText(file, 'the profile', FILE_MAX_BYTES);
  const before = parsed.get(file);
  const profile = before?.text === text ? before.profile : parseProfile(text, file);
  parsed.set(file, { text, profile });
  return profile;
}

/** `file` is the name in messages. Throws FileError. */
export function parseProfile(text: string, file: string): Profile {
  // The parts of a profile depend on each other, so that with another address in one of them nothing is true of the rest.
  const placeholders = () => [];
  const kind = { schema: profileShape, jsonSchema: profileJsonSchema, placeholders, check: faultsOf };
  return parseText(text, file, kind).value;
}

/** Of a DCON module. Throws FileError. */
export function readModuleType(file: string): ModuleType {
  const text = readText(file, 'the module', FILE_MAX_BYTES);
  const placeholders = () => [];
  const kind = { schema: moduleTypeShape, jsonSchema: moduleJsonSchema, placeholders, check: moduleFaults };
  return parseText(text, file, kind).value;
}

/** A profile, or a DCON module where it says so. Throws FileError. */
export function readProduct(file: string): { product: string } {
  const text = readText(file, 'the profile', FILE_MAX_BYTES);
  return /^protocol: *dcon\b/m.test(text) ? readModuleType(file) : readProfile(file);
}

/** A name, of those that come with Gatehouse, or an absolute path (config-file.ts resolves it). */
export function profileFile(name: string): string {
  return isProfilePath(name) ? name : join(BUILT_IN, `${name}.yaml`);
}

export function isProfilePath(name: string): boolean {
  return /\.ya?ml$/.test(name);
}

/** What the driver of a link is given: its options, with each profile they name. Throws FileError. */
export function linkOptions({ protocol, options }: Link): Plain {
  // Parsed JSON, as Plain is, but for optional keys in its type.
  if (protocol === 'dcon') {
    const { moduleTypes } = options as DconOptions;
    return { ...(options as { [key: string]: Plain }), types: moduleTypes.map(readModuleType) } as Plain;
  }
  if (protocol !== 'modbus') return options as Plain;
  const profiles = profileNames(options).map((name) => [name, readProfile(profileFile(name))]);
  return { ...(options as { [key: string]: Plain }), profiles: Object.fromEntries(profiles) };
}

/** The files of profiles that links name, each at the name. */
export function profileFiles(links: readonly Link[]): { path: PropertyKey[]; file: string }[] {
  return usesOf(links)
    .filter(({ name }) => isProfilePath(name))
    .map(({ path, name }) => ({ path, file: profileFile(name) }));
}

/** What is wrong with the profiles that links name, each at the name; but for files of which it is known already. */
export function profileProblems(links: readonly Link[], isKnown: (file: string) => boolean): Problem[] {
  const faults = usesOf(links).flatMap(({ path, name, read }) => {
    const reason = isKnown(name) ? undefined : faultOf(name, read);
    return reason === undefined ? [] : [{ path, message: reason }];
  });
  return faults.length > 0 ? faults : links.flatMap((link, index) => ambiguousModules(link, index, isKnown));
}

/** Two files that describe the module of one name: which of them is right, the gateway cannot know. */
function ambiguousModules(link: Link, index: number, isKnown: (file: string) => boolean): Problem[] {
  if (link.protocol !== 'dcon') return [];
  const fileOf = new Map<string, string>();
  return link.options.moduleTypes.flatMap((file, place) => {
    if (isKnown(file)) return [];
    const { names } = readModuleType(file);
    const twice = names.find((name) => fileOf.has(name));
    for (const name of names) fileOf.set(name, fileOf.get(name) ?? file);
    if (twice === undefined) return [];
    const message = `describes the module ${twice}, as ${fileOf.get(twice)} does: leave it in one of them`;
    return [{ path: ['links', index, 'options', 'moduleTypes', place], message }];
  });
}

interface Use {
  path: PropertyKey[];
  name: string;
  read(file: string): unknown;
}

function usesOf(links: readonly Link[]): Use[] {
  return links.flatMap((link, index): Use[] => {
    const at = ['links', index, 'options'];
    if (link.protocol === 'dcon')
      return link.options.moduleTypes.map((name, place) => ({
        path: [...at, 'moduleTypes', place],
        name,
        read: readModuleType,
      }));
    if (link.protocol !== 'modbus') return [];
    const { profile, devices } = link.options;
    const read = readProfile;
    return [
      { path: [...at, 'profile'], name: profile, read },
      ...devices.flatMap(({ profile: name }, device) =>
        name === undefined ? [] : [{ path: [...at, 'devices', device, 'profile'], name, read }],
      ),
    ];
  });
}

function faultOf(name: string, read: Use['read']): string | undefined {
  const file = profileFile(name);
  if (!isProfilePath(name) && !existsSync(file))
    return `no profile of that name comes with Gatehouse: there are ${builtIn().join(', ')}`;
  try {
    read(file);
    return undefined;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    const [first, ...more] = error.mistakes;
    if (!first) return error.message;
    const others = more.length > 0 ? ` (and ${more.length} more)` : '';
    return `the ${read === readModuleType ? 'module' : 'profile'} is wrong in line ${first.line}: ${first.message}${others}: see gatehouse bus check-profile`;
  }
}

function builtIn(): string[] {
  return readdirSync(BUILT_IN)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => file.slice(0, -'.yaml'.length))
    .toSorted();
}

function profileNames({ profile, devices }: ModbusOptions): string[] {
  return [...new Set([profile, ...devices.flatMap((device) => device.profile ?? [])])];
}
