/**
 * A file with something sound in the place of each setting that has a mistake, so that the checks that need a whole file
 * are made in the same go: anyone who corrects a file should not learn of the next mistake only then.
 */
import type { z } from 'zod';
import { type Problem, valueAt } from './problem.ts';

export interface SoundPart<Value> {
  value: Value;
  /** What the schema finds only now: some of its checks are not made in a section that has other mistakes. */
  issues: z.core.$ZodIssue[];
  /** Of problems of `value`: those that follow from nothing that was replaced, with paths in the file. */
  inFile(problems: Problem[]): Problem[];
}

/** Values of which the schema takes one for each setting that must be there; all of them others for another `number`. */
export type Placeholders = (number: number) => readonly unknown[];

/** In the place of a setting, or of an entry of a list: nothing. */
const ABSENT = Symbol('absent');

/** What may be in the place of the setting at `path`, with what is tried first in front. */
interface StandIn {
  path: PropertyKey[];
  values: unknown[];
}

/** `paths` are those of the mistakes. Undefined when nothing is left that the schema would take. */
export function soundPart<Schema extends z.ZodType>(
  file: unknown,
  paths: PropertyKey[][],
  schema: Schema,
  placeholders: Placeholders,
): SoundPart<z.output<Schema>> | undefined {
  const standIns = new Map<string, StandIn>();
  const unused = unusedNumbers(file);
  const replace = (path: PropertyKey[]) => {
    const values = placeholders(unused.next().value);
    // A setting may have a default. A list may have to have entries, and those behind one that is gone move up.
    const isEntry = typeof path.at(-1) === 'number';
    standIns.set(keyOf(path), { path, values: isEntry ? [...values, ABSENT] : [ABSENT, ...values] });
  };
  for (const path of paths) replace(path);
  const found: z.core.$ZodIssue[] = [];
  while (!standIns.has(keyOf([]))) {
    const { value, original } = withStandIns(file, standIns);
    const { data, error } = schema.safeParse(value, { jitless: true });
    if (!error) {
      const inFile = (problems: Problem[]) => unrelated(problems, original, [...standIns.values()]);
      return { value: data as z.output<Schema>, issues: found, inFile };
    }
    const issues = error.issues.map((issue) => ({ ...issue, path: original(issue.path) }));
    const holders = new Set(
      [...standIns.values()].flatMap(({ path }) =>
        [...path.keys()].map((depth) => keyOf(path.slice(0, depth))),
      ),
    );
    const refused = new Map<string, PropertyKey[]>();
    for (const issue of issues) {
      const places = placesOf(issue);
      const replaced = places.map((path) => around(path, standIns));
      if (replaced.every((standIn, index) => !standIn && !holders.has(keyOf(places[index] ?? []))))
        found.push(issue);
      for (const [index, path] of places.entries()) {
        const place = replaced[index]?.path ?? path;
        refused.set(keyOf(place), place);
      }
    }
    for (const [key, path] of refused) {
      const values = standIns.get(key)?.values;
      if (!values) replace(path);
      else if (values.length > 1) values.shift();
      // Nothing fits: without what holds it.
      else replace(path.slice(0, -1));
    }
  }
  return undefined;
}

function placesOf(issue: z.core.$ZodIssue): PropertyKey[][] {
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
}

/** The stand-in at a path, or the outermost one that the path leads through. */
function around(path: PropertyKey[], standIns: ReadonlyMap<string, StandIn>): StandIn | undefined {
  for (let depth = 1; depth <= path.length; depth += 1) {
    const standIn = standIns.get(keyOf(path.slice(0, depth)));
    if (standIn) return standIn;
  }
  return undefined;
}

/** Numbers from 1 on that are nowhere in the file, so that nothing made of one is there twice. */
function* unusedNumbers(file: unknown): Generator<number, never> {
  const used = new Set<unknown>();
  const collect = (value: unknown) => {
    if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect);
    else used.add(value);
  };
  collect(file);
  for (let number = 1; ; number += 1) if (!used.has(number)) yield number;
}

/** `original` turns a path in `value` into one in the file, whose lists may be longer. */
function withStandIns(file: unknown, standIns: ReadonlyMap<string, StandIn>) {
  const value = structuredClone(file);
  const shortened = new Map<string, PropertyKey[]>();
  for (const { path, values } of standIns.values()) {
    const list = path.slice(0, -1);
    const holder = valueAt(value, list) as Record<PropertyKey, unknown> | undefined;
    const name = path.at(-1) ?? '';
    // Otherwise what holds it is replaced as well.
    if (typeof holder !== 'object' || holder === null) continue;
    if (values[0] !== ABSENT) holder[name] = values[0];
    else if (!Array.isArray(holder)) delete holder[name];
    else {
      holder[Number(name)] = ABSENT;
      shortened.set(keyOf(list), list);
    }
  }
  /** Which entries are left of such a list. All are found before the first is shortened, which moves what is in it. */
  const lists = [...shortened].map(([key, path]) => ({ key, entries: valueAt(value, path) as unknown[] }));
  const left = new Map<string, number[]>();
  for (const { key, entries } of lists) {
    if (!Array.isArray(entries)) continue;
    left.set(
      key,
      [...entries.keys()].filter((index) => entries[index] !== ABSENT),
    );
    entries.splice(0, entries.length, ...entries.filter((entry) => entry !== ABSENT));
  }
  const original = (path: PropertyKey[]) => {
    const found: PropertyKey[] = [];
    for (const step of path)
      found.push(typeof step === 'number' ? (left.get(keyOf(found))?.[step] ?? step) : step);
    return found;
  };
  return { value, original };
}

function unrelated(
  problems: Problem[],
  original: (path: PropertyKey[]) => PropertyKey[],
  standIns: readonly StandIn[],
): Problem[] {
  const isReplaced = (setting: PropertyKey[]) => standIns.some(({ path }) => leadsTo(path, setting));
  const isRelated = (setting: PropertyKey[]) => standIns.some(({ path }) => overlaps(path, setting));
  return problems
    .map((problem) => ({
      ...problem,
      path: original(problem.path),
      ...(problem.see && { see: original(problem.see) }),
    }))
    .filter(({ path, see, others }) => {
      // A section that says what its problem follows from has it whatever else is wrong in it.
      const own = others ? isReplaced(path) : isRelated(path);
      return !own && ![...(see ? [see] : []), ...(others ?? [])].some(isRelated);
    });
}

function leadsTo(path: PropertyKey[], setting: PropertyKey[]): boolean {
  return path.every((step, depth) => setting[depth] === step);
}

/** Whether one is the other, is in it, or holds it. */
function overlaps(path: PropertyKey[], setting: PropertyKey[]): boolean {
  return path.every((step, depth) => {
    const there = setting[depth];
    return there === undefined || there === step || there === '*';
  });
}

const keyOf = (path: PropertyKey[]): string => JSON.stringify(path.map(String));
