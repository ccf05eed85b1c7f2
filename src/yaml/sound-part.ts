/**
 * What is left of a file without the settings that have mistakes, so that checks across settings are made in the same
 * go: whoever corrects a file should not learn of the next kind of mistake only then.
 */
import type { z } from 'zod';
import type { Problem } from './problem.ts';

export interface SoundPart<Value> {
  value: Value;
  /** Of problems of `value`: those that follow from nothing that is left out, with paths in the file. */
  inFile(problems: Problem[]): Problem[];
}

/** `paths` are those of the mistakes. Undefined when nothing is left that the schema would take. */
export function soundPart<Schema extends z.ZodType>(
  file: unknown,
  paths: PropertyKey[][],
  schema: Schema,
): SoundPart<z.output<Schema>> | undefined {
  let removed = paths;
  // Where a setting is needed, what holds it goes too: each round removes more, until all is gone.
  while (removed.every((path) => path.length > 0)) {
    const { value, original } = without(file, removed);
    const { data, error } = schema.safeParse(value);
    if (!error) {
      const left = leftOut(removed);
      const inFile = (problems: Problem[]) =>
        problems
          .map((problem) => ({
            ...problem,
            path: original(problem.path),
            ...(problem.see && { see: original(problem.see) }),
          }))
          .filter(({ path, see, others = [] }) => ![path, ...(see ? [see] : []), ...others].some(left));
      return { value: data as z.output<Schema>, inFile };
    }
    const gone = new Set(removed.map(keyOf));
    removed = [...removed, ...error.issues.map(({ path }) => innermost(original(path), gone))];
  }
  return undefined;
}

/** The path, or the innermost section around it that is not gone yet. */
function innermost(path: PropertyKey[], gone: Set<string>): PropertyKey[] {
  return path.length > 0 && gone.has(keyOf(path)) ? innermost(path.slice(0, -1), gone) : path;
}

/** `original` turns a path in `value` into one in the file, whose lists may be longer. */
function without(file: unknown, removed: PropertyKey[][]) {
  const gone = new Set(removed.map(keyOf));
  /** Of lists that are shorter now: which entries are left. */
  const left = new Map<string, number[]>();
  const prune = (value: unknown, path: PropertyKey[]): unknown => {
    const stays = (step: PropertyKey) => !gone.has(keyOf([...path, step]));
    if (Array.isArray(value)) {
      const indexes = [...value.keys()].filter(stays);
      if (indexes.length < value.length) left.set(keyOf(path), indexes);
      return indexes.map((index) => prune(value[index], [...path, index]));
    }
    if (typeof value !== 'object' || value === null) return value;
    const settings = Object.entries(value).filter(([name]) => stays(name));
    return Object.fromEntries(settings.map(([name, inner]) => [name, prune(inner, [...path, name])]));
  };
  const original = (path: PropertyKey[]) => {
    const found: PropertyKey[] = [];
    for (const step of path)
      found.push(typeof step === 'number' ? (left.get(keyOf(found))?.[step] ?? step) : step);
    return found;
  };
  return { value: prune(file, []), original };
}

/** Whether a setting was removed, is in one that was, or holds one. */
function leftOut(removed: PropertyKey[][]): (setting: PropertyKey[]) => boolean {
  return (setting) =>
    removed.some((path) =>
      path.every((step, depth) => {
        const there = setting[depth];
        return there === undefined || there === step || there === '*';
      }),
    );
}

const keyOf = (path: PropertyKey[]): string => JSON.stringify(path.map(String));
