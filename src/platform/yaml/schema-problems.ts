/** What a schema found wrong with a file, in words for its author: what is expected, and what was likely meant. */
import type { z } from 'zod';
import { inWords as boundInWords } from '../fault-words.ts';
import { nearest } from './nearest.ts';
import { isSayable, named, type Problem, valueAt } from './problem.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** One for each setting. `jsonSchema` is that of the same schema, for the names of settings that exist. */
export function schemaProblems(
  issues: readonly z.core.$ZodIssue[],
  jsonSchema: JsonSchema,
  file: unknown,
): Problem[] {
  const reported = new Set<string>();
  return issues
    .flatMap((issue) => problemsOf(issue, jsonSchema, file))
    .filter(({ path }) => {
      const setting = named(path);
      if (reported.has(setting)) return false;
      reported.add(setting);
      return true;
    });
}

function problemsOf(issue: z.core.$ZodIssue, jsonSchema: JsonSchema, file: unknown): Problem[] {
  if (issue.code === 'invalid_union' && choicesOf(issue).length === 0)
    return unionProblems(issue, jsonSchema, file);
  if (issue.code !== 'unrecognized_keys') return [{ path: issue.path, message: inWords(issue, file) }];
  const known = knownSettings(issue.path, jsonSchema, file);
  return issue.keys.map((key) => {
    const path = [...issue.path, key];
    const sections = known.filter((name) =>
      knownSettings([...issue.path, name], jsonSchema, file).includes(key),
    );
    const hint = hintOf(key, known, sections);
    return {
      path,
      place: 'key',
      message: `unknown setting ${isSayable(key) ? `"${named(path)}" ` : ''}(${hint})`,
    };
  });
}

/** Of a setting that is one word or a section of its own: what is wrong with the one that is there. */
function unionProblems(
  { path, errors }: z.core.$ZodIssueInvalidUnion,
  jsonSchema: JsonSchema,
  file: unknown,
): Problem[] {
  const section = errors.find(
    (issues) => !issues.some((issue) => issue.path.length === 0 && /^invalid_(type|value)$/.test(issue.code)),
  );
  if (section)
    return section.flatMap((issue) =>
      problemsOf({ ...issue, path: [...path, ...issue.path] } as z.core.$ZodIssue, jsonSchema, file),
    );
  const words = errors.flat().flatMap((issue) => choicesOf(issue).map(String));
  return [{ path, message: `expected ${words.join(', ')} or a section with settings` }];
}

/** `sections`: those of this section that have such a setting. */
function hintOf(key: string, known: readonly string[], [section, ...others]: readonly string[]): string {
  if (section !== undefined && others.length === 0) return `it belongs into "${section}"`;
  const guess = nearest(key, known);
  return guess === undefined ? `known here: ${known.join(', ')}` : `did you mean "${guess}"?`;
}

/** As zod words it. */
const EXPECTED = /^Invalid input: expected (\w+), received (\w+)$/;
/** What people call the types that zod names. */
const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a section with settings',
  record: 'a section with settings',
};
const GAPS: Readonly<Record<string, string>> = {
  undefined: '; it is missing',
  null: '; it has no value',
};

/** What was expected, and what is there if that helps. */
function inWords(issue: z.core.$ZodIssue, file: unknown): string {
  const choices = choicesOf(issue);
  if (issue.code === 'too_big' || issue.code === 'too_small') return boundInWords(issue);
  if (choices.length === 0) {
    return issue.message.replace(EXPECTED, (_all, wanted: string, given: string) => {
      const what = `expected ${KINDS[wanted] ?? wanted}`;
      if (wanted === 'int' && given === 'number') return what;
      return `${what}${GAPS[given] ?? `, not ${KINDS[given] ?? given}`}`;
    });
  }
  // The setting has a reason of its own.
  if (!issue.message.startsWith('Invalid ')) return issue.message;
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

/** What of a JSON schema leads to the names of settings. */
interface Section {
  properties?: Record<string, Section>;
  items?: Section;
  oneOf?: Section[];
  /** A word or a section. */
  anyOf?: Section[];
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

/** Where that setting has a mistake: those of all its values. */
function branch(section: Section, value: unknown): Section {
  const { oneOf, anyOf } = section;
  if (anyOf) return anyOf.find(({ properties }) => properties) ?? section;
  if (!oneOf) return section;
  const chosen = oneOf.find(({ properties = {} }) =>
    Object.entries(properties).some(
      ([name, setting]) => 'const' in setting && setting.const === valueAt(value, [name]),
    ),
  );
  return chosen ?? { properties: Object.assign({}, ...oneOf.map(({ properties }) => properties)) };
}
