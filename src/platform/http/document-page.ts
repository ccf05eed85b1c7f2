/**
 * GET /docs: the OpenAPI document as a page that a person reads, made here once. It holds no script and asks no other
 * origin for anything, so that it reads the same in a basement without internet.
 */
import { hash } from 'node:crypto';
import { z } from '@hono/zod-openapi';
import type { Operation, StoredBytes } from './operation.ts';
import { operation } from './operation.ts';

/** The part of JSON Schema that the document uses. */
interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  description?: string;
  format?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  default?: unknown;
}

interface Content {
  schema?: Schema;
  example?: unknown;
}

interface Described {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: Schema }[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, { description: string; content?: Record<string, Content> }>;
  security?: unknown[];
}

export interface PageDocument {
  info: { title: string; version: string; description?: string };
  servers?: { url: string }[];
  tags: { name: string; description?: string }[];
  components: { schemas: Record<string, Schema> };
  paths: Record<string, Record<string, Described>>;
}

/** A name that is reserved for examples (RFC 2606), as in docs/interface.md. */
const HOST = 'https://gatehouse.example:8443';

const STYLE = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:64rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}
details{border:1px solid light-dark(#ccc,#444);border-radius:.4rem;margin:.4rem 0;padding:0 .8rem}
summary{cursor:pointer;padding:.7rem 0;min-height:1.5rem}
pre{background:light-dark(#f3f3f3,#1c1c1c);padding:.8rem;overflow-x:auto;overflow-wrap:normal}
code{font:.9em/1.4 ui-monospace,monospace}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-top:1px solid light-dark(#ddd,#333)}
td:first-child{min-width:3.2rem}
nav a{display:inline-block;padding:.6rem .8rem .6rem 0}
b.method{display:inline-block;min-width:4.2rem}
@media print{details{border:0}}`;

/** Nothing but its own style: no script, no picture, no form, no frame. */
export const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** `stored` is asked at the first call. */
export function pageOperation(stored: () => StoredBytes): Operation {
  return operation({
    id: 'getDocs',
    method: 'get',
    path: '/docs',
    tag: 'Health',
    summary: 'This document as a page for people',
    access: 'public',
    rate: { perSecond: 1, burst: 10 },
    media: 'text/html',
    result: z.string(),
    handler: () => ({ body: '', stored: stored() }),
  });
}

export function documentPage(document: PageDocument): string {
  const { info, tags, paths, components } = document;
  const base = HOST + (document.servers?.[0]?.url ?? '/').replace(/\/$/, '');
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ path, method: method.toUpperCase(), described })),
  );
  const sections = tags.map(({ name, description = '' }) => {
    const own = operations.filter(({ described }) => described.tags.includes(name));
    const blocks = own.map(({ path, method, described }) => block(path, method, described, base));
    return `<h2 id="${idOf(name)}">${safe(name)}</h2><p>${words(description)}</p>${blocks.join('')}`;
  });
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<details id="schema-${safe(name)}"><summary><code>${safe(name)}</code></summary>${described(schema)}${fields(schema)}</details>`,
  );
  const links = [...tags.map(({ name }) => name), 'Schemas'].map(
    (name) => `<a href="#${idOf(name)}">${safe(name)}</a>`,
  );
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${safe(info.title)} ${safe(info.version)}: the interface</title><style>${STYLE}</style></head><body>
<h1>${safe(info.title)} ${safe(info.version)}</h1><p>${words(info.description ?? '')}</p>
<p>For programs: <a href="openapi.json">openapi.json</a>. To try it with your own rights, and for the messages over MQTT: <a href="/#/api">the console</a>. In the examples <code>root.crt</code> is the site's own authority, and <code>$TOKEN</code> a token of <code>gatehouse token create</code>.</p>
<nav>${links.join('')}</nav>${sections.join('\n')}<h2 id="schemas">Schemas</h2>${schemas.join('\n')}</body></html>
`;
}

function block(path: string, method: string, one: Described, base: string): string {
  const body = one.requestBody?.content['application/json'];
  const rows = (one.parameters ?? []).map(({ name, in: place, required, description, schema }) =>
    row(name, `${typeOf(schema)} (${safe(place)}${required ? ', required' : ''})`, description ?? ''),
  );
  const answers = Object.entries(one.responses).map(([status, { description, content = {} }]) => {
    const [[media, shown] = []] = Object.entries(content);
    const type =
      shown?.schema && Number(status) < 300
        ? ` ${media === 'application/json' ? '' : safe(media ?? '')} ${typeOf(shown.schema)}`
        : '';
    return row(status, type, description);
  });
  const success = Object.entries(one.responses).find(([status]) => Number(status) < 300)?.[1].content;
  const example = success?.['application/json']?.example;
  return `<details id="${safe(one.operationId)}"><summary><b class="method">${method}</b> <code>${safe(path)}</code> ${safe(one.summary)}</summary>
<p>${words(one.description ?? '')}</p>${rows.length > 0 ? `<table>${rows.join('')}</table>` : ''}${body?.schema ? `<h4>Body: ${typeOf(body.schema)}</h4>${fields(body.schema)}` : ''}
<pre><code>${safe(curl(path, method, one, base))}</code></pre><h4>Answers</h4><table>${answers.join('')}</table>${example === undefined ? '' : `<pre><code>${safe(JSON.stringify(example, null, 2))}</code></pre>`}</details>`;
}

function curl(path: string, method: string, { security = [], requestBody }: Described, base: string): string {
  const body = requestBody?.content['application/json'];
  const text = body && JSON.stringify(body.example ?? {}, null, 2).replaceAll("'", String.raw`'\''`);
  return [
    'curl --cacert root.crt',
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    ...(security.length > 0 ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    ...(text === undefined ? [] : ["-H 'Content-Type: application/json'", `-d '${text}'`]),
    `'${base}${path}'`,
  ].join(' \\\n  ');
}

/** A table of the fields of an object; what is inside them once more, where it has no name of its own. */
function fields(schema: Schema): string {
  const { properties = {}, required = [] } = schema.items ?? schema;
  const rows = Object.entries(properties).map(([name, field]) => {
    const inner = [field, field.items, ...(field.anyOf ?? [])].find((one) => one?.properties);
    const type = `${typeOf(field)}${required.includes(name) ? ', required' : ''}`;
    return row(name, type, field.description ?? '', inner ? fields(inner) : '');
  });
  return rows.length > 0 ? `<table>${rows.join('')}</table>` : '';
}

function row(name: string, type: string, description: string, more = ''): string {
  return `<tr><td><code>${safe(name)}</code></td><td>${type}</td><td>${words(description)}${more}</td></tr>`;
}

function described({ description }: Schema): string {
  return description === undefined ? '' : `<p>${words(description)}</p>`;
}

/** As HTML. */
function typeOf(schema: Schema): string {
  const name = schema.$ref?.split('/').at(-1);
  if (name !== undefined) return `<a href="#schema-${safe(name)}">${safe(name)}</a>`;
  if (schema.enum)
    return schema.enum.map((value) => `<code>${safe(JSON.stringify(value))}</code>`).join(' | ');
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' | ');
  const types = [schema.type ?? 'any'].flat();
  const plain = types.filter((type) => type !== 'array').join(' | ');
  const list = types.includes('array') ? `array of ${typeOf(schema.items ?? {})}` : '';
  const bounds = boundsOf(schema);
  return (
    [list, safe(plain)].filter(Boolean).join(' | ') + (bounds === '' ? '' : ` <small>${safe(bounds)}</small>`)
  );
}

function boundsOf(schema: Schema): string {
  const { format, minimum, maximum, minLength, maxLength, minItems, maxItems } = schema;
  const range = (low: number | undefined, high: number | undefined, of: string) =>
    low === undefined && high === undefined ? [] : [`${low ?? ''}…${high ?? ''}${of}`];
  return [
    ...(format === undefined ? [] : [format]),
    ...range(minimum, maximum, ''),
    ...range(minLength, maxLength, ' characters'),
    ...range(minItems, maxItems, ' entries'),
    ...(schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]),
  ].join(', ');
}

/** Of the Markdown there is in the document: paragraphs, code and bold. */
function words(text: string): string {
  return safe(text)
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<b>$1</b>')
    .replaceAll('\n\n', '</p><p>');
}

function idOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
}

function safe(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
