import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from '@hono/zod-openapi';
import { describe, expect, it } from 'vitest';
import { interfaceDocument, interfaceOperations, type Parts } from '../src/app/interface.ts';
import { ERROR_STATUS, type ErrorCode } from '../src/platform/errors.ts';
import type { ErrorBody } from '../src/platform/http/openapi-errors.ts';
import { EXAMPLES } from '../src/platform/http/openapi-examples.ts';
import { FIELDS } from '../src/platform/http/openapi-words.ts';
import { errorsOf, type Operation } from '../src/platform/http/operation.ts';

type Json = { [key: string]: Json } & Json[] & string;

/** The seven operations of the interface specification (4.1 to 4.7). */
const SPECIFIED = [
  'addEncoder',
  'updateEncoder',
  'sendWriteRequest',
  'updateDoor',
  'updateRs485Device',
  'updateZigbeeGateway',
  'updateNetwork',
];

const text = interfaceDocument();
const document = JSON.parse(text) as Json;
/** Of the network; those of the admin socket are in no file. */
const operations = interfaceOperations({} as Parts).filter(({ access }) => access !== 'local');
const described = ({ method, path }: Operation) => document.paths?.[path]?.[method] as Json;

it('docs/openapi.json is the interface as it is served (npm run openapi writes it)', () => {
  expect(readFileSync(join(import.meta.dirname, '../docs/openapi.json'), 'utf8')).toBe(text);
});

it('resolves every reference', () => {
  const references = [...text.matchAll(/"\$ref": "#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name);
  expect(references.length).toBeGreaterThan(10);
  expect(references.filter((name) => !document.components?.schemas?.[name ?? ''])).toEqual([]);
});

it('gives each operation an id of its own', () => {
  expect(new Set(operations.map(({ id }) => id)).size).toBe(operations.length);
});

it('has Location in the answer of each operation that goes on after it', () => {
  const accepting = operations.filter(({ status }) => status === 202);
  expect(accepting.length).toBeGreaterThan(5);
  for (const operation of accepting)
    expect(described(operation).responses?.['202']?.headers?.Location, operation.id).toBeDefined();
});

it('refuses a query parameter or a field of the body that does not exist, in every operation', () => {
  for (const { id, query, body } of operations)
    for (const schema of [query, body]) {
      const codes = schema?.safeParse({ nonsense: '1' }).error?.issues.map(({ code }) => code);
      if (schema) expect(codes, id).toContain('unrecognized_keys');
    }
});

describe.each(operations.map((operation) => [operation.id, operation] as const))('%s', (_id, operation) => {
  it('has its roles, its parameters and every code under its status', () => {
    const shown = described(operation);
    const roles = typeof operation.access === 'string' ? undefined : operation.access;
    expect(shown['x-roles']).toEqual(roles);
    for (const role of roles ?? []) expect(shown.description).toContain(role);
    const inPath = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const parameters = (shown.parameters ?? []) as Json[];
    const declared = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
    expect(declared).toEqual(inPath);
    for (const code of errorsOf(operation)) {
      const response = shown.responses?.[ERROR_STATUS[code as ErrorCode]] as Json;
      expect(String(response.description).split(', ')).toContain(code);
    }
  });
});

it('describes every parameter, and every tag', () => {
  const silent = Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
    Object.values(methods).flatMap(({ parameters }) =>
      ((parameters ?? []) as Json[])
        .filter(({ description }) => !description)
        .map(({ name }) => `${path} ${String(name)}`),
    ),
  );
  expect(silent).toEqual([]);
  const names = new Set((document.tags as Json[]).map(({ name }) => String(name)));
  expect(new Set(operations.map(({ tag }) => tag))).toEqual(names);
});

it('explains fields, once by the schema where that says it', () => {
  const { Door, Encoder, Rs485DeviceUpdate } = (document.components as Json).schemas as Json;
  const state = (Door as Json).properties?.connectionState?.properties;
  expect(state?.rssi?.description).toBe('dBm');
  expect((Encoder as Json).properties?.alarmState?.properties?.raised?.description).toBe(
    'It asks for a person now',
  );
  // Its own words stay.
  expect((Rs485DeviceUpdate as Json).properties?.relayIndex?.description).not.toBe(FIELDS.relayIndex);
  for (const [name, words] of Object.entries(FIELDS))
    expect(text, name).toContain(`"description": ${JSON.stringify(words)}`);
});

it('has examples that fit, and one for each operation of the specification', () => {
  const strict = (schema: z.ZodType) => (schema instanceof z.ZodObject ? schema.strict() : schema);
  for (const [id, { body, result }] of Object.entries(EXAMPLES)) {
    const declared = operations.find((operation) => operation.id === id);
    expect(declared, id).toBeDefined();
    if (body) expect(declared?.body?.safeParse(body).error?.issues ?? [], id).toEqual([]);
    if (result && declared)
      expect(strict(declared.result).safeParse(result).error?.issues ?? [], id).toEqual([]);
  }
  for (const id of SPECIFIED) expect(Object.keys(EXAMPLES[id] ?? {}), id).toEqual(['body', 'result']);
});

const patterns = new Set<string>(
  [...text.matchAll(/"pattern": (".*")/g)].map(([, quoted]) => JSON.parse(quoted ?? '')),
);

it('has patterns as JSON Schema reads them, without delimiters and flags', () => {
  expect(patterns.size).toBeGreaterThan(5);
  for (const pattern of patterns) {
    expect(pattern).toMatch(/^\^.*\$$/);
    expect(() => new RegExp(pattern, 'u')).not.toThrow();
    expect(() => new RegExp(pattern)).not.toThrow();
  }
});

/**
 * What JSON Schema recommends (2020-12, Core 6.4) and the dialects of ECMA-262 with and without the flag u, of Java
 * (java.util.regex.Pattern) and of Python (re) read alike: no classes by letter, no look-around, no flags, and in a class no
 * `[`, `&&`, `--`, `~~` or `||`, which Java reads as set operations and Python warns of.
 */
const PORTABLE =
  /^\^(?:\\[.\\nrt]|\\u[0-9A-F]{4}|\[\^?(?:\\[\]\\nt-]|\\u[0-9A-F]{4}|(?!&&|--|~~|\|\|)[^\]\\[])+\]|\((?:\?:)?(?!\?)|[)|]|[*+?]|\{\d+(?:,\d*)?\}|[A-Za-z0-9 ,:_-])*\$$/;

it('has patterns that Java and Python read alike', () => {
  expect([...patterns].filter((pattern) => !PORTABLE.test(pattern))).toEqual([]);
  for (const foreign of ['^\\p{L}$', '^\\d$', '^(?!x)$', '^[a&&b]$', '^[[a]]$', '^(?i)a$'])
    expect(PORTABLE.test(foreign), foreign).toBe(false);
  const script =
    'import json, re, sys, warnings; warnings.simplefilter("error"); [re.compile(p) for p in json.load(sys.stdin)]';
  const python = spawnSync('python3', ['-c', script], { input: JSON.stringify([...patterns]) });
  expect(python.stderr.toString()).toBe('');
  expect(python.status).toBe(0);
});

it('has no two paths that one request could mean, except where one has a word for a parameter of the other', () => {
  const paths = Object.keys(document.paths as Json).map((path) => path.split('/'));
  const isParameter = (segment = '') => segment.startsWith('{');
  const ambiguous = paths.flatMap((one, index) =>
    paths
      .slice(index + 1)
      .filter((other) => {
        if (one.length !== other.length) return false;
        const pairs = one.map((segment, at) => [segment, other[at]] as const);
        const meet = pairs.every(([a, b]) => a === b || isParameter(a) || isParameter(b));
        const wins = (of: 0 | 1) => pairs.some((pair) => isParameter(pair[of]) && !isParameter(pair[1 - of]));
        return meet && wins(0) && wins(1);
      })
      .map((other) => `${one.join('/')} ${other.join('/')}`),
  );
  expect(ambiguous).toEqual([]);
});

it.each(operations.map((operation) => [operation.id, operation] as const))(
  'shows for %s a refusal of its own fields',
  (_id, operation) => {
    const answer = (described(operation).responses as Json)?.[400] as Json | undefined;
    if (!answer) return;
    const content = answer.content as unknown as Record<string, { example: ErrorBody }>;
    const { error, details } = content['application/json']?.example ?? {};
    expect(errorsOf(operation)).toContain(error ?? 'none');
    const own = [
      ...['body', 'query', 'params'].flatMap((part) => {
        const schema = operation[part as 'body' | 'query' | 'params'];
        const names = schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
        return names.map((name) =>
          part === 'body' ? `/${name}` : part === 'query' ? `?${name}` : `{${name}}`,
        );
      }),
      ...(error === 'UNKNOWN_FIELD' ? ['?verbose'] : []),
    ];
    expect(own).toEqual(expect.arrayContaining(details?.map(({ path }) => path) ?? ['nothing']));
  },
);

it('leaves Error open for codes and fields of later versions', () => {
  const { Error: shown } = (document.components as Json).schemas as Json;
  expect(shown?.properties?.error?.enum).toBeUndefined();
  expect(shown?.additionalProperties).toBeUndefined();
  expect(shown?.properties?.error?.['x-extensible-enum']).toEqual(Object.keys(ERROR_STATUS));
});
