/** The interface as its OpenAPI document describes it, the admin socket included: its operations, values that fit its schemas, and checks of answers. */
import fc from 'fast-check';
import { z } from 'zod';
import { interfaceOperations, type Parts } from '../../src/app/interface.ts';
import { VERSION } from '../../src/app/version.ts';
import { openApiDocument } from '../../src/platform/http/openapi.ts';
import type { Role } from '../../src/platform/principal.ts';

/** The part of JSON Schema that the document uses. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  anyOf?: Schema[];
  pattern?: string;
  format?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
}

interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  schema: Schema;
}

export interface Described {
  id: string;
  method: string;
  /** With {parameters}. */
  path: string;
  /** Of the admin socket. */
  local: boolean;
  roles: Role[];
  parameters: Parameter[];
  body: Schema | undefined;
  /** By status: what is wrong with a body, undefined when nothing is. */
  answers: Map<number, (body: string) => string | undefined>;
}

interface DocumentText {
  components: { schemas: Record<string, Schema> };
  paths: Record<string, Record<string, OperationText>>;
}
interface OperationText {
  operationId: string;
  'x-roles'?: Role[];
  parameters?: Parameter[];
  requestBody?: { content: { 'application/json': { schema: Schema } } };
  responses: Record<string, { content: Record<string, { schema: Schema }> }>;
}

const made = openApiDocument(interfaceOperations({} as Parts), { version: VERSION, basePath: '' });
const document = JSON.parse(JSON.stringify(made)) as DocumentText;
/** The same schemas where a reader of JSON Schema looks for them. */
const definitions = JSON.parse(
  JSON.stringify(document.components.schemas).replaceAll('#/components/schemas/', '#/$defs/'),
) as Record<string, z.core.JSONSchema.BaseSchema>;

const compiled = new Map<string, z.ZodType>();

export const operations: Described[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, described]) => ({
    id: described.operationId,
    method: method.toUpperCase(),
    path,
    local: path.startsWith('/local/'),
    roles: described['x-roles'] ?? [],
    parameters: described.parameters ?? [],
    body: described.requestBody?.content['application/json'].schema,
    answers: new Map(
      Object.entries(described.responses).map(([status, { content }]) => [Number(status), checkOf(content)]),
    ),
  })),
);

function checkOf(content: Record<string, { schema: Schema }>): (body: string) => string | undefined {
  const schema = content['application/json']?.schema;
  // A stream, or text: its schema is that of its parts.
  if (!schema) return () => undefined;
  const key = JSON.stringify(schema).replaceAll('#/components/schemas/', '#/$defs/');
  const check = compiled.get(key) ?? z.fromJSONSchema({ ...JSON.parse(key), $defs: definitions });
  compiled.set(key, check);
  return (body) => {
    const result = check.safeParse(JSON.parse(body));
    return result.success ? undefined : result.error.message;
  };
}

/** Longest text and most entries that are generated where the schema has no lower bound. */
const TEXT_MAX = 40;
const ITEMS_MAX = 4;
const arbitraries = new WeakMap<Schema, fc.Arbitrary<unknown>>();

/** Values that fit the schema. `known` are UUIDs that exist. */
export function valuesOf(schema: Schema, known: readonly string[]): fc.Arbitrary<unknown> {
  const target =
    schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/').at(-1) ?? ''];
  if (!target) throw new Error(`${schema.$ref} leads nowhere`);
  const values = arbitraries.get(target) ?? make(target, known);
  arbitraries.set(target, values);
  return values;
}

function make(schema: Schema, known: readonly string[]): fc.Arbitrary<unknown> {
  const { enum: listed, anyOf, type } = schema;
  if (listed) return fc.constantFrom(...listed);
  if (anyOf) return fc.oneof(...anyOf.map((one) => valuesOf(one, known)));
  if (Array.isArray(type)) return fc.oneof(...type.map((one) => make({ ...schema, type: one }, known)));
  const { minimum, maximum, items, minItems = 0, maxItems = ITEMS_MAX, uniqueItems } = schema;
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({
        ...(minimum !== undefined && { min: minimum }),
        ...(maximum !== undefined && { max: maximum }),
      });
    case 'string':
      return texts(schema, known);
    case 'array':
      return lists(valuesOf(items ?? {}, known), uniqueItems === true, {
        minLength: minItems,
        maxLength: Math.max(minItems, Math.min(maxItems, ITEMS_MAX)),
      });
    case 'object':
      return objects(schema, known);
    case undefined:
      return fc.constantFrom<unknown>(null, true, 17, 'any', [], {}, { any: [1] });
    default:
      throw new Error(`no values are made of type ${type}`);
  }
}

function lists(
  items: fc.Arbitrary<unknown>,
  unique: boolean,
  length: { minLength: number; maxLength: number },
) {
  return unique ? fc.uniqueArray(items, length) : fc.array(items, length);
}

function texts({ pattern, format, minLength = 0, maxLength }: Schema, known: readonly string[]) {
  if (format === 'uuid') return fc.oneof(fc.constantFrom(...known), fc.uuid());
  if (format === 'date-time') {
    const between = { min: new Date(0), max: new Date('2099-12-31'), noInvalidDate: true };
    return fc.date(between).map((date) => date.toISOString());
  }
  if (format !== undefined) throw new Error(`no text is made of format ${format}`);
  const longest = maxLength ?? Number.POSITIVE_INFINITY;
  const fits = (value: string) => value.length >= minLength && value.length <= longest;
  const expression = new RegExp(pattern ?? '', 'u');
  // Of the patterns for text of any kind fast-check makes little that differs: it is drawn freely instead.
  const free = pattern === undefined || pattern.includes('\\u2028');
  return free
    ? fc
        .string({
          unit: 'grapheme',
          minLength,
          maxLength: Math.min(longest, Math.max(TEXT_MAX, minLength)),
        })
        .filter((value) => fits(value) && expression.test(value))
    : fc.stringMatching(expression).filter(fits);
}

function objects({ properties = {}, required = [], additionalProperties }: Schema, known: readonly string[]) {
  if (typeof additionalProperties === 'object') {
    const key = fc.stringMatching(/^[a-z]{1,8}$/);
    return fc.dictionary(key, valuesOf(additionalProperties, known), {
      maxKeys: ITEMS_MAX,
      noNullPrototype: true,
    });
  }
  const model = Object.entries(properties).map(([name, schema]) => [name, valuesOf(schema, known)]);
  return fc.record(Object.fromEntries(model), { requiredKeys: required as never[], noNullPrototype: true });
}
