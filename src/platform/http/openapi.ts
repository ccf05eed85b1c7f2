/** The OpenAPI 3.1 document, from the same operations that are served; the only user of the generator. */
import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { errorResponses } from './openapi-errors.ts';
import { EXAMPLES } from './openapi-examples.ts';
import { FIELDS, PARAMETERS, TAGS } from './openapi-words.ts';
import { type Access, type Operation, takesIdempotencyKey } from './operation.ts';

export interface DocumentInfo {
  /** Of Gatehouse. */
  version: string;
  /** What comes before every path, such as /api; may be "". */
  basePath: string;
}

export const OPENAPI_VERSION = '3.1.0';

/** `identifier` is new in OpenAPI 3.1 (4.8.4) and unknown to the types of the generator. */
const LICENSE = { name: 'MIT', identifier: 'MIT' };

const DESCRIPTION = `Every answer that is not a success has the body \`Error\`. Checks are made in this order: 401, 403, 429, 413 and
415, 400, 404, 412, 409 and 422. \`X-Request-Id\` (1 to 64 letters, digits, \`_\` or \`-\`) is taken as the correlation
id of a request, else one is drawn; every answer carries it. Text is UTF-8. JSON with a field given twice, a number
beyond a double or more than 32 levels is refused. An operation that takes no body takes an empty one or \`{}\`; the body of a GET is not read.`;

/** Pure: no handler is called. Operations of the admin socket are described when given. */
export function openApiDocument(operations: readonly Operation[], info: DocumentInfo): object {
  const generator = new OpenAPIHono();
  const registry = generator.openAPIRegistry;
  registry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    description: 'A token of `gatehouse token create`, or a JWT of the configured identity provider',
  });
  registry.registerComponent('securitySchemes', 'session', {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-gatehouse',
    description: 'The cookie of `POST /session`; changes are taken from pages of the same origin only',
  });
  // A resource whose update goes by If-Match carries its ETag wherever it is answered.
  const versioned = new Set(operations.filter(isVersioned).map(({ path }) => path));
  for (const declared of operations) registry.registerPath(route(declared, versioned));
  const document = generator.getOpenAPI31Document({
    openapi: OPENAPI_VERSION,
    info: {
      title: 'Gatehouse',
      version: info.version,
      description: DESCRIPTION,
      license: LICENSE,
      contact: { name: 'The operator of this gateway' },
    },
    servers: [{ url: info.basePath || '/' }],
    tags: Object.entries(TAGS)
      .filter(([name]) => operations.some(({ tag }) => tag === name))
      .map(([name, description]) => ({ name, description })),
  });
  return mended(document) as object;
}

/** With words for properties that have none; a reference has those of what it refers to. */
function worded(properties: Readonly<Record<string, Described>>): object {
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const description = '$ref' in property ? undefined : (property.description ?? FIELDS[name]);
      return [name, { ...property, ...(description && { description }) }];
    }),
  );
}

const isVersioned = ({ errors }: Operation) => errors.includes('PRECONDITION_FAILED');

/** Request headers of an operation, besides what HTTP has anyway. */
function requestHeaders(declared: Operation) {
  const header = (description: string) => z.string().optional().openapi({ description });
  const headers = {
    ...(isVersioned(declared) && {
      'If-Match': header('ETag of the version to change; 412 if it is another'),
    }),
    ...(takesIdempotencyKey(declared) && { 'Idempotency-Key': header(IDEMPOTENCY_KEY) }),
    ...(declared.media === 'text/event-stream' &&
      declared.access !== 'local' && {
        'Last-Event-ID': header('Go on after this event; a browser sends it by itself. Wins over `after`'),
      }),
  };
  return Object.keys(headers).length > 0 ? z.object(headers) : undefined;
}

const IDEMPOTENCY_KEY =
  '1 to 128 visible ASCII characters without `"` and `,`, such as a UUID; quotes around it are taken. For a day the same request with the same key is answered as the first one was and is not carried out again; another request with it is 422 IDEMPOTENCY_KEY_REUSED. OUTCOME_UNKNOWN: the first one was cut short';

const ETAG = {
  ETag: { description: 'Grows with what is wanted; for If-Match', schema: { type: 'string' } },
} as const;
const LOCATION = {
  Location: { description: 'Where the state of what was accepted can be read', schema: { type: 'string' } },
} as const;
function route(declared: Operation, versioned: ReadonlySet<string>) {
  const { id, method, path, tag, summary, description, access, params, query, body } = declared;
  const headers = requestHeaders(declared);
  const example = EXAMPLES[id];
  return createRoute({
    operationId: id,
    method,
    path,
    tags: [tag],
    summary,
    description: [description, whoMayCall(access)].filter(Boolean).join('\n\n'),
    ...(typeof access === 'string' ? {} : { 'x-roles': [...access] }),
    security: typeof access === 'string' ? [] : [{ bearer: [] }, { session: [] }],
    request: {
      ...(params && { params }),
      ...(query && { query }),
      ...(headers && { headers }),
      ...(body && { body: { required: true, content: { 'application/json': shown(body, example?.body) } } }),
    },
    responses: {
      [declared.status]: {
        description: declared.status === 202 ? 'Accepted' : 'Success',
        ...answerHeaders(declared, versioned),
        content: { [declared.media ?? 'application/json']: shown(declared.result, example?.result) },
      },
      ...errorResponses(declared),
    },
  });
}

function answerHeaders({ path, method, location }: Operation, versioned: ReadonlySet<string>) {
  const headers = {
    ...(versioned.has(path) && method !== 'delete' && ETAG),
    ...(location && LOCATION),
  };
  return Object.keys(headers).length > 0 ? { headers } : {};
}

function shown(schema: z.ZodType, example: object | undefined) {
  return { schema, ...(example && { example }) };
}

function whoMayCall(access: Access): string {
  if (access === 'public') return 'Needs no credentials.';
  if (access === 'local') return 'Served on the admin socket only.';
  return `Roles: ${access.join(', ')}.`;
}

interface Described {
  name?: string;
  description?: string;
}

/** Each parameter with a description. */
function described(parameter: Described): object {
  const description = parameter.description ?? PARAMETERS[parameter.name ?? ''];
  return { ...parameter, ...(description && { description }) };
}

function isObject(value: unknown): value is Record<string, Described> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The expression with `\\d` and `\\w` written out. JSON Schema advises against them (2020-12, Core 6.4): in Python they
 * take the digits and letters of every script.
 */
function portable(pattern: string): string {
  return pattern.replaceAll(/\[(?:\\.|[^\]])*\]|\\[dw]/g, (part) => {
    const isClass = part.startsWith('[');
    const written = part.replaceAll('\\d', '0-9').replaceAll('\\w', 'A-Za-z0-9_');
    return isClass ? written : `[${written}]`;
  });
}

/**
 * One mistake of the generator: it writes a nullable reference as allOf [reference, object or null], which no null
 * satisfies when the reference itself does not allow it.
 */
function mended(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(mended);
  if (typeof node !== 'object' || node === null) return node;
  const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, mended(value)]));
  // Of a schema, not of one that describes a field called so.
  if ([copy.type].flat().includes('object') && isObject(copy.properties))
    copy.properties = worded(copy.properties);
  if (Array.isArray(copy.parameters)) copy.parameters = copy.parameters.map(described);
  if (typeof copy.pattern === 'string') copy.pattern = portable(copy.pattern);
  const [reference, other] = Array.isArray(copy.allOf) ? copy.allOf : [];
  if (reference?.$ref === undefined || !other?.type?.includes?.('null')) return copy;
  const { allOf: _, ...rest } = copy;
  return { ...rest, anyOf: [reference, { type: 'null' }] };
}
