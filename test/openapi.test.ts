import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ERROR_STATUS, type ErrorCode } from '../src/errors.ts';
import { errorsOf, type Operation } from '../src/http/operation.ts';
import { interfaceDocument, interfaceOperations, type Parts } from '../src/interface.ts';

type Json = { [key: string]: Json } & Json[] & string;

const text = interfaceDocument();
const document = JSON.parse(text) as Json;
const operations = interfaceOperations({} as Parts);
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

it('has patterns as JSON Schema reads them, without delimiters and flags', () => {
  const patterns = new Set(
    [...text.matchAll(/"pattern": (".*")/g)].map(([, quoted]) => JSON.parse(quoted ?? '')),
  );
  expect([...patterns].join()).toContain('\\p{Cc}');
  for (const pattern of patterns) {
    expect(pattern).toMatch(/\$$/);
    expect(() => new RegExp(pattern, 'u')).not.toThrow();
  }
});
