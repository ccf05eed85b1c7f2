/** The parts of the OpenAPI and the AsyncAPI document that the pages use. */

/** JSON Schema. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  /** In place of `required` in the AsyncAPI document, as scripts/console.ts shortens it. */
  optional?: string[];
  description?: string;
  format?: string;
}

export interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
}

interface Described {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  'x-roles'?: string[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema; example?: unknown }> };
  responses: Record<string, { content?: Record<string, unknown> }>;
}

export interface OpenApi {
  paths: Record<string, Record<string, Described>>;
}

/** As scripts/console.ts shortens the document. */
export interface AsyncApi {
  /** `schemas`: names of those of its messages. */
  channels: { address: string; description: string; server: string; schemas: string[] }[];
  schemas: Record<string, Schema>;
}

export interface Call extends Described {
  method: string;
  path: string;
}

export function callsOf({ paths }: OpenApi): Call[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      path,
      method: method.toUpperCase(),
      ...described,
    })),
  );
}

/** What is typed for an operation. */
export interface Filled {
  parameters: Readonly<Record<string, string>>;
  body: string | undefined;
}

/** With path and query filled in. */
export function pathOf({ path, parameters = [] }: Call, filled: Filled['parameters']): string {
  const inPath = path.replaceAll(/\{(\w+)\}/g, (whole, name: string) =>
    filled[name] ? encodeURIComponent(filled[name]) : whole,
  );
  const query = new URLSearchParams(
    parameters.flatMap<[string, string]>(({ name, in: place }) =>
      place === 'query' && filled[name] ? [[name, filled[name]]] : [],
    ),
  ).toString();
  return query === '' ? inPath : `${inPath}?${query}`;
}

/** The same for a shell. `root.crt` is the site's own authority, $TOKEN a token of `gatehouse token create`. */
export function curlOf(call: Call, { parameters, body }: Filled, base: string): string {
  return [
    'curl --cacert root.crt',
    ...(call.method === 'GET' ? [] : [`-X ${call.method}`]),
    ...(call['x-roles'] ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoted(body)}`]),
    quoted(base + pathOf(call, parameters)),
  ].join(' \\\n  ');
}

const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** In a word or two. */
export function typeOf({
  $ref,
  type,
  const: only,
  enum: values,
  anyOf,
  oneOf,
  items,
  format,
}: Schema): string {
  if ($ref !== undefined) return nameOf($ref);
  if (only !== undefined) return JSON.stringify(only);
  if (values) return values.map((value) => JSON.stringify(value)).join(' | ');
  const choices = anyOf ?? oneOf;
  if (choices) return [...new Set(choices.map(typeOf))].join(' | ');
  if (items) return `array of ${typeOf(items)}`;
  return [[type ?? 'any'].flat().join(' | '), format].filter(Boolean).join(', ');
}

/** The last step of a reference. */
export const nameOf = (reference: string) => reference.slice(reference.lastIndexOf('/') + 1);
